"""A size that was not seen before needs no other kernel than earlier sizes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from triton.backends.spirv.launching import typed_kernels
from triton.backends.spirv.torch.ops import elementwise, rows
from triton.backends.spirv.torch.ops.addressing import Operands
from triton.backends.spirv.torch.ops.kept import Kept
from triton.backends.spirv.torch.ops.matmul import matmul_kernel

WIDTH = 64


def _rows(n: int) -> torch.Tensor:
    return torch.randn(n, WIDTH, device="spirv")


_OPERATIONS: dict[str, Callable[[int], Any]] = {
    "add": lambda n: _rows(n) + _rows(n),
    "gelu": lambda n: F.gelu(_rows(n)),
    "linear": lambda n: F.linear(_rows(n), _rows(WIDTH)),
    "layer norm": lambda n: F.layer_norm(_rows(n), (WIDTH,)),
    "embedding": lambda n: F.embedding(torch.zeros(n, dtype=torch.long, device="spirv"), _rows(8)),
    "cross entropy": lambda n: F.cross_entropy(_rows(n), torch.zeros(n, dtype=torch.long, device="spirv")),
    "dropout": lambda n: F.dropout(_rows(n)),
    "softmax": lambda n: torch.randn(4, n, device="spirv").softmax(-1),
    "attention": lambda n: F.scaled_dot_product_attention(*torch.randn(3, 1, 2, n, 32, device="spirv")),
}


@pytest.mark.parametrize("name", _OPERATIONS)
def test_new_sizes_load_no_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = _OPERATIONS[name]
    for n in (65, 66, 80, 97, 112, 128):  # of 16, of 2, and others
        operation(n)
    loaded = []
    load = typed_kernels.KernelOfType
    monkeypatch.setattr(typed_kernels, "KernelOfType", lambda *args: loaded.append(args) or load(*args))
    for n in range(66, 120):
        operation(n)
    assert not loaded


def test_products_are_compiled_for_no_number_of_rows(launches: list[Any]) -> None:
    """Neither of the result's nor of those that are summed: no elements next to one another are of several rows."""
    weight = _rows(WIDTH)[:, :48]  # no whole tile
    for product in (lambda x: x @ weight, lambda x: x.mT @ x[:, :48]):
        launches.clear()
        for n in (97, 80, 112, 99, 66):
            product(_rows(n))
        products = [kernel for kernel in launches if kernel._function.fn is matmul_kernel.fn]
        assert len(products) == 5 and len(set(products)) == 1


@pytest.mark.parametrize("shape", [(2,), (1, 16), (3, 5), (7, 1, 64), (33, 100), (40, 2048)])
def test_what_is_counted_is_what_is_planned(shape: tuple[int, ...]) -> None:
    """Plans of tensors without gaps are counted from those of other sizes: the same kernel, grid and integers."""
    for size in (shape, (shape[0] * 3, *shape[1:]), (*shape[:-1], shape[-1] + shape[-1] % 2)):
        x, y = torch.ones(size, device="spirv"), torch.empty(size, dtype=torch.bfloat16, device="spirv")
        given = Operands.of({"out": y}, {"self": x, "other": 2.0})
        body = elementwise.Body.of("self * other")
        assert elementwise._plan(body, given, x.dtype) == elementwise._planned(body, given, x.dtype)
        of_rows, weight = torch.empty(*size[:-1], 1, device="spirv"), torch.ones(size[-1], device="spirv")
        given = Operands.of({"out": y, "mean": of_rows}, {"self": x, "weight": weight, "count": 3.0})
        text, dims = "mean = fn.row_sum(self, mask)\nout = (self - mean) * weight", (len(size) - 1,)
        counted, planned = (plan(text, given, y.shape, dims, x.dtype) for plan in (rows._plan, rows._planned))
        assert counted == planned


def test_rows_of_a_width_share_a_kernel() -> None:
    """However many there are, and for all widths that one tile holds; those of multiples of 16 have another."""
    kernels: dict[bool, set[int]] = {True: set(), False: set()}
    for n in (2, 3, 16, 300):
        for columns in (65, 80, 96, 99):
            x = torch.empty(n, columns, device="spirv")
            plan = rows._plan("out = row", Operands.of({"out": x}, {}), x.shape, (1,), x.dtype)
            kernels[columns % 16 == 0].add(id(plan.kernel))
    assert [len(found) for found in kernels.values()] == [1, 1]


def test_what_was_not_used_for_longest_is_dropped() -> None:
    kept: Kept[int] = Kept(3)
    made: list[int] = []

    def get(number: int) -> int:
        return kept.get(number, lambda: made.append(number) or number)  # type: ignore[func-returns-value]

    for number in (1, 2, 3, 1, 4, 1, 3, 2):  # 4 drops 2, which then drops 4
        assert get(number) == number
    assert made == [1, 2, 3, 4, 2]
    assert get(1) == 1 and get(4) == 4 and made == [1, 2, 3, 4, 2, 4]
