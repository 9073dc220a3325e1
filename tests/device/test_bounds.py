"""Accesses outside of the tensor that was passed (``check_bounds=True``): not done, and raised with their place."""

import inspect
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv import runtime
from triton.backends.spirv.runtime import OutOfBounds, array
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.torch import registration
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.device.forks import run_python
from tests.device.helpers import Guarded

#: What tensors that are read lie in.
AROUND = -5


def inner(values: torch.Tensor, around: int = 64) -> torch.Tensor:
    """A view of ``values`` in the middle of a larger tensor of AROUND."""
    whole = torch.full((values.numel() + 2 * around,), AROUND, dtype=values.dtype)
    whole[around : around + values.numel()] = values.view(-1)
    return whole[around : around + values.numel()].view(values.shape)


def line_of(kernel: Any, text: str) -> int:
    """The line of this file at which the source of ``kernel`` has ``text``."""
    lines, first = inspect.getsourcelines(kernel.fn)
    found = [number for number, line in enumerate(lines) if text in line]
    assert len(found) == 1, text
    return first + found[0]


def failure(launch: Callable[[], Any]) -> OutOfBounds:
    """The error of a launch."""
    with pytest.raises(IndexError) as caught:
        launch()
    assert isinstance(caught.value, OutOfBounds)
    return caught.value


def facts(error: OutOfBounds) -> tuple[str, int, int, int]:
    """(argument, index, elements, count)."""
    return error.argument, error.index, error.elements, error.count


@triton.jit
def copy_kernel(x_ptr, y_ptr, shift, n, other, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + shift + at, mask=at < n, other=other)
    tl.store(y_ptr + at, x, mask=at < n)


