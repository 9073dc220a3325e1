"""How long code is expected to be, beside what is emitted."""

import pytest
from triton.backends.spirv.functions.forms import FORMS
from triton.backends.spirv.spirv.decode import decode
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.operations import OPERATIONS, SHORT
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import PLAIN, lower_module, module_text

#: What is emitted is at most so many times what is expected, and the other way round; what is short may be nothing.
FACTOR = 4.5

_TYPES = {"u32": "i32", "u64": "i64"}
_OF_OTHER_TYPES = {
    f"math.{name}" for name in "absi ctlz ctpop cttz isfinite isinf isnan isnormal clampf sincos".split()
}
_OF_OTHER_TYPES |= {"tt.extern_elementwise", "math.ipowi", "math.fpowi"}
_FLOATS = sorted({name for name, row in OPERATIONS.items() if row.length >= SHORT} - _OF_OTHER_TYPES)


def emitted(operation: str, arguments: list[str], result: str) -> int:
    """Instructions that ``operation`` is, of arguments %x0, %x1, … of the kernel."""
    given = ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(arguments))
    body = f"    {operation}\n    tt.store %out, %y : !tt.ptr<{result}>"
    text = module_text(body, f"%out: !tt.ptr<{result}>, {given}")
    names = [one.name for one in decode(lower_module(parse_module(text), PLAIN, Options()).spirv)]
    return len(names) - names.index("OpFunction")


@pytest.mark.parametrize("name", sorted(FORMS))
def test_functions(name: str) -> None:
    form = FORMS[name][0]
    arguments, result = [_TYPES.get(one, one) for one in form.arguments], _TYPES.get(form.result, form.result)
    operands = ", ".join(f"%x{number}" for number in range(len(arguments)))
    attributes = f'libname = "", libpath = "", pure = true, symbol = "{form.symbol}"'
    call = f"%y = tt.extern_elementwise {operands} {{{attributes}}} : ({', '.join(arguments)}) -> {result}"
    _compare(emitted(call, arguments, result) - emitted(f"%y = ub.poison : {result}", arguments, result), form.length)


@pytest.mark.parametrize("name", _FLOATS)
def test_operations(name: str) -> None:
    count = 3 if name == "math.fma" else 2 if name.endswith(("powf", "atan2", "copysign", "divf", "remf")) else 1
    operands = ", ".join(f"%x{number}" for number in range(count))
    length = emitted(f"%y = {name} {operands} : f32", ["f32"] * count, "f32")
    _compare(length - emitted("%y = ub.poison : f32", ["f32"] * count, "f32"), OPERATIONS[name].length)


def _compare(length: int, expected: int) -> None:
    assert length <= FACTOR * expected
    assert expected <= SHORT or expected <= FACTOR * length
