"""Grids and arguments that no kernel takes: one error with the argument's name, at any launch."""

import re
from typing import Any, NamedTuple

import numpy
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import from_numpy
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

if not hasattr(JITFunction, "relaunch"):
    pytest.skip("this triton lacks the patch 'launch-errors'", allow_module_level=True)

SIZE = 16


@triton.jit
def scaled(x_ptr, y_ptr, n, factor, pair, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, at < n) * factor + pair[1], at < n)


def torch_tensor(array: numpy.ndarray) -> Any:
    """The array as a tensor on the CPU."""
    return torch.from_numpy(array)


@pytest.fixture(params=[torch_tensor, from_numpy])
def arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Valid arguments, as CPU tensors of torch or as this runtime's own."""
    x, y = (request.param(numpy.ones(SIZE, numpy.float32)) for _ in range(2))
    return {"x_ptr": x, "y_ptr": y, "n": SIZE, "factor": 2.0, "pair": (1, 0.5)}


def launch(arguments: dict[str, Any], grid: Any = (1,), **changed: Any) -> Any:
    return scaled[grid](**(arguments | changed), BLOCK=SIZE)


def assert_right(arguments: dict[str, Any]) -> None:
    y = arguments["y_ptr"]
    found = y.numpy() if isinstance(y, torch.Tensor) else y.to_numpy()
    numpy.testing.assert_array_equal(found, numpy.full(SIZE, 2.5, numpy.float32))


GRIDS: list[tuple[Any, type[Exception], str]] = [
    (None, TypeError, r"a tuple of one to three sizes, or a function that returns one, not None"),
    (2, TypeError, r"one to three sizes.*not 2: write \(2,\)"),
    (lambda meta: 2, TypeError, r"one to three sizes.*not 2: write \(2,\)"),
    (lambda meta: None, TypeError, r"one to three sizes.*not None"),
    ((), ValueError, "the grid is empty"),
    ((1, 1, 1, 2), ValueError, r"the grid \(1, 1, 1, 2\) has 4 axes, and kernels have at most 3: make one axis of two"),
    (lambda meta: [1, 1, 1, 1, 0], ValueError, "has 5 axes"),
    ((1.5,), TypeError, "the grid size of axis 0 must be an integer, not 1.5"),
]


@pytest.mark.parametrize("remembered", [False, True], ids=["first", "repeated"])
@pytest.mark.parametrize(("grid", "kind", "message"), GRIDS, ids=range(len(GRIDS)))
def test_impossible_grids(
    arguments: dict[str, Any], remembered: bool, grid: Any, kind: type[Exception], message: str
) -> None:
    scaled.device_caches.clear()
    scaled.relaunch = None
    if remembered:
        launch(arguments)
    with pytest.raises(kind, match=f"kernel 'scaled': .*{message}") as raised:
        launch(arguments, grid)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None  # one error, not a chain of them


def test_grids_of_other_types_run(arguments: dict[str, Any]) -> None:
    """A fourth axis of one program changes nothing, as on CUDA."""
    for grid in ((1, 1, 1, 1), [1], (numpy.int64(1),), numpy.array([1, 1]), (torch.tensor(1),), (True,)):
        launch(arguments, (0,))
        launch(arguments, grid)
        assert_right(arguments)


class Point(NamedTuple):
    """A named tuple, as kernels take."""

    first: Any
    second: Any


class NoType:
    """Memory whose element type is not known."""

    def data_ptr(self) -> int:
        """An address that is never used."""
        return 4096


