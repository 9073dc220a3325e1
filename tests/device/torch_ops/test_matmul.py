"""Matrix products with any strides, and linear layers with their gradients."""

import ast
import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from triton import knobs
from triton.backends.spirv.launching import typed_kernels
from triton.backends.spirv.runtime import context as vulkan_context
from triton.backends.spirv.runtime.measuring.measured import capabilities_of
from triton.backends.spirv.runtime.reports.failures import LoopLimitExceeded
from triton.backends.spirv.torch.ops import launching
from triton.backends.spirv.torch.ops.kept import Kept

from .conftest import compare, with_gradients
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 7, 3), (64, 64, 64), (65, 33, 130), (1, 200, 9), (70, 1, 70)])
def test_sizes(m: int, k: int, n: int) -> None:
    compare(lambda a, b: (a @ b, b.t() @ a.t(), a[:, :0] @ b[:0]), values(m, k), values(k, n), tolerance=(1e-5, 1e-4))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32], ids=str)
def test_types(dtype: torch.dtype) -> None:
    a, b = values(19, 21, dtype=dtype), values(21, 40, dtype=dtype)
    compare(lambda a, b: a @ b, a, b, tolerance=(1e-2, 1e-1) if dtype.itemsize == 2 else None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_results_of_float32_of_halves(dtype: torch.dtype) -> None:
    """torch's CPU code has no such product: the sums are those of float64, by no more than float32's rounding."""
    a, b, c = values(3, 17, 1100, dtype=dtype), values(3, 1100, 23, dtype=dtype), values(3, 17, 23)
    (x, y, z), wide = (t.to("spirv") for t in (a, b, c)), torch.bmm(a.double(), b.double())
    more = {"out_dtype": torch.float32}
    out = torch.full((17, 23), float("nan"), device="spirv")
    torch.addmm(z[0], x[0], y[0], beta=0.5, alpha=2, **more, out=out)
    for got, wanted in (
        (torch.mm(x[0], y[0], **more), wide[0]),
        (torch.mm(x[0], y[1].mT.contiguous().mT, **more), a[0].double() @ b[1].double()),
        (torch.bmm(x, y, **more), wide),
        (torch.baddbmm(z, x, y, **more), wide + c.double()),
        (out, 2 * wide[0] + 0.5 * c[0].double()),
    ):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.cpu().double(), wanted, rtol=1e-5, atol=1e-4)
    assert torch.mm(x[0], y[0], out_dtype=dtype).dtype == dtype
    with pytest.raises(RuntimeError, match="out_dtype"):
        torch.mm(x[0], y[0], out_dtype=torch.float64)
    with pytest.raises(RuntimeError, match="out_dtype"):
        torch.mm(x[0], y[0], **more, out=out.to(dtype))


def test_sums_and_factors() -> None:
    a, b, c, bias = values(17, 30), values(30, 66), values(17, 66), values(66)
    compare(lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), a, b, c, tolerance=(1e-5, 1e-4))
    compare(lambda a, b, c: torch.addmm(c, a, b), a, b, bias, tolerance=(1e-5, 1e-4))
    compare(lambda a, b, c: torch.addmm(c * float("nan"), a, b, beta=0), a, b, c, tolerance=(1e-5, 1e-4))
    compare(lambda a, b, c: c.addmm_(a, b), a, b, c, tolerance=(1e-5, 1e-4))
    compare(lambda a, b: (torch.mv(a, b[:, 0]), torch.dot(a[0], b[:, 0])), a, b, tolerance=(1e-5, 1e-4))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16], ids=str)
