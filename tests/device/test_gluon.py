"""Gluon kernels of layouts and operations that belong to no vendor, against NumPy; the vendors' modules are refused."""

import numpy as np
import pytest
import torch
from triton.compiler.errors import CompilationError
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from tests.device.helpers import Guarded, device_capabilities

LANES = device_capabilities().subgroup_size


@gluon.jit
def doubled(x, out, n, LANES: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([2], [LANES], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out + at, gl.load(x + at, mask=at < n) * 2, mask=at < n)


@pytest.mark.parametrize("n", [1, 255, 256, 1001])
def test_loads_and_stores(n: int) -> None:
    x, out = torch.arange(n, dtype=torch.float32), Guarded(n, "float32", offset=1)
    doubled[(-(-n // 256),)](x, out.tensor, n, LANES=LANES, BLOCK=256)
    np.testing.assert_array_equal(out.values(), x.numpy() * 2)


@gluon.jit
def through_shared(x, out, KIND: gl.constexpr, LANES: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 4, 4], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([4, 1], [4, LANES // 4], [1, 4], [0, 1])
    if KIND == "swizzled":
        shared: gl.constexpr = gl.SwizzledSharedLayout(4, 2, 4, [1, 0])
    elif KIND == "padded":
        shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[32, 4]], [32, 32], [1, 0])
    else:
        shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, rows))
    room = gl.allocate_shared_memory(gl.float32, [32, 32], shared)
    room.store(gl.load(x + i[:, None] * 32 + j[None, :]))
    gl.barrier()
    value = room.permute((1, 0)).load(columns) if KIND == "plain" else gl.permute(room.load(columns), (1, 0))
    value = gl.convert_layout(value, rows)
    gl.store(out + i[:, None] * 32 + j[None, :], value)


@pytest.mark.parametrize("kind", ["plain", "swizzled", "padded"])
def test_shared_memory(kind: str) -> None:
    x = torch.arange(1024, dtype=torch.float32).reshape(32, 32)
    out = Guarded((32, 32), "float32")
    through_shared[(1,)](x, out.tensor, KIND=kind, LANES=LANES)
    np.testing.assert_array_equal(out.values(), x.numpy().T)


@gluon.jit
def reduced(x, sums, most, LANES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [LANES // 4, 4], [2, 2], [1, 0])
    i = gl.arange(0, 16, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))
    value = gl.load(x + i[:, None] * 64 + j[None, :])
    gl.store(sums + i, gl.sum(value, axis=1))
    gl.store(most + j, gl.max(value, axis=0))


def test_reductions_to_slices() -> None:
    x = torch.from_numpy(np.random.default_rng(1).integers(-99, 99, (16, 64)).astype(np.int32))
    sums, most = Guarded(16, "int32"), Guarded(64, "int32")
    reduced[(1,)](x, sums.tensor, most.tensor, LANES=LANES)
    np.testing.assert_array_equal(sums.values(), x.numpy().sum(1))
    np.testing.assert_array_equal(most.values(), x.numpy().max(0))


@gluon.jit
def linear(x, out, LAYOUT: gl.constexpr):
    at = gl.arange(0, 256, layout=LAYOUT)
    gl.store(out + at, gl.load(x + at) + 1)


def test_linear_layouts() -> None:
    lanes, warps = [1 << k for k in range(LANES.bit_length() - 1)], []
    while len(warps) < 2:
        warps.append(2 * (warps or lanes)[-1])
    registers = [1 << k for k in range(8) if 1 << k > warps[-1]]
    layout = gl.DistributedLinearLayout([[k] for k in registers], [[k] for k in lanes], [[k] for k in warps], [], [256])
    x, out = torch.arange(256, dtype=torch.float32), Guarded(256, "float32")
    linear[(1,)](x, out.tensor, LAYOUT=layout)
    np.testing.assert_array_equal(out.values(), x.numpy() + 1)


@gluon.jit
def product(a, b, out, LANES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([2, 2], [LANES // 4, 4], [2, 2], [1, 0])
    left: gl.constexpr = gl.DotOperandLayout(0, layout, 0)
    right: gl.constexpr = gl.DotOperandLayout(1, layout, 0)
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * 32 + j[None, :]
    total = gl.full([32, 32], 1.0, gl.float32, layout)
    x = gl.convert_layout(gl.load(a + at), left)
    y = gl.convert_layout(gl.load(b + at), right)
    gl.store(out + at, gl.dot_fma(x, y, total))


def test_dot_fma() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-8, 8, (32, 32)).astype(np.float32) for _ in range(2))
    out = Guarded((32, 32), "float32")
    product[(1,)](torch.from_numpy(a), torch.from_numpy(b), out.tensor, LANES=LANES)
    np.testing.assert_array_equal(out.values(), a @ b + 1)


@gluon.jit
def loops(x, out, n, LANES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    at = gl.arange(0, 128, layout=layout)
    total = gl.zeros([128], gl.int32, layout)
    for row in range(n):
        value = gl.load(x + row * 128 + at)
        total += gl.where(value > 0, value, -value)
    gl.atomic_add(out + at, total)


def test_loops_and_atomics() -> None:
    x = torch.from_numpy(np.random.default_rng(3).integers(-99, 99, (5, 128)).astype(np.int32))
    out = Guarded(128, "int32", fill=0)
    loops[(3,)](x, out.tensor, 5, LANES=LANES)
    np.testing.assert_array_equal(out.values(), np.abs(x.numpy()).sum(0) * 3)


@gluon.jit
def barriers(x):
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)


@gluon.jit
def copies(x):
    async_copy.wait_group(0)


@gluon.jit
def by_path(x):
    gl.amd.cdna3.buffer_load(x, 0)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [(barriers, "nvidia.hopper.mbarrier"), (copies, "nvidia.ampere.async_copy"), (by_path, "gluon.language.amd")],
)
def test_vendors_modules_are_refused_by_name(kernel: object, name: str) -> None:
    with pytest.raises(CompilationError) as error:
        kernel[(1,)](torch.zeros(4))  # type: ignore[index]
    assert name in str(error.value) and "hardware of one vendor" in str(error.value)
