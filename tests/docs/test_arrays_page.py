"""docs/internals/arrays.md has a row for each operation on arrays, with the attributes that its definition has."""

import re
from pathlib import Path

from triton.backends.spirv.ttgir.declared import OWN
from triton.backends.spirv.ttgir.formats import declared_attributes
from triton.backends.spirv.ttgir.operations import OPERATIONS

PAGE = Path(__file__).parents[2] / "docs/internals/arrays.md"
#: Votes on tensors, which are not in arrays.
VOTES = {"spirv.beyond_halves", "spirv.greatest"}


def test_the_page_has_a_row_for_each_operation_on_arrays() -> None:
    rows = re.findall(
        r"^\| `(?:%\w+ = )?(spirv\.\w+)[^`]*` \| (?:`([^`]+)`)? ?\|", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert [name for name, _ in rows] == list(dict(rows))
    assert {name: declared_attributes(attributes) for name, attributes in rows} == {
        name: OWN[name] for name in OPERATIONS if name.startswith("spirv.") and name not in VOTES
    }
