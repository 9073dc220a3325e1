"""What a kernel is specialised for, and its cache key."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton._C.libtriton import native_specialize_impl
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.runtime import array
from triton.compiler import ASTSource
from triton.runtime.jit import MockTensor, reinterpret

TARGET = GPUTarget("spirv", "lavapipe", PROFILES["lavapipe"].subgroup_size)
LIMIT = 2**31 - 1


class Storage:
    def __init__(self, size: int) -> None:
        self._size = size

    def nbytes(self) -> int:
        return self._size


class Fake:
    """A tensor of a size that tests cannot allocate."""

    dtype = torch.float32

    def __init__(self, size: int, address: int = 1 << 40) -> None:
        self._size, self._address = size, address

    def data_ptr(self) -> int:
        return self._address

    def untyped_storage(self) -> Storage:
        return Storage(self._size)


class Silent:
    """A tensor that does not tell its size."""

    dtype = torch.float32

    def data_ptr(self) -> int:
        return 1 << 40


def properties(argument: Any, align: bool = True) -> tuple[str, Any]:
    """What the launch path makes of an argument."""
    result: tuple[str, Any] = native_specialize_impl(SPIRVBackend(TARGET), argument, False, True, align)
    return result


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (Fake(LIMIT), "DS"),
        (Fake(LIMIT + 1), "D"),
        (Fake(1 << 40), "D"),
        (Fake(LIMIT, address=(1 << 40) + 4), "S"),
        (Fake(LIMIT + 1, address=(1 << 40) + 4), ""),
        (Silent(), "D"),
        (MockTensor(torch.float32), "DS"),
    ],
)
def test_properties_of_tensors(argument: Any, expected: str) -> None:
    assert properties(argument) == ("*fp32", expected)


def test_the_whole_storage_counts(tmp_path: Any) -> None:
    whole = torch.from_numpy(np.memmap(tmp_path / "sparse", np.uint8, "w+", shape=(LIMIT + 1,)))
    assert properties(whole[:16])[1] == "D"
    assert properties(reinterpret(whole[16:32], tl.int8))[1] == "D"
    assert properties(array(whole.numpy()[32:48]))[1] == "D"
    assert properties(torch.zeros(64)[32:])[1] == "DS"
    assert properties(array(np.zeros(64, ml_dtypes.bfloat16)[::-1]))[1] == "S"


def test_alignment_can_be_left_out() -> None:
    assert properties(Fake(64), align=False) == ("*fp32", "S")


def test_integers_are_upstreams() -> None:
    assert [properties(value)[1] for value in (16, 17, -16, 1)] == ["D", "", "D", 1]


def test_attributes() -> None:
    assert SPIRVBackend.parse_attr("") == []
    assert SPIRVBackend.parse_attr("D") == [["tt.divisibility", 16]]
    assert SPIRVBackend.parse_attr("DS") == [["tt.divisibility", 16], ["tt.pointer_range", 32]]


@triton.jit
def copy_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.load(x_ptr))


@triton.jit
def sum_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, 1024)), 0))


def test_cache_key_and_code_differ() -> None:
    sources = [
        ASTSource(copy_kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32"}, attrs={(0,): SPIRVBackend.parse_attr(description)})
        for description in ("D", "DS")
    ]
    assert sources[0].hash() != sources[1].hash()
    attributes = [
        triton.compile(source, target=TARGET).asm["ttgir"].count("tt.pointer_range = 32") for source in sources
    ]
    assert attributes == [0, 1]


@pytest.mark.parametrize(
    ("name", "variable", "asks"),
    [
        ("check_bounds", "CHECK_BOUNDS", "1"),
        ("check_races", "CHECK_RACES", "1"),
        ("check_program_races", "CHECK_RACES", "programs"),
    ],
)
def test_checks_are_in_the_cache_key(monkeypatch: pytest.MonkeyPatch, name: str, variable: str, asks: str) -> None:
    backend, variable = SPIRVBackend(TARGET), f"TRITON_SPIRV_{variable}"

    def options(value: str | None, **asked: bool) -> SPIRVOptions:
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
        return backend.parse_options(asked)

    off, on = options(None), options(asks)
    assert (getattr(off, name), getattr(on, name)) == (False, True)
    assert off.hash() != on.hash()
    assert options("0").hash() == options("").hash() == options(asks, **{name: False}).hash() == off.hash()
    assert options(None, **{name: True}).hash() == on.hash()
    with pytest.raises(ValueError, match=f"{variable} must be 0(, 1, programs, equal)? or (1|all), not 'maybe'"):
        options("maybe")
    monkeypatch.delenv(variable)
    source = ASTSource(sum_kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32"})
    compiled = [triton.compile(source, target=TARGET, options={name: value}) for value in (False, True)]
    assert compiled[0].hash != compiled[1].hash and compiled[0].kernel != compiled[1].kernel