COMPLEX = numpy.zeros(SIZE, numpy.complex64)
BAD: list[tuple[str, Any, str, str]] = [
    *(
        (name, kind(2), name, rf"is a NumPy scalar \(numpy\.{kind.__name__}\): pass {name}\.item\(\)")
        for name, kind in [("n", numpy.int32), ("n", numpy.int64), ("n", numpy.uint8), ("n", numpy.bool_)]
        + [("factor", numpy.float32), ("factor", numpy.float16)]
    ),
    ("pair", (1, numpy.float32(0)), "pair[1]", r"is a NumPy scalar \(numpy\.float32\)"),
    ("pair", Point(1, numpy.int32(0)), "pair[1]", r"is a NumPy scalar \(numpy\.int32\)"),
    ("factor", 1 + 2j, "factor", "is a complex number.*real and imaginary"),
    ("factor", numpy.complex64(2), "factor", "is a complex number"),
    ("n", numpy.datetime64(0, "s"), "n", "is of type datetime64: a number, a tensor"),
    ("n", "16", "n", r"is a string.*tl\.constexpr"),
    ("pair", [1, 2.0], "pair", r"is a list: pass torch\.tensor\(pair\) if it is data, or tuple\(pair\)"),
    ("n", {}, "n", "is of type dict: a number, a tensor"),
    (
        "x_ptr",
        COMPLEX,
        "x_ptr",
        r"is a NumPy array: pass torch\.from_numpy\(x_ptr\) or triton\.backends\.spirv\.runtime\.array",
    ),
    ("y_ptr", torch.from_numpy(COMPLEX), "y_ptr", r"has elements of type complex64.*torch\.view_as_real\(y_ptr\)"),
    ("x_ptr", torch.zeros(SIZE, dtype=torch.complex128), "x_ptr", "has elements of type complex128"),
    (
        "x_ptr",
        torch.zeros(SIZE).to(torch.float8_e8m0fnu),
        "x_ptr",
        r"has elements of type float8_e8m0fnu.*x_ptr\.view\(torch\.uint8\)",
    ),
    ("x_ptr", torch.empty(SIZE, dtype=torch.bits8), "x_ptr", "has elements of type bits8"),
    ("x_ptr", torch.eye(SIZE).to_sparse(), "x_ptr", r"is a tensor with the layout torch\.sparse_coo.*to_dense"),
    ("x_ptr", NoType(), "x_ptr", r"has data_ptr\(\), but no dtype"),
]


@pytest.mark.parametrize(("parameter", "value", "named", "message"), BAD, ids=range(len(BAD)))
def test_arguments_that_no_kernel_takes(
    arguments: dict[str, Any], parameter: str, value: Any, named: str, message: str
) -> None:
    launch(arguments)
    with pytest.raises(TypeError, match=rf"kernel 'scaled': argument '{re.escape(named)}' {message}") as raised:
        launch(arguments, **{parameter: value})
    assert raised.value.__suppress_context__
    launch(arguments)
    assert_right(arguments)


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1, 1 << 70])
def test_a_number_past_64_bits_is_an_overflow(arguments: dict[str, Any], value: int) -> None:
    message = rf"kernel 'scaled': argument 'n' is {value}: integers from -2\*\*63 to 2\*\*64 - 1 are taken"
    with pytest.raises(OverflowError, match=message) as raised:
        launch(arguments, n=value)
    assert raised.value.__suppress_context__
    launch(arguments)
    assert_right(arguments)


def test_complex_arrays_do_not_become_buffers() -> None:
    with pytest.raises(TypeError, match="complex64"):
        from_numpy(COMPLEX)


def test_scalars_as_the_error_says_run(arguments: dict[str, Any]) -> None:
    launch(arguments, n=numpy.int32(SIZE).item(), factor=numpy.float32(2).item())
    assert_right(arguments)
    launch(arguments, factor=numpy.float64(2))  # it is a Python float
    assert_right(arguments)


def test_what_a_grid_asks_for_and_the_launch_lacks_is_named(arguments: dict[str, Any]) -> None:
    scaled.relaunch = None
    for name, hint in (("BLOK", r"did you mean BLOCK\?"), ("width", "there are x_ptr, y_ptr, n, factor, pair, BLOCK")):
        with pytest.raises(KeyError) as raised:
            launch(arguments, lambda meta: (meta[name],))  # noqa: B023
        assert re.fullmatch(
            rf"kernel 'scaled': the grid's function asks for meta\['{name}'\], "
            rf"which is no parameter of the kernel; {hint}",
            str(raised.value),
        )
    own: dict[str, int] = {}
    with pytest.raises(KeyError, match="^'n'$"):
        launch(arguments, lambda meta: (own["n"],))


def test_a_missing_argument_is_named(arguments: dict[str, Any]) -> None:
    del arguments["factor"]
    with pytest.raises(TypeError, match="kernel 'scaled': missing a required argument: 'factor'"):
        launch(arguments)
    with pytest.raises(TypeError, match="kernel 'scaled': multiple values for argument 'x_ptr'"):
        scaled[(1,)](1, **arguments, factor=2.0, BLOCK=SIZE)


def test_errors_of_the_arguments_own_stay(arguments: dict[str, Any]) -> None:
    class Gone(NoType):
        dtype = torch.float32

        def data_ptr(self) -> int:
            raise RuntimeError("the memory is gone")

    with pytest.raises(RuntimeError, match="the memory is gone"):
        launch(arguments, x_ptr=Gone())