def test_load_past_the_end_gives_other():
    x, out = inner(torch.arange(1000, dtype=torch.int32)), Guarded(1024, "int32")
    error = failure(lambda: copy_kernel[(4,)](x, out.tensor, 0, 1024, 77, BLOCK=256, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 1000, 24) and 1000 <= error.index < 1024
    assert (error.kernel, error.program) == ("copy_kernel", (3, 0, 0))
    assert (Path(error.file).name, error.line) == ("test_bounds.py", line_of(copy_kernel, "tl.load"))
    assert str(error) == (
        f"{error.file}:{error.line}: kernel 'copy_kernel': load out of bounds: argument 'x_ptr' at "
        f"index {error.index}, but it has 1000 elements; program (3, 0, 0); 24 such accesses in this "
        "launch; none was done"
    )
    assert (out.values() == np.where(np.arange(1024) < 1000, np.arange(1024), 77)).all()


def test_load_before_the_beginning_gives_zero_without_other():
    x, out = inner(torch.arange(1, 65, dtype=torch.int16)), Guarded(64, "int16")
    error = failure(lambda: plain_copy_kernel[(1,)](x, out.tensor, -3, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 64, 3) and error.index in (-3, -2, -1)
    assert (out.values() == np.concatenate([np.zeros(3), np.arange(1, 62)])).all()


@triton.jit
def plain_copy_kernel(x_ptr, y_ptr, shift, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + shift + at))


@triton.jit
def shifted_store_kernel(x_ptr, y_ptr, shift, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + shift + at, tl.load(x_ptr + at))


@pytest.mark.parametrize("dtype", ("int8", "float16", "float32", "float64", "bool"))
@pytest.mark.parametrize(("shift", "index"), ((-1, -1), (1, 128)))
def test_store_outside_leaves_the_neighbours(dtype, shift, index):
    out = Guarded(128, dtype, fill=0)
    x = torch.ones(128, dtype=getattr(torch, dtype))
    error = failure(lambda: shifted_store_kernel[(1,)](x, out.tensor, shift, BLOCK=128, check_bounds=True))
    assert facts(error) == ("y_ptr", index, 128, 1)
    assert ": store out of bounds: " in str(error) and "such accesses" not in str(error)
    assert error.line == line_of(shifted_store_kernel, "tl.store")
    written = np.ones(128)
    written[-1 if shift < 0 else 0] = 0
    assert (out.values() == written).all()


def test_lanes_that_a_mask_turns_off_may_be_anywhere():
    x, out = inner(torch.arange(10, dtype=torch.float32)), Guarded(10, "float32")
    for n in (0, 7, 10):
        copy_kernel[(3,)](x, out.tensor, 0, n, 0.0, BLOCK=1024, check_bounds=True)
        assert (out.values()[:n] == np.arange(n)).all()


@pytest.mark.parametrize("shift", (0, -1))
def test_one_element_of_a_vector_access(shift):
    """Half-precision elements of an aligned block are one access without checks."""
    x, out = inner(torch.arange(1023, dtype=torch.float16)), Guarded(1024, "float16")
    kernel = copy_kernel[(1,)](torch.zeros(1024, dtype=torch.float16), out.tensor, 0, 1024, 9.0, BLOCK=1024)
    assert kernel.metadata.reports == []
    error = failure(lambda: plain_copy_kernel[(1,)](x, out.tensor, shift, BLOCK=1024, check_bounds=True))
    assert facts(error) == ("x_ptr", 1023 if shift == 0 else -1, 1023, 1)
    values = np.arange(1024, dtype=np.float16) + np.float16(shift)
    values[-1 if shift == 0 else 0] = 0
    assert (out.values() == values).all()


@triton.jit
def tile_kernel(x_ptr, y_ptr, x_row, x_column, y_row, y_column, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + rows * x_row + columns * x_column)
    tl.store(y_ptr + rows * y_row + columns * y_column, x)


def test_strided_tiles():
    whole = torch.arange(40 * 64, dtype=torch.float32).view(40, 64)
    view, out = whole[4:36, 8:40], Guarded((32, 32), "float32")
    tile_kernel[(2, 2)](view, out.tensor, 64, 1, 32, 1, BM=16, BN=16, check_bounds=True)
    assert (out.values() == view.numpy()).all()
    tile_kernel[(2, 2)](view.T, out.tensor, 1, 64, 32, 1, BM=16, BN=16, check_bounds=True)
    assert (out.values() == view.T.numpy()).all()
    error = failure(lambda: tile_kernel[(2, 3)](view, out.tensor, 64, 1, 32, 1, BM=16, BN=16, check_bounds=True))
    # The last row of the view ends its memory: index 31 · 64 + 31. Columns 32 to 47 of it are outside.
    assert (error.argument, error.program, error.elements) == ("x_ptr", (1, 2, 0), 1024)
    assert 31 * 64 + 32 <= error.index < 31 * 64 + 48
    assert "it has 1024 elements, at indices 0 to 2015;" in str(error)
    assert error.count == 16 + 16  # those loads, and as many stores past the last row of the output
    assert out.values().shape == (32, 32)


def test_numpy_arrays_with_strides_of_their_own():
    out = array(np.zeros(32, np.float32))
    backwards = np.arange(100, dtype=np.float32)[60:20:-1]
    strided_kernel[(1,)](array(backwards), out, -1, BLOCK=32, check_bounds=True)
    assert (out.array == backwards[:32]).all()
    error = failure(lambda: strided_kernel[(1,)](array(backwards[:20]), out, -1, BLOCK=32, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 20, 12) and -32 < error.index <= -20
    assert "at indices -19 to 0" in str(error)
    fields = np.zeros(32, [("a", np.float32), ("b", np.float32), ("c", np.float16)])
    fields["a"] = np.arange(32)
    field = array(fields["a"][::2])  # 20 bytes apart: five elements
    strided_kernel[(1,)](field, out, 5, BLOCK=16, check_bounds=True)
    assert (out.array[:16] == np.arange(0, 32, 2)).all()


@triton.jit
def strided_kernel(x_ptr, y_ptr, step, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at * step))


@triton.jit
def loop_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    pointers = x_ptr + at
    for _ in range(n):
        total += tl.load(pointers)
        pointers += BLOCK
    while n > 0:
        pointers -= BLOCK
        n -= 1
    tl.store(y_ptr + at, total + tl.load(pointers))


def test_pointers_that_loops_carry():
    x, out = inner(torch.ones(256)), Guarded(64, "float32")
    loop_kernel[(1,)](x, out.tensor, 4, BLOCK=64, check_bounds=True)
    assert (out.values() == 5).all()
    error = failure(lambda: loop_kernel[(1,)](x, out.tensor, 6, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 256, 128) and 256 <= error.index < 320
    assert error.line == line_of(loop_kernel, "total += tl.load")
    assert (out.values() == 5).all()


@triton.jit
def length_kernel(x_ptr, y_ptr):
    length = 0
    while tl.load(x_ptr + length) != 0:
        length += 1
    tl.store(y_ptr, length)


def test_load_in_the_condition_of_a_loop():
    out = Guarded(1, "int32")
    length_kernel[(1,)](inner(torch.tensor([3, 1, 4, 0, 5])), out.tensor, check_bounds=True)
    assert out.values() == 3
    error = failure(
        lambda: length_kernel[(1,)](inner(torch.ones(20, dtype=torch.int64)), out.tensor, check_bounds=True)
    )
    assert facts(error) == ("x_ptr", 20, 20, 1) and out.values() == 20


@triton.jit
def either_kernel(a_ptr, b_ptr, y_ptr, first, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(tl.where(at < first, a_ptr + at, b_ptr + (at - first)))
    only = tl.load(a_ptr + at, mask=at < first)
    tl.store(y_ptr + at, x + only)


def test_pointers_of_two_arguments():
    a, b, out = inner(torch.ones(10)), inner(torch.full((54,), 2.0)), Guarded(64, "float32")
    either_kernel[(1,)](a, b, out.tensor, 10, BLOCK=64, check_bounds=True)
    assert (out.values() == np.array([2.0] * 10 + [2.0] * 54)).all()
    error = failure(lambda: either_kernel[(1,)](a, b, out.tensor, 8, BLOCK=64, check_bounds=True))
    assert error.count == 2 and "argument 'a_ptr' at index " in str(error)
    assert re.search(r" or argument 'b_ptr' at index 5[45], but it has 54 elements; ", str(error))
    # An access through one of the arguments alone is checked against that one, whatever the other's tensor is.
    whole = torch.ones(128)
    error = failure(lambda: either_kernel[(1,)](whole[:10], whole[10:], out.tensor, 64, BLOCK=64, check_bounds=True))
    assert facts(error) == ("a_ptr", error.index, 10, 54)
    assert error.line == line_of(either_kernel, "only = ")


@triton.jit
def atomic_kernel(x_ptr, old_ptr, at, value, KIND: tl.constexpr):
    pointer = x_ptr + at
    element: tl.constexpr = x_ptr.dtype.element_ty
    if KIND == "add":
        old = tl.atomic_add(pointer, value)
    elif KIND == "max":
        old = tl.atomic_max(pointer, value)
    elif KIND == "cas":
        old = tl.atomic_cas(pointer, tl.full((), 3, element), value.to(element))
    elif KIND == "load":
        old = tl.atomic_load(pointer)
    else:
        tl.atomic_store(pointer, value)
        old = value
    tl.store(old_ptr, old)


@pytest.mark.parametrize(
    ("kind", "name", "dtype"),
    (
        ("add", "atomic_rmw", "int32"),
        ("add", "atomic_rmw", "float16"),
        ("max", "atomic_rmw", "int32"),
        ("cas", "atomic_cas", "int32"),
        ("cas", "atomic_cas", "int16"),
        ("load", "atomic_load", "int32"),
        ("load", "atomic_load", "int16"),
        ("store", "atomic_store", "int32"),
        ("store", "atomic_store", "int16"),
    ),
)
def test_atomic_operations(kind, name, dtype):
    x, old = Guarded(4, dtype, fill=0), Guarded(1, dtype)
    x.tensor.fill_(3)
    for at in (-1, 4):
        error = failure(lambda at=at: atomic_kernel[(1,)](x.tensor, old.tensor, at, 9, KIND=kind, check_bounds=True))
        assert facts(error) == ("x_ptr", at, 4, 1)
        assert f": {name} out of bounds: " in str(error)
        assert (x.values() == 3).all() and old.values() == (9 if kind == "store" else 0)
    atomic_kernel[(1,)](x.tensor, old.tensor, 2, 9, KIND=kind, check_bounds=True)
    assert old.values() == (9 if kind == "store" else 3)


@triton.jit
def poll_kernel(x_ptr, found_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(found_ptr + at, tl.atomic_poll(x_ptr + at, tl.full((BLOCK,), 3, tl.int32)))


def test_poll_does_not_wait_for_what_is_not_there():
    x, found = inner(torch.full((60,), 3, dtype=torch.int32)), Guarded(64, "int32")
    error = failure(lambda: poll_kernel[(1,)](x, found.tensor, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 60, 4) and ": atomic_poll out of bounds: " in str(error)
    assert (found.values() == [1] * 60 + [0] * 4).all()


@triton.jit
def atomic_block_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(x_ptr + at % n, at.to(tl.float32))


def test_atomic_block():
    x = Guarded(8, "float32", fill=0)
    error = failure(lambda: atomic_block_kernel[(2,)](x.tensor, 10, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 8, 24) and error.index in (8, 9)
    assert (x.values() == [2 * sum(range(first, 64, 10)) for first in range(8)]).all()


@triton.jit
def cast_kernel(x_ptr, y_ptr, at):
    tl.store(y_ptr, tl.load((x_ptr + at).to(tl.pointer_type(tl.int64))))


def test_access_that_straddles_the_end():
    # The access that is done is at a multiple of 8 bytes.
    x, out = inner(torch.arange(1, 4, dtype=torch.int32), around=63), Guarded(1, "int64")
    cast_kernel[(1,)](x, out.tensor, 1, check_bounds=True)
    assert out.values() == 3 << 32 | 2
    error = failure(lambda: cast_kernel[(1,)](x, out.tensor, 2, check_bounds=True))
    assert facts(error) == ("x_ptr", 2, 3, 1)
    assert "at index 2 (8 bytes from there), but it has 3 elements" in str(error)


def test_offsets_past_32_bits():
    """Unchecked, pointers are held as 32-bit offsets, and 2³⁰ elements of four bytes are none."""
    x, out = inner(torch.ones(64)), Guarded(64, "float32")
    for shift in (1 << 30, -(1 << 30), 1 << 29):
        error = failure(lambda shift=shift: plain_copy_kernel[(1,)](x, out.tensor, shift, BLOCK=64, check_bounds=True))
        assert facts(error) == ("x_ptr", error.index, 64, 64) and shift <= error.index < shift + 64


def test_tensor_without_elements():
    out = Guarded(64, "float32")
    error = failure(lambda: plain_copy_kernel[(1,)](torch.empty(0), out.tensor, 0, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 0, 64)
    assert (out.values() == 0).all()


@triton.jit
def tuple_kernel(pair, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(pair[1] + at, tl.load(pair[0] + at))


def test_elements_of_a_tuple():
    x, out = inner(torch.ones(60)), Guarded(64, "float32")
    error = failure(lambda: tuple_kernel[(1,)]((x, out.tensor), BLOCK=64, check_bounds=True))
    assert facts(error) == ("pair[0]", error.index, 60, 4)


@triton.jit
def descriptor_kernel(x, y_ptr, columns, M: tl.constexpr, N: tl.constexpr):
    made = tl.make_tensor_descriptor(y_ptr, shape=[M, columns], strides=[columns, 1], block_shape=[M, N])
    made.store([0, 0], x.load([0, 0]))


def test_descriptors():
    x, out = inner(torch.arange(64, dtype=torch.float32).view(4, 16)), Guarded((4, 16), "float32")
    launch = descriptor_kernel[(1,)]
    launch(TensorDescriptor(x, [4, 16], [16, 1], [4, 16]), out.tensor, 16, M=4, N=16, check_bounds=True)
    assert (out.values() == x.numpy()).all()
    error = failure(
        lambda: launch(TensorDescriptor(x, [8, 16], [32, 1], [4, 16]), out.tensor, 16, M=4, N=16, check_bounds=True)
    )
    assert facts(error) == ("x", error.index, 64, 32) and 64 <= error.index
    assert error.line == line_of(descriptor_kernel, "x.load")
    error = failure(
        lambda: launch(TensorDescriptor(x, [4, 16], [16, 1], [4, 16]), out.tensor[:2], 16, M=4, N=16, check_bounds=True)
    )
    assert facts(error) == ("y_ptr", error.index, 32, 32) and 32 <= error.index < 64


@triton.jit(noinline=True)
def called(pointer, BLOCK: tl.constexpr):
    return tl.load(pointer + tl.arange(0, BLOCK))


@triton.jit
def calling_kernel(a_ptr, b_ptr, y_ptr, BLOCK: tl.constexpr):
    a = called(a_ptr, BLOCK)
    b = called(b_ptr, BLOCK)
    tl.store(y_ptr + tl.arange(0, BLOCK), a + b)


def test_function_that_is_called_with_two_arguments():
    a, b, out = inner(torch.ones(64)), inner(torch.ones(60)), Guarded(64, "float32")
    error = failure(lambda: calling_kernel[(1,)](a, b, out.tensor, BLOCK=64, check_bounds=True))
    assert facts(error) == ("b_ptr", error.index, 60, 4)
    assert error.line == line_of(called, "tl.load")
    assert f"(called from {error.file}:{line_of(calling_kernel, 'b = called')})" in str(error)


@triton.jit
def table_kernel(table_ptr, y_ptr, address, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(tl.load(table_ptr).to(tl.pointer_type(tl.float32)) + at)
    # An address below 2³¹, which some devices have, is specialized to int32.
    tl.store(y_ptr + at, x + tl.load(address.to(tl.int64).to(tl.pointer_type(tl.float32)) + at))


def test_pointers_without_an_argument_are_not_checked(caplog):
    x, out = runtime.from_numpy(np.ones(64, np.float32)), runtime.zeros(64, "float32")
    table = runtime.from_numpy(np.array([x.data_ptr()]))
    table_kernel[(1,)](table, out, x.data_ptr(), BLOCK=64, check_bounds=True)
    assert (out.to_numpy() == 2).all()
    assert [record.getMessage() for record in caplog.records] == [
        "kernel 'table_kernel': the bounds of 2 of its memory operations are not checked, because their pointers may "
        "not come from its arguments: they come from memory, from integers, from tl.reduce, or through a function of "
        "tl.map_elementwise"
    ]
    # Beside them the others are.
    error = failure(lambda: table_kernel[(1,)](table, out[:60], x.data_ptr(), BLOCK=64, check_bounds=True))
    assert facts(error) == ("y_ptr", error.index, 60, 4)


@triton.jit
def _follow(pointer):
    return tl.load(pointer)


@triton.jit
def mapped_kernel(x_ptr, y_ptr, shift, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.map_elementwise(_follow, x_ptr + shift + at))


def test_pointers_that_a_mapped_function_is_given_are_not_checked(caplog):
    whole, out = torch.arange(128, dtype=torch.float32), Guarded(64, "float32")
    mapped_kernel[(1,)](whole[32:96], out.tensor, 1, BLOCK=64, check_bounds=True)
    assert (out.values() == np.arange(33, 97)).all()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("kernel 'mapped_kernel': the bounds of 1 of its memory operations are not checked")
    assert message.endswith(", or through a function of tl.map_elementwise")


def test_device_memory():
    whole = runtime.full(256, -1, "int32")
    x, out = runtime.from_numpy(np.arange(60, dtype=np.int32)), whole[64:128]
    error = failure(lambda: plain_copy_kernel[(1,)](x, out, 0, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 60, 4)
    error = failure(lambda: shifted_store_kernel[(1,)](out, out, 40, BLOCK=64, check_bounds=True))
    assert facts(error) == ("y_ptr", error.index, 64, 40)
    values = whole.to_numpy()
    assert (values[:64] == -1).all() and (values[128:] == -1).all()
    # The next launch starts afresh.
    plain_copy_kernel[(1,)](out, out, 0, BLOCK=64, check_bounds=True)


def test_torch_tensors_of_the_device():
    registration.register()
    device = f"spirv:{current().index}"
    x, out = torch.arange(60, device=device), torch.zeros(64, dtype=torch.int64, device=device)
    error = failure(lambda: plain_copy_kernel[(1,)](x, out, 0, BLOCK=64, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 60, 4)
    assert (out.cpu() == torch.cat([torch.arange(60), torch.zeros(4)])).all()


@triton.jit
def assert_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_assert(x > 0, "not positive")
    tl.device_print("x", x)
    tl.store(y_ptr + tl.arange(0, BLOCK), x)


def test_beside_an_assertion_and_prints(capfd):
    x, out = inner(torch.ones(60, dtype=torch.int32)), Guarded(64, "int32")
    error = failure(lambda: assert_kernel[(1,)](x, out.tensor, BLOCK=64, debug=True, check_bounds=True))
    assert facts(error) == ("x_ptr", error.index, 60, 4)
    (note,) = error.__notes__
    assert "kernel 'assert_kernel': assertion failed: not positive; program (" in note
    printed = capfd.readouterr().out.splitlines()
    assert sorted(line.rpartition(": ")[2] for line in printed) == ["0"] * 4 + ["1"] * 60


def run_script(script: str, folder: Path, arguments: Sequence[str] = (), **environment: str) -> str:
    """What a script that is run with these variables prints."""
    file = folder / "script.py"
    file.write_text(script)
    done = run_python([str(file), *arguments], os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


SCRIPT = """
import sys, torch, triton, triton.language as tl
from triton.backends.spirv import runtime
from triton.backends.spirv.runtime.context import current

@triton.jit
def kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))

whole = torch.full((300, ), -1.0)
x, y = whole[100:160], torch.zeros(64)
options = {"check_bounds": False} if "off" in sys.argv else {}
try:
    kernel[(1, )](x, y, BLOCK=64, **options)
    print("no error", y.tolist() == x.tolist() + [-1.0] * 4)
except IndexError as error:
    print(error.argument, error.elements, error.count, y.tolist() == x.tolist() + [0.0] * 4)
buffer, native = runtime.zeros(64, "float32"), current().native
before = native.submitted
kernel[(1, )](buffer, buffer, BLOCK=64, **options)
print(native.submitted - before)
"""


@pytest.mark.parametrize("way", ("zero-copy", "staged", "imported"))
def test_variable_and_ways_of_host_memory(way, tmp_path):
    own = current()
    if way == "zero-copy" and own.host_memory != way:
        pytest.skip("host memory is not the device's")
    if way == "imported" and not own.device.host_import_alignment:
        pytest.skip("the device lacks VK_EXT_external_memory_host")
    environment = {"TRITON_SPIRV_HOST_MEMORY": way, "TRITON_SPIRV_CHECK_BOUNDS": "1"}
    assert run_script(SCRIPT, tmp_path, **environment) == "x_ptr 60 4 True\n1\n"


def test_a_launch_says_otherwise_than_the_variable(tmp_path):
    assert run_script(SCRIPT, tmp_path, ["off"], TRITON_SPIRV_CHECK_BOUNDS="1") == "no error True\n1\n"
    assert run_script(SCRIPT, tmp_path, TRITON_SPIRV_CHECK_BOUNDS="0") == "no error True\n1\n"
