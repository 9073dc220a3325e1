"""The functions of text/: what FileCheck wants of the disassembly of each stands behind it.

A section begins with a line that says what is tested. ``// DEVICES:`` names profiles, or others of DEVICES, instead of
Mesa's CPU driver, and ``// LIMITS:`` what they have instead; ``// SHARED:`` and ``// WARPS:`` are the module's,
``// OPTIONS:`` compile options. ``// REFUSED:`` is in the error of a function that cannot be compiled. Layouts are the
harness's.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.errors import UnsupportedOperation
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.filecheck import check, directives, numbers, sections, title
from tests.lowering.harness import LAVAPIPE, PLAIN, disassemble, lower_module, module_of
from tests.spirv_val import validated

DEVICES = {
    **PROFILES,
    "plain": PLAIN,
    "explicit": replace(LAVAPIPE, features=LAVAPIPE.features | {"explicit_workgroup_layout"}),
    "hopper of another driver": replace(PROFILES["nvidia-hopper"], driver="generic"),
    "without storage8": replace(LAVAPIPE, features=LAVAPIPE.features - {"storage8"}),
}
SECTIONS = {
    f"{name}: {title(section)}": section
    for name, several in sections(Path(__file__).parent / "text")
    for section in several
}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_what_is_emitted(section: str) -> None:
    said = directives(section)
    options = Options(SPIRVOptions(**numbers(said.get("OPTIONS", ""))))  # type: ignore[arg-type]
    for name in said.get("DEVICES", "lavapipe").split(", "):
        device = replace(DEVICES[name], **numbers(said.get("LIMITS", "")))  # type: ignore[arg-type]
        source = parse_module(module_of(section, int(said.get("SHARED", 0)), device, int(said.get("WARPS", 4))))
        if "REFUSED" in said:
            with pytest.raises(UnsupportedOperation, match=re.escape(said["REFUSED"])):
                lower_module(source, device, options)
        else:
            check(disassemble(validated(lower_module(source, device, options).spirv)), section)
