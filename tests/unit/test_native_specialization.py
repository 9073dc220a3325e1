"""The native specialisation of tensors gives what the Python one gives, and asks it about unusual ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.launching.specialization import (
    POINTER_RANGE,
    fast_tensor_specialization,
    tensor_specialization,
)
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime.native_module import native
from triton.runtime.jit import MockTensor, reinterpret


class Storage:
    def __init__(self, size: Any) -> None:
        self._size = size

    def nbytes(self) -> Any:
        return self._size


class Fake:
    """A tensor of a size that tests cannot allocate."""

    def __init__(self, size: Any, address: int = 1 << 40) -> None:
        self._size, self._address = size, address

    def data_ptr(self) -> int:
        return self._address

    def untyped_storage(self) -> Storage:
        return Storage(self._size)


class Ranged:
    """A tensor that tells the size of its memory, and has no other attributes."""

    __slots__ = ("_size",)

    def __init__(self, size: Any) -> None:
        self._size = size

    def data_ptr(self) -> int:
        return 0

    def ptr_range(self) -> Any:
        return self._size


class Late:
    """A tensor whose attributes differ from its type's."""

    def __init__(self, size: int) -> None:
        self._tensor = Fake(size)

    def ptr_range(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)


class Silent:
    """A tensor that does not tell its size."""

    def data_ptr(self) -> int:
        return 1 << 40


class Typed(Silent):
    """An address and a type, whose storage is itself, as kernel libraries pass them."""

    def untyped_storage(self) -> Typed:
        return self


class Subclass(torch.Tensor):
    """torch's way to make a tensor of another kind."""


WHOLE = torch.zeros(64)
SIZES = (0, POINTER_RANGE - 1, POINTER_RANGE, POINTER_RANGE + 1, 1 << 40, 1 << 70)
TENSORS = [
    WHOLE,
    WHOLE[1:],
    WHOLE[4:],
    WHOLE[:0],
    torch.zeros(0),
    torch.zeros(8, 8).T,
    torch.zeros(3, dtype=torch.bool),
    WHOLE.as_subclass(Subclass),
    WHOLE[1:].as_subclass(Subclass),
    torch.nn.Parameter(WHOLE),
    reinterpret(WHOLE[1:], tl.int32),
    array(np.zeros(64)),
    array(np.zeros(64)[1:]),
    array(np.zeros((4, 4))[::-1]),
    array(np.zeros(0)),
    MockTensor(torch.float32),
    Silent(),
    Typed(),
    Ranged(float("inf")),
    *(kind(size) for kind in (Fake, Ranged, Late) for size in SIZES),
    *(Fake(np.int64(size)) for size in SIZES[:-1]),  # as a tensor that is being traced: no plain int
    *(Fake(8, address) for address in (0, 8, 16, (1 << 63) + 16, (1 << 64) - 16, (1 << 64) - 1)),
]


def test_the_backend_uses_it() -> None:
    backend = SPIRVBackend(GPUTarget("spirv", "generic", 32))
    assert backend.get_tensor_specialization is fast_tensor_specialization() is not tensor_specialization


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda tensor: type(tensor).__name__)
def test_it_is_the_python_one(tensor: Any) -> None:
    fast = native().tensor_specialization(tensor_specialization, POINTER_RANGE)
    assert fast(tensor) == tensor_specialization(tensor)
    for align in (False, True):
        assert fast(tensor, align=align) == fast(tensor, align) == tensor_specialization(tensor, align)


def test_python_is_asked_for_the_unusual_alone() -> None:
    asked: list[Any] = []

    def fallback(tensor: Any, align: bool = False) -> str:
        asked.append(tensor)
        return f"asked with {align}"

    fast = native().tensor_specialization(fallback, 256)
    usual = (WHOLE, Fake(256), Fake(257), Ranged(256))
    assert [fast(tensor, align=True) for tensor in usual] == ["DS", "DS", "D", "DS"]
    assert asked == []
    unusual = [Silent(), Late(1), Fake(np.int64(1)), Fake(1 << 70), Ranged(1.0)]
    assert [fast(tensor, align=True) for tensor in unusual] == ["asked with True"] * len(unusual)
    assert asked == unusual


class Broken(Fake):
    """A tensor that raises."""

    def data_ptr(self) -> int:
        raise RuntimeError("freed")

    def untyped_storage(self) -> Storage:
        if self._size < 0:
            raise AttributeError("no storage")
        return super().untyped_storage()


def test_what_a_tensor_raises_is_raised() -> None:
    fast = native().tensor_specialization(tensor_specialization, POINTER_RANGE)
    with pytest.raises(RuntimeError, match="freed"):
        fast(Broken(1), align=True)
    assert fast(Broken(1)) == "S"
    with pytest.raises(AttributeError, match="no storage"):
        fast(Broken(-1))


@pytest.mark.parametrize(
    "call", [lambda fast: fast(), lambda fast: fast(WHOLE, True, True), lambda fast: fast(WHOLE, aligned=True)]
)
def test_wrong_calls_are_told(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="tensor_specialization"):
        call(native().tensor_specialization(tensor_specialization, POINTER_RANGE))