@triton.jit
def loaded(p, at):
    return tl.load(p + at)


@triton.jit
def optional(x_ptr, bias_ptr, y_ptr, USE: tl.constexpr):
    at = tl.arange(0, 16)
    x = tl.load(x_ptr + at)
    if USE == "guarded":
        if bias_ptr is not None:
            x += tl.load(bias_ptr + at)
    if USE == "sum":
        x += tl.load(bias_ptr + at)
    if USE == "load":
        x += tl.load(bias_ptr)
    if USE == "store":
        tl.store(bias_ptr, 1.0)
    if USE == "helper":
        x += loaded(bias_ptr, at)
    if USE == "renamed":
        p = bias_ptr
        x += tl.load(p + at)
    if USE == "element":
        x += tl.zeros((16,), bias_ptr.dtype.element_ty)
    if USE == "atomic":
        tl.atomic_add(bias_ptr, 1.0)
    if USE == "compare":
        x = tl.where(at < bias_ptr, x, 0.0)
    if USE == "range":
        for _ in range(bias_ptr):
            x += tl.load(x_ptr + at)
    tl.store(y_ptr + at, x)


@pytest.mark.parametrize("use", ["sum", "load", "store", "helper", "renamed", "element", "atomic", "compare", "range"])
def test_none_that_is_used_is_named_at_its_line(use: str) -> None:
    x, y = torch.ones(SIZE), torch.zeros(SIZE)
    message = r"^\S+:\d+: argument 'bias_ptr' is None: pass a tensor or a number, or use it only under"
    with pytest.raises(CompilationError, match=message):
        optional[(1,)](x, None, y, use)


def test_none_that_is_not_used_runs() -> None:
    x, y = torch.ones(SIZE), torch.zeros(SIZE)
    optional[(1,)](x, None, y, "guarded")
    assert torch.equal(y, x)
    optional[(1,)](x, x, y, "guarded")
    assert torch.equal(y, 2 * x)


@triton.jit
def two_faults(x_ptr, bias_ptr, y_ptr):
    at = tl.arange(0, 16)
    tl.store(y_ptr + at, tl.load(x_ptr + at).to(tl.no_such_type))


def test_other_errors_do_not_speak_of_none() -> None:
    with pytest.raises(CompilationError) as raised:
        two_faults[(1,)](torch.ones(SIZE), None, torch.ones(SIZE))
    assert "bias_ptr' is None" not in str(raised.value)


def test_tensors_whose_memory_is_gone_are_named() -> None:
    """A storage of no bytes (as sharded parameters have between steps), and fake tensors: address 0 is not read."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    x, y = torch.ones(SIZE), torch.zeros(SIZE)
    given = {"x_ptr": x, "y_ptr": y, "n": SIZE, "factor": 2.0, "pair": (1, 0.5)}
    launch(given)
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"argument 'x_ptr' \(\*fp32\): the Tensor has elements and no memory"):
        launch(given)
    with FakeTensorMode():
        fake = torch.ones(SIZE)
    with (
        pytest.warns(UserWarning, match="data pointer of FakeTensor"),
        pytest.raises(ValueError, match=r"argument 'y_ptr' .*the FakeTensor has elements and no memory"),
    ):
        launch(given | {"x_ptr": y, "y_ptr": fake})
    launch(given | {"x_ptr": torch.ones(0), "n": 0})  # without elements: address 0 is all there is
    launch(given | {"x_ptr": torch.ones(SIZE)})
    assert_right(given)


def test_a_misspelt_name_of_an_argument_is_guessed(arguments: dict[str, Any]) -> None:
    del arguments["factor"]
    message = r"^kernel 'scaled': missing a required argument: 'factor'; did you mean factor with facto=2\.0\?$"
    with pytest.raises(TypeError, match=message):
        scaled[(1,)](**arguments, facto=2.0, BLOCK=SIZE)
    with pytest.raises(TypeError, match=r"^kernel 'scaled': missing a required argument: 'factor'$"):
        scaled[(1,)](**arguments, BLOCK=SIZE)


def test_a_tensor_without_memory_is_refused_by_name(arguments: dict[str, Any]) -> None:
    message = (
        r"^kernel 'scaled': argument 'x_ptr' \(\*fp32\): the tensor is on device 'meta', where tensors have no memory"
    )
    with pytest.raises(ValueError, match=message):
        launch(arguments, x_ptr=torch.empty(SIZE, device="meta"))
