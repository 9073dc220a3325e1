"""A size that was not seen before needs no other kernel than earlier sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (torch's own convention)
from triton.backends.spirv.launching import typed_kernels
from triton.backends.spirv.torch.ops.kept import Kept

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
}


@pytest.mark.parametrize("name", _OPERATIONS)
def test_new_sizes_load_no_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = _OPERATIONS[name]
    for n in (65, 80, 97, 112, 128):  # sizes that are multiples of 16, and others
        operation(n)
    loaded = []
    load = typed_kernels.KernelOfType
    monkeypatch.setattr(typed_kernels, "KernelOfType", lambda *args: loaded.append(args) or load(*args))
    for n in range(66, 120):
        operation(n)
    assert not loaded


def test_what_was_not_used_for_longest_is_dropped() -> None:
    kept: Kept[int] = Kept(3)
    made: list[int] = []

    def get(number: int) -> int:
        return kept.get(number, lambda: made.append(number) or number)  # type: ignore[func-returns-value]

    for number in (1, 2, 3, 1, 4, 1, 3, 2):  # 4 drops 2, which then drops 4
        assert get(number) == number
    assert made == [1, 2, 3, 4, 2]
    assert get(1) == 1 and get(4) == 4 and made == [1, 2, 3, 4, 2, 4]
