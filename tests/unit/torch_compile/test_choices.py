"""Which blocks templates are tried with on which devices."""

import pytest

pytest.importorskip("torch")

from triton.backends.spirv.torch.compile import choices
from triton.backends.spirv.torch.compile.properties import InductorProperties


def device(warp: int = 32, shared: int = 48 << 10, units: int = 32, threads: int = 1024) -> InductorProperties:
    return InductorProperties("test", "arch", units, warp, threads, shared, 0)


def test_blocks_fit_shared_memory_and_registers() -> None:
    large, small = device(), device(warp=8, shared=32 << 10, threads=1024)
    assert choices.Gemm(128, 128, 32, 8) in choices.gemms(large, 4)
    assert choices.Gemm(128, 128, 32, 8) not in choices.gemms(small, 4)
    for each in choices.gemms(small, 4):
        assert (each.block_m + each.block_n) * each.block_k * 4 <= 32 << 10
        assert each.block_m * each.block_n <= 64 * each.num_warps * 8
    assert choices.gemms(device(shared=1 << 10), 4) == [choices.GEMMS[0]]


def test_the_keys_of_few_queries_are_split_among_the_compute_units() -> None:
    assert [choices.flex_splits(device(units=32), heads) for heads in (0, 1, 4, 32, 33)] == [64, 64, 16, 2, 1]


def test_every_compute_unit_gets_a_program_where_that_can_be() -> None:
    blocks = [(16, 16), (64, 64), (128, 128)]
    few, many = device(units=4), device(units=128)
    assert choices.occupying(blocks, lambda each: each, 256, 256, few) == blocks
    assert choices.occupying(blocks, lambda each: each, 256, 256, many) == [(16, 16)]
    assert choices.occupying(blocks, lambda each: each, 16, 16, many) == blocks


def test_attention_blocks_grow_with_the_device() -> None:
    small = choices.flex_forward(device(warp=8, shared=32 << 10), 64, 4, autotune=False)
    large = choices.flex_forward(device(shared=96 << 10), 64, 4, autotune=False)
    assert len(small) == len(large) == 1 and small[0][0] * small[0][1] < large[0][0] * large[0][1]
    every = choices.flex_forward(device(shared=96 << 10), 64, 4, autotune=True)
    assert set(large) < set(every)
    for blocks, _ in choices.flex_backward(device(), 64, 4, autotune=True):
        m1, n1, m2, n2 = blocks
        assert n1 % m1 == 0 and m2 % n2 == 0, "what Inductor's backward kernel demands"
