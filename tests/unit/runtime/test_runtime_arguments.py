"""Packing the argument block, without a device."""

from typing import Any

import ml_dtypes
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime.launches.launch import argument_plan


def _pack(type_: str, value: Any) -> bytes:
    block: bytes = argument_plan([((0,), "a", type_)]).pack((value,))
    return block


@given(st.floats(width=64))
def test_half_rounds_as_numpy(value: float) -> None:
    with numpy.errstate(over="ignore"):
        expected = numpy.float16(value)
    found = numpy.frombuffer(_pack("fp16", value)[:2], numpy.float16)[0]
    assert found == expected or (numpy.isnan(found) and numpy.isnan(expected))
    assert numpy.signbit(found) == numpy.signbit(expected) or numpy.isnan(found)


@given(st.floats(width=32))
def test_bfloat16_rounds_as_ml_dtypes(value: float) -> None:
    expected = numpy.float32(value).astype(ml_dtypes.bfloat16)
    found = numpy.frombuffer(_pack("bf16", value)[:2], ml_dtypes.bfloat16)[0]
    assert found == expected or (numpy.isnan(found) and numpy.isnan(expected))


def test_half_ties_to_even() -> None:
    """Halfway between neighbouring halves, subnormals and the step to infinity included."""
    plan = argument_plan([((0,), "a", "fp16")])
    halves = numpy.arange(0x7C01, dtype=numpy.uint16).view(numpy.float16).astype(numpy.float64)
    halves[-1] = 65536.0  # where infinity begins
    for bits in range(0x7C00):
        block = plan.pack(((halves[bits] + halves[bits + 1]) / 2,))
        assert int.from_bytes(block[:2], "little") == bits + bits % 2


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        ("i8", -128, 127),
        ("u8", 0, 255),
        ("i16", -(2**15), 2**15 - 1),
        ("u16", 0, 2**16 - 1),
        ("i32", -(2**31), 2**31 - 1),
        ("u32", 0, 2**32 - 1),
        ("i64", -(2**63), 2**63 - 1),
        ("u64", 0, 2**64 - 1),
    ],
)
def test_integer_ranges(type_: str, low: int, high: int) -> None:
    for value in (low, high, numpy.int8(1)):
        block = _pack(type_, value)
        size = max(1, int(type_[1:]) // 8)
        assert int.from_bytes(block[:size], "little", signed=low < 0) == value
        assert not any(block[size:])
    for value in (low - 1, high + 1):
        with pytest.raises(OverflowError, match=rf"argument 'a' \({type_}\): {value} does not fit"):
            _pack(type_, value)


@pytest.mark.parametrize("type_", ["i1", "u1"])
def test_one_bit_is_the_lowest_of_a_byte(type_: str) -> None:
    for value in (0, 1, 2, 3, 255, True, False):
        assert _pack(type_, value)[0] == value & 1
    for value in (-1, 256):
        with pytest.raises(OverflowError, match=rf"argument 'a' \({type_}\): {value} does not fit"):
            _pack(type_, value)


def test_declaration_order_and_natural_alignment() -> None:
    plan = argument_plan(
        [((0,), "a", "i8"), ((1,), "b", "*fp32"), ((2,), "c", "fp16"), ((3,), "d", "i32"), ((4,), "e", "i1")]
    )
    assert plan.offsets == [0, 8, 16, 20, 24]
    assert plan.bytes == 28
    assert plan.pointer_names == ["b"]
    assert argument_plan([]).bytes == 0


def test_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="argument 'a': a value of type fp8e5 cannot be passed"):
        argument_plan([((0,), "a", "fp8e5")])
    with pytest.raises(ValueError, match="argument 'a' has no position"):
        argument_plan([((), "a", "i32")])


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        ("float32", "fp32"),
        ("float16", "fp16"),
        ("float64", "fp64"),
        ("int8", "i8"),
        ("uint8", "u8"),
        ("int16", "i16"),
        ("int64", "i64"),
        ("bool", "u1"),
        ("bool", "i1"),
        (ml_dtypes.bfloat16, "bf16"),
        (ml_dtypes.float8_e4m3fn, "fp8e4nv"),
        (ml_dtypes.float8_e5m2, "fp8e5"),
        ("float32", "void"),
    ],
)
def test_pointer_elements(dtype: Any, element: str) -> None:
    values = array(numpy.zeros(4, dtype))
    for type_ in (f"*{element}", f"*k{element}"):
        assert int.from_bytes(_pack(type_, values), "little") == values.data_ptr()
    if element != "void":
        with pytest.raises(TypeError, match="argument 'a' .*elements of type i32, not"):
            _pack("*i32", values)


def test_pointer_object_that_fails() -> None:
    class Broken:
        def data_ptr(self) -> int:
            raise RuntimeError("the tensor was freed")

    class Odd:
        def data_ptr(self) -> str:
            return "there"

    with pytest.raises(RuntimeError, match="the tensor was freed"):
        _pack("*fp32", Broken())
    with pytest.raises(TypeError, match="argument 'a' .*whose data_ptr\\(\\) is an address"):
        _pack("*fp32", Odd())
    with pytest.raises(OverflowError):
        _pack("*fp32", -1)
    assert _pack("*fp32", 4096) == (4096).to_bytes(8, "little")
