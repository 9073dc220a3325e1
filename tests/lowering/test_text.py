"""The functions of text/: what FileCheck wants of the disassembly of each stands behind it.

A section begins with a line that says what is tested. ``// DEVICES:`` names profiles, or ``plain``, instead of Mesa's
CPU driver; ``// SHARED:`` and ``// WARPS:`` are the module's attributes. Layouts are the harness's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.filecheck import check, directives, sections, title
from tests.lowering.harness import PLAIN, disassemble, lower_module, module_of
from tests.spirv_val import validated

DEVICES = {**PROFILES, "plain": PLAIN}
SECTIONS = {
    f"{name}: {title(section)}": section
    for name, several in sections(Path(__file__).parent / "text")
    for section in several
}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_what_is_emitted(section: str) -> None:
    said = directives(section)
    for device in said.get("DEVICES", "lavapipe").split(", "):
        text = module_of(section, int(said.get("SHARED", 0)), DEVICES[device], int(said.get("WARPS", 4)))
        spirv = lower_module(parse_module(text), DEVICES[device], Options()).spirv
        check(disassemble(validated(spirv)), section)
