"""Every public name of triton.language works as NumPy says, or is refused for a reason; a name that a new release of
upstream adds fails here until it is in a table."""

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
import triton.language.semantic
from triton.compiler.errors import CompilationError

from docs.generate_surface import PAGE, page
from tests.device.helpers import to_numpy, to_torch
from tests.surface.language_names import (
    DTYPES,
    FRONT_END,
    OPTIONS_ELSEWHERE,
    REFUSED,
    REFUSED_METHODS,
    REFUSED_VALUES,
    UNDEFINED_METHODS,
)
from tests.surface.language_rows import INPUTS, METHODS, ROWS, SIZE, Inputs, Row
from tests.written import written

_HEADER = '''"""Generated."""
import triton
import triton.language as tl


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def halves(a0, a1):
    return tl.where(a0 < 0, -(-a0 // 2), a0 // 2), tl.where(a1 < 0, -(-a1 // 2), a1 // 2), a0 - 1, a1 - 1


@triton.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @triton.constexpr_function
    def __init__(self, first, second):
        self.first = first
        self.second = second


'''
_KERNEL = """@triton.jit
def kernel_{number}(x_ptr, y_ptr, n_ptr, m_ptr, u_ptr, w_ptr, out_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, 64)
    x, y, n, m, u = (tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(n_ptr + i), tl.load(m_ptr + i),
                     tl.load(u_ptr + i))
{body}
    tl.store(out_ptr + tl.arange(0, SIZE), tl.reshape(r, [SIZE]))


"""


def _functions() -> dict[str, Any]:
    """The public functions of triton.language."""
    found = {name: getattr(tl, name) for name in dir(tl) if not name.startswith("_")}
    return {name: value for name, value in found.items() if callable(value) and not inspect.isclass(value)}


class _AsMethod(ast.NodeTransformer):
    """``tl.name(x, …)`` to ``x.name(…)``."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) == f"tl.{self.name}":
            self.count += 1
            node.func = ast.Attribute(node.args[0], self.name)
            node.args = node.args[1:]
        return node


def _derived() -> list[Row]:
    """The rows of functions that are methods too, called as methods."""
    rows = []
    for name in _methods():
        for row in ROWS:
            if name in row.names.split() and name not in UNDEFINED_METHODS:
                transform = _AsMethod(name)
                tree = transform.visit(ast.parse(row.body))
                if transform.count:
                    rows.append(Row(f"{name} (method)", ast.unparse(tree), row.reference, row.tolerance))
    return rows


def _methods() -> list[str]:
    """The public methods of tensors."""
    return [name for name in dir(tl.tensor) if not name.startswith("_")]


ALL = [*ROWS, *METHODS, *_derived()]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A module with a kernel for each row."""
    path: Path = tmp_path_factory.mktemp("surface") / "rows.py"
    bodies = ["\n".join("    " + line for line in row.body.split("\n")) for row in ALL]
    return written(path, _HEADER + "".join(_KERNEL.format(number=n, body=body) for n, body in enumerate(bodies)))


@pytest.mark.parametrize("number", range(len(ALL)), ids=[row.names.split()[0] for row in ALL])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_row(kernels: ModuleType, number: int) -> None:
    row = ALL[number]
    arrays = {name: values.copy() for name, values in INPUTS.items()}
    expected = np.asarray(row.reference(Inputs(**arrays, i=np.arange(SIZE, dtype=np.int32)))).reshape(-1)
    tensors = [to_torch(values) for values in (*arrays.values(), INPUTS["m"])]
    out = to_torch(np.full(expected.size, 99, expected.dtype))
    kernel = getattr(kernels, f"kernel_{number}")
    kernel[(1,)](*tensors, out, SIZE=expected.size, debug="device_assert" in row.names)
    actual = to_numpy(out)
    if row.tolerance:
        np.testing.assert_allclose(actual, expected, rtol=row.tolerance, atol=row.tolerance)
    else:
        np.testing.assert_array_equal(actual, expected)


def _named(rows: list[Row]) -> set[str]:
    return {name for row in rows for name in row.names.split()}