def test_narrow_integers_wrap(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    a, b, c = (torch.randint(limits.min, limits.max, shape).to(dtype) for shape in ((9, 40), (40, 7), (9, 7)))
    compare(lambda a, b, c: (torch.addmm(c, a, b, beta=3, alpha=2), torch.addmm(c[0], a, b), c.addmm_(a, b)), a, b, c)
    compare(lambda a, b, c: torch.baddbmm(c.expand(2, 9, 7), a.expand(2, 9, 40), b.expand(2, 40, 7), alpha=5), a, b, c)


def test_batches() -> None:
    a, b = values(6, 17, 30), values(6, 30, 20)
    compare(lambda a, b: (torch.bmm(a, b), a @ b[0], a[0] @ b), a, b, tolerance=(1e-5, 1e-4))
    compare(lambda a, b: a.mT[1:, 3:] @ b.mT[1:, ::2, 2:19].mT, a, b, tolerance=(1e-5, 1e-4))
    compare(lambda a, b: torch.baddbmm(b[:, :17, :20], a, b, alpha=0.5), a, b, tolerance=(1e-5, 1e-4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32], ids=str)
def test_a_row_and_a_column(dtype: torch.dtype) -> None:
    """Of matrices that are contiguous along either dimension, or neither, in batches of heads, with what lies beside
    results; against torch in float64."""
    row, matrix = values(1, 77, dtype=dtype), values(77, 131, dtype=dtype)
    batch, heads = values(3, 2, 1, 77, dtype=dtype), values(3, 2, 131, 77, dtype=dtype)

    def products(row: torch.Tensor, matrix: torch.Tensor, batch: torch.Tensor, heads: torch.Tensor) -> Any:
        across = matrix.t().contiguous().t()
        beside = torch.full((3, 133), 7, dtype=matrix.dtype, device=matrix.device)
        torch.mm(row, matrix, out=beside[1:2, 1:132])
        added = matrix[:1] + 1
        return (
            *(row @ one for one in (matrix, across, matrix[:, ::2])),
            *(one.t() @ row.t() for one in (matrix, across, matrix[:, 1:8])),
            torch.addmm(added, row, across, beta=2, alpha=3),
            torch.addmv(added[0], matrix.t(), row[0], alpha=-1),
            batch @ heads.mT,
            heads @ batch.mT,
            beside,
        )

    there = [one.to("spirv") for one in (row, matrix, batch, heads)]
    for found, wide in zip(
        products(*there), products(*(one.double() for one in (row, matrix, batch, heads))), strict=True
    ):
        tolerance = 0 if dtype == torch.int32 else 4 * torch.finfo(dtype).eps
        bound = tolerance * 77 * max(1.0, float(wide.abs().max())) / (8 if dtype == torch.bfloat16 else 1)
        assert (found.cpu().double() - wide).abs().max() <= bound


def test_more_matrices_than_a_grid_has_programs_on_an_axis() -> None:
    a, b = values(65_537, 2, 3), values(65_537, 3, 2)
    compare(torch.bmm, a, b, tolerance=(1e-5, 1e-4))


def test_out_that_is_an_operand() -> None:
    a = values(40, 40)
    there = a.to("spirv")
    torch.testing.assert_close(torch.mm(there, there, out=there).cpu(), a @ a, rtol=1e-5, atol=1e-4)


def test_a_linear_layer_and_its_gradients() -> None:
    compare(
        with_gradients(torch.nn.functional.linear), values(4, 9, 33), values(20, 33), values(20), tolerance=(1e-4, 1e-3)
    )


def test_few_tiles_are_summed_in_parts() -> None:
    a, b, c = values(5, 1100), values(1100, 9), values(5, 9)
    compare(lambda a, b, c: (a @ b, torch.addmm(c, a, b, beta=0.5, alpha=2)), a, b, c, tolerance=(1e-5, 1e-4))


def test_a_loop_that_the_driver_ends_is_reported_by_the_next_wait() -> None:
    units = vulkan_context.of_device(0).device.compute_units.count_or_estimate
    a = torch.ones(units, 1, 70000, dtype=torch.float64, device="spirv")
    for wait in (torch.Tensor.cpu, lambda _: torch.spirv.synchronize()):
        out = torch.bmm(a, a.mT)
        try:
            wait(out)
        except LoopLimitExceeded as error:  # Mesa's of 2022, not that of 2025
            assert vulkan_context.of_device(0).capabilities.driver == "mesa_llvmpipe" and "'matmul_kernel'" in str(
                error
            )
            out.cpu()  # said once
        else:
            assert torch.equal(out.cpu(), torch.full((units, 1, 1), 70000.0, dtype=torch.float64))


def test_hooks_see_launches() -> None:
    names: list[str] = []
    knobs.runtime.launch_enter_hook.add(enter := lambda metadata: names.append(metadata.get()["name"]))
    try:
        a = torch.ones(3, 3, device="spirv")
        a @ a
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
    assert names[-1] == "matmul_kernel"


class Parses:
    """Garbage that parses text when it is collected, and leaves more such garbage."""

    left = True

    def __init__(self) -> None:
        self.circle = self

    def __del__(self) -> None:
        self._parse(20)
        if Parses.left:
            Parses()

    def _parse(self, frames: int) -> None:
        if frames:
            self._parse(frames - 1)
        else:
            ast.parse("x + 1")


def test_garbage_is_not_collected_while_a_kernel_is_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CPython 3.11's parser raises SystemError where its depth of recursion has changed meanwhile."""
    monkeypatch.setattr(launching, "_kernels", Kept(100))
    thresholds = gc.get_threshold()
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        Parses()
        gc.set_threshold(5, *thresholds[1:])
        try:
            compare(torch.mm, values(6, 5), values(5, 8))
        finally:
            gc.set_threshold(*thresholds)
            Parses.left = False
            gc.collect()


def test_kernels_are_compiled_for_what_was_measured_of_the_device(
    monkeypatch: pytest.MonkeyPatch, launches: list[Any]
) -> None:
    """Its matrix units and its own functions are not known before."""
    own = capabilities_of(vulkan_context.of_device(0).device)
    assert own is not None
    other = replace(own, native_math=frozenset({"exp2"}) - own.native_math)
    assert other.arch() != own.arch()
    monkeypatch.setattr(typed_kernels, "capabilities_of", lambda device: other)
    monkeypatch.setattr(launching, "_kernels", Kept(100))
    compare(torch.mm, values(5, 6), values(6, 7))
    (loaded,) = launches[-1]._loaded.values()
    assert loaded._compiled.metadata.target.arch == other.arch()
