"""The functions of text/: what FileCheck wants of each after one rewrite of the table, which ``// REWRITE:`` names.

What is before the first section of a file is the beginning of the module of each. ``// DEVICE:`` names another profile
than that of Mesa's CPU driver, ``// HABITS:`` what its driver has instead (driver_quirks.Driver), ``// SCHEDULE:`` what
is asked for, and ``// WITHOUT:`` what its matrix units do not multiply. A section without patterns says that the
rewrite changes nothing; ``// REFUSED:`` is in the error of one that cannot be rewritten.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.errors import UnsupportedOperation
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.transforms.table import TRANSFORMS
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

from tests.filecheck import check, directives, numbers, sections, title
from tests.lowering.harness import driven

ROWS = {row.name: row for row in TRANSFORMS}
SECTIONS = {
    f"{name}: {title(section)}": f"{beginning}{section}}}\n"
    for name, (beginning, *several) in sections(Path(__file__).parent / "text")
    for section in several
}


@pytest.mark.parametrize("text", SECTIONS.values(), ids=SECTIONS)
def test_what_a_rewrite_makes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = directives(text)
    device = driven(monkeypatch, PROFILES[said.get("DEVICE", "lavapipe")], **numbers(said.get("HABITS", "")))
    schedule = replace(Options().schedule, **numbers(said.get("SCHEDULE", "")))  # type: ignore[arg-type]
    matrices = tuple(one for one in device.matrices if one.a != said.get("WITHOUT"))
    options = Options(matrices=matrices, schedule=schedule)
    module, row = parse_module(text), ROWS[said["REWRITE"]]
    before = print_module(module)
    if "REFUSED" in said:
        with pytest.raises(UnsupportedOperation, match=re.escape(said["REFUSED"])):
            row.run(module, device, options)
        return
    changed = row.run(module, device, options)
    assert changed == ("// CHECK" in text)
    if changed:
        verify(module)
        check(print_module(module), text)
    else:
        assert print_module(module) == before
