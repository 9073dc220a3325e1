"""The functions of text/: what FileCheck wants of the disassembly of each stands behind it.

A section begins with a line that says what is tested. ``// DEVICES:`` names profiles, or ``plain``, instead of Mesa's
CPU driver; ``// SHARED:`` and ``// WARPS:`` are the module's attributes. Layouts are the harness's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import PLAIN, disassemble, lower_module, module_of
from tests.spirv_val import validated

DEVICES = {**PROFILES, "plain": PLAIN}
SECTIONS = {
    f"{path.stem}: {section.partition(chr(10))[0].removeprefix('// ')}": section
    for path in sorted((Path(__file__).parent / "text").glob("*.ttgir"))
    for section in path.read_text("utf-8").split("// -----\n")
}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_what_is_emitted(section: str, filecheck: Callable[[str, str], None]) -> None:
    said = dict(re.findall(r"^// (DEVICES|SHARED|WARPS): (.+)$", section, re.MULTILINE))
    for device in said.get("DEVICES", "lavapipe").split(", "):
        text = module_of(section, int(said.get("SHARED", 0)), DEVICES[device], int(said.get("WARPS", 4)))
        spirv = lower_module(parse_module(text), DEVICES[device], Options()).spirv
        filecheck(disassemble(validated(spirv)), section)
