"""Kernels of two dimensions read and write neighbours together where sizes and strides are multiples of 16, and each
element by itself where they are not."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from triton.backends.spirv.torch.ops import addressing, launching
from triton.backends.spirv.torch.ops.kept import Kept

from .conftest import compare

OPERATIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "bias": lambda x: x + x[0],
    "column": lambda x: x * x[:, :1],
    "part of rows": lambda x: x[:, : x.shape[1] // 2] * 2,
    "cat": lambda x: torch.cat((x, x), 1),
    "permuted": lambda x: x.view(4, 16, -1).transpose(0, 1).contiguous(),
    "softmax": lambda x: x.softmax(-1),
    "layer norm": lambda x: functional.layer_norm(x, x.shape[1:]),
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "embedding": lambda x: functional.embedding(torch.arange(3, 60, 5, device=x.device), x),
    "gradient of it": lambda x: torch.ops.aten.embedding_dense_backward(
        x, torch.arange(3, 67, device=x.device), 70, -1, False
    ),
    "index_copy": lambda x: torch.zeros_like(x).index_copy(0, torch.arange(63, -1, -1, device=x.device), x),
}

pytestmark = pytest.mark.only_on("Vulkan", "a lane of the CPU device is one element of a vector")


@pytest.fixture(autouse=True)
def unplanned(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, kept in ((addressing, "_forms"), (launching, "_kernels")):
        monkeypatch.setattr(module, kept, Kept(100))


def _widths(launches: list[Any]) -> set[int]:
    """Alignments of accesses to tensors of the last kernel."""
    (loaded,) = launches[-1]._loaded.values()
    return {int(width) for width in re.findall(r"Aligned (\d+)", loaded._compiled.asm["spvasm"])}


@pytest.mark.parametrize("columns", [128, 112, 100, 97])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_of_any_length(dtype: torch.dtype, operation: str, columns: int) -> None:
    x = torch.randn(64, columns, generator=torch.Generator().manual_seed(columns)).to(dtype)
    tolerance = (1e-5, 1e-4) if dtype == torch.float32 else (1e-2, 2e-2)
    compare(OPERATIONS[operation], x, tolerance=tolerance)


@pytest.mark.parametrize("operation", ["bias", "cat", "softmax", "layer norm", "permuted", "embedding"])
def test_neighbours_are_accessed_together(operation: str, launches: list[Any]) -> None:
    x = torch.randn(64, 128).to("spirv")
    OPERATIONS[operation](x)
    assert 16 in _widths(launches)
    OPERATIONS[operation](torch.randn(64, 100).to("spirv"))
    assert 16 not in _widths(launches)


def test_products_of_any_number_of_rows_access_neighbours_together(launches: list[Any]) -> None:
    x = torch.randn(99, 128, dtype=torch.bfloat16).to("spirv")
    for product in (lambda: x @ x[:64].mT, lambda: x.mT @ x):
        product()
        assert 16 in _widths(launches)
    x[:, :64] @ x[:64, :99]
    assert 16 not in _widths(launches)


@pytest.mark.parametrize("offset", [1, 4, 16])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_rows_that_begin_anywhere(operation: str, offset: int) -> None:
    """Strides are multiples of 16, sizes are not, and the first element may lie anywhere."""
    x = torch.randn(64, 160, generator=torch.Generator().manual_seed(offset))
    if operation == "permuted":
        compare(lambda x: x[:, offset : offset + 96].reshape(4, 16, -1).transpose(0, 1).contiguous(), x)
        return
    compare(lambda x: OPERATIONS[operation](x[:, offset:150]), x, tolerance=(1e-5, 1e-4))


def test_embeddings_of_one_type_and_two_widths() -> None:
    """One kernel for strides that are multiples of 16, another for other ones; the sizes are not in its text."""
    for columns in (128, 100, 64, 128, 97):
        compare(OPERATIONS["embedding"], torch.randn(64, columns))