def test_every_name_is_in_a_table() -> None:
    public = {name for name in dir(tl) if not name.startswith("_")}
    tables = [_named(ROWS), set(REFUSED), set(DTYPES) - set(REFUSED), set(FRONT_END)]
    assert public - set().union(*tables) == set(), "names of triton.language that no test knows"
    assert set().union(*tables) - public == set(), "names that triton.language does not have"
    assert sum(map(len, tables)) == len(set().union(*tables)), "names in two tables"


def test_every_row_uses_its_names() -> None:
    for row in ROWS:
        for name in row.names.split():
            word = {"block_type": "dtype", "tensor": "to", "dtype": "dtype"}.get(name, name)
            assert re.search(rf"\b{word}\b", row.body), (name, row.body)


def test_every_method_is_in_a_table() -> None:
    operators = {name for name, member in vars(tl.tensor).items() if name.startswith("__") and callable(member)}
    operators -= {"__init__", "__str__", "__hash__"}
    derived = {row.names.removesuffix(" (method)") for row in _derived()}
    known = _named(METHODS) | derived | REFUSED_METHODS.keys() | UNDEFINED_METHODS
    assert (set(_methods()) | operators) - known == set()


def test_every_method_of_descriptors_is_in_a_table() -> None:
    public = {name for name in dir(tl.tensor_descriptor) if not name.startswith("_")}
    assert public - _named(METHODS) == set()


@pytest.mark.parametrize("name", sorted(UNDEFINED_METHODS))
def test_methods_that_upstream_does_not_define(name: str) -> None:
    assert getattr(tl.tensor, name)(None) is None


def test_every_optional_parameter_is_passed() -> None:
    missing = []
    for name, function in {**_functions(), "range": tl.range, "static_range": tl.static_range,
                           "condition": tl.condition}.items():  # fmt: skip
        if name in REFUSED or name in FRONT_END:
            continue
        bodies = " ".join(row.body for row in ROWS if name in row.names.split())
        target = function.__init__ if inspect.isclass(function) else getattr(function, "fn", function)
        for parameter in inspect.signature(target).parameters.values():
            if parameter.default is parameter.empty or parameter.name.startswith("_") or parameter.name == "arg2":
                continue
            wanted = "range(0, 6, 2" if name == "range" and parameter.name == "step" else f"{parameter.name}="
            if wanted not in bodies and f"{name}.{parameter.name}" not in OPTIONS_ELSEWHERE:
                missing.append(f"{name}({parameter.name}=)")
    assert missing == []


@triton.jit
def convert(x_ptr, out_ptr, T: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x_ptr + i).to(T)
    room = tl.zeros([N], T)
    tl.store(out_ptr + i, tl.where(i < N, value, room).to(tl.float32))


@pytest.mark.parametrize("name", DTYPES)
def test_dtype(name: str) -> None:
    x, out = torch.arange(8, dtype=torch.float32), torch.zeros(8)
    convert[(1,)](x, out, T=getattr(tl, name), N=8)
    largest = {"int1": 1, "float8e4b15": 1.75}.get(name, 7)
    expected = np.minimum(np.arange(8), largest)
    np.testing.assert_array_equal(out.numpy(), expected)


@triton.jit
def block_pointer(x):
    tl.make_block_ptr(x, (4,), (1,), (0,), (4,), (0,))


@triton.jit
def timed_poll(x):
    tl.atomic_poll(x, 1, timeout_ns=1000)


@triton.jit
def advanced(x):
    x.advance((1,))


USES = {"make_block_ptr": block_pointer, "advance": advanced, "atomic_poll(timeout_ns=)": timed_poll}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_METHODS, *REFUSED_VALUES])
def test_refused(name: str) -> None:
    from triton.backends.spirv.lowering.errors import UnsupportedOperation

    reason = {**REFUSED, **REFUSED_METHODS, **REFUSED_VALUES}[name]
    with pytest.raises((UnsupportedOperation, CompilationError)) as error:
        USES[name][(1,)](torch.zeros(16, dtype=torch.int32))
    assert reason in str(error.value)


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.generate_surface"
