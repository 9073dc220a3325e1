"""Functions of triton.language against their definitions: a table with a row each, and kernels of random calls."""

from tests.fuzz.families.functions.drawing import dtype_of
from tests.fuzz.families.functions.elementwise import ELEMENTWISE
from tests.fuzz.families.functions.folding import FOLDING
from tests.fuzz.families.functions.moving import MOVING
from tests.fuzz.families.functions.products import PRODUCTS
from tests.fuzz.families.functions.random_numbers import RANDOM_NUMBERS
from tests.fuzz.steps import Family, Writer

ROWS = (*ELEMENTWISE, *FOLDING, *MOVING, *RANDOM_NUMBERS, *PRODUCTS)

#: Public functions without a row → where they are held to their definition, or why they have none.
ELSEWHERE = {
    **dict.fromkeys("assume max_constancy max_contiguous multiple_of".split(), "hints: tests/device/test_hints.py"),
    **dict.fromkeys("device_assert device_print static_assert static_print".split(), "they give no value"),
    **dict.fromkeys("condition range static_range".split(), "loops: tests/device/test_loop_bounds.py"),
    **dict.fromkeys("program_id num_programs".split(), "places in a grid: tests/device/test_program_ids.py"),
    **dict.fromkeys(
        "make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor".split(), "the family `descriptors`"
    ),
    **dict.fromkeys(
        "atomic_load atomic_poll atomic_store".split(), "an order of accesses: tests/device/test_atomics.py"
    ),
    "debug_barrier": "an order of accesses: tests/device/test_barriers.py",
    "dot_scaled": "tests/device/test_dot_scaled.py has all its types and scales",
    "expect_zero": "an assertion: it gives its operand",
    "inline_asm_elementwise": "its definition is PTX's: tests/device/test_inline_ptx.py",
    "map_elementwise": "a function of the kernel's: tests/device/test_map_elementwise.py",
    "aggregate_replace": "of the front end alone",
    "to_tensor": "of the front end alone",
    "str_to_ty": "of the front end alone",
    "make_block_ptr": "refused by upstream itself",
}

_FUNCTIONS = """@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


"""


def _start(writer: Writer) -> None:
    """Each call loads what it needs."""


def _step(writer: Writer) -> None:
    row = writer.rng.choice(ROWS)
    row.write(writer, dtype_of(writer.rng.choice(row.types)))


FAMILY = Family("functions", _start, _step, _FUNCTIONS, most_steps=8)
