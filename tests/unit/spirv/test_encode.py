"""The binary form: words, strings, and what is left out."""

import struct

import hypothesis
import pytest
from hypothesis import strategies as st
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.encode import MAGIC, VERSION_1_6, encode, live, string_words
from triton.backends.spirv.spirv.module import bits_float, float_bits


def test_header_and_instruction_words():
    data = encode([[op.Capability, 0, 0, 1], [op.IAdd, 4, 9, 7, 8], [op.Label, 0, 12]], 13)
    words = struct.unpack(f"<{len(data) // 4}I", data)
    assert words[:5] == (MAGIC, VERSION_1_6, 0, 13, 0)
    assert words[5:] == (2 << 16 | op.Capability, 1, 5 << 16 | op.IAdd, 4, 9, 7, 8, 2 << 16 | op.Label, 12)


@pytest.mark.parametrize("text", ("", "abc", "main", "ünïcode", "x" * 63))
def test_strings_are_terminated_and_padded(text):
    words = string_words(text)
    data = struct.pack(f"<{len(words)}I", *words)
    assert data.rstrip(b"\0").decode() == text and data.endswith(b"\0")
    assert len(data) - len(text.encode()) <= 4


def test_results_without_use_are_dropped_with_what_only_they_used():
    load, dead, alive, store = (
        [op.Load, 1, 10, 5],
        [op.IAdd, 1, 11, 10, 10],
        [op.IMul, 1, 12, 10, 10],
        [op.Store, 0, 0, 6, 12],
    )
    chain = [op.IAdd, 1, 13, 11, 12]
    assert live([load, dead, alive, chain, store]) == [load, alive, store]


@hypothesis.given(st.floats(width=32), st.sampled_from((32, 64)))
def test_float_bits_round_trip(value, width):
    bits = float_bits(value, width)
    back = bits_float(bits, width)
    assert back == value or (back != back and value != value)
    assert bits >> (width - 1) == (str(value).startswith("-")) or value != value


@pytest.mark.parametrize(
    ("value", "width", "bits"),
    [
        (1.0, 16, 0x3C00),
        (65520.0, 16, 0x7C00),
        (-1e300, 32, 0xFF800000),
        (-0.0, 64, 1 << 63),
        (float("inf"), 64, 0x7FF0000000000000),
        (2.0**-24, 16, 1),
        (1 + 2.0**-11, 16, 0x3C00),
    ],
)
def test_float_bits_are_rounded_to_the_format(value, width, bits):
    assert float_bits(value, width) == bits
