"""Which modules are read for loads of dot operands that may move; what is moved of one is in text/buffers.ttgir."""

import pytest
from triton.backends.spirv.transforms.sink_loads import are_apart


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        ("ttg.local_alloc ttg.local_alloc ttg.local_load ttg.local_load tt.dot ttg.convert_layout", False),
        ("ttg.local_alloc ttg.local_load ttg.local_alloc ttg.local_load tt.dot", True),
        ("ttg.local_load tt.dot tt.reduce tt.dot", True),
        ("ttg.local_load a.name_without_a_row tt.dot", True),
        ("tt.reduce ttg.local_load tt.dot", False),
        ("ttg.local_load tt.reduce", False),
    ],
)
def test_only_loads_with_taken_memory_between_them_and_a_dot_are_read(names: str, apart: bool) -> None:
    assert are_apart(names.split()) is apart
