"""The block sizes that Inductor's templates are tried with: small tables, pruned by the device's limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .properties import InductorProperties

#: Elements of an accumulator that an invocation can hold in registers.
_ACCUMULATOR_ELEMENTS = 64


class Gemm(NamedTuple):
    """Blocks of a matrix product: (block_m × block_k) · (block_k × block_n)."""

    block_m: int
    block_n: int
    block_k: int
    num_warps: int

    def shared_bytes(self, dtype_bytes: int) -> int:
        """The bytes of both operands: the backend keeps one stage of them."""
        return (self.block_m + self.block_n) * self.block_k * dtype_bytes


#: Of matrix products and of convolutions, small blocks first.
GEMMS = (
    Gemm(16, 16, 16, 2),
    Gemm(16, 32, 32, 2),
    Gemm(32, 16, 32, 2),
    Gemm(32, 32, 16, 4),
    Gemm(32, 32, 32, 4),
    Gemm(64, 32, 32, 4),
    Gemm(32, 64, 32, 4),
    Gemm(64, 64, 16, 4),
    Gemm(64, 64, 32, 4),
    Gemm(128, 64, 32, 8),
    Gemm(64, 128, 32, 8),
    Gemm(128, 128, 16, 8),
    Gemm(128, 128, 32, 8),
)

#: Attention forward: (queries, keys) of a block, and subgroups.
FLEX_FORWARD = ((16, 16, 2), (32, 16, 4), (32, 32, 4), (64, 32, 4), (64, 64, 8))
#: Attention backward: (block_m1, block_n1, block_m2, block_n2), and subgroups.
FLEX_BACKWARD = (((16, 16, 16, 16), 4), ((16, 32, 32, 16), 4), ((32, 32, 32, 32), 4))
#: Decoding: keys of a block, and subgroups.
FLEX_DECODE = ((16, 2), (32, 2), (64, 2))


def fits(gemm: Gemm, device: InductorProperties, dtype_bytes: int) -> bool:
    """Whether operands fit shared memory, the accumulator the registers, and the workgroup the device."""
    invocations = gemm.num_warps * device.warp_size
    return (
        invocations <= device.max_threads_per_block
        and gemm.shared_bytes(dtype_bytes) <= device.shared_memory_per_block
        and gemm.block_m * gemm.block_n <= _ACCUMULATOR_ELEMENTS * invocations
    )


def gemms(device: InductorProperties, dtype_bytes: int) -> list[Gemm]:
    """The entries of the table that fit, at least the smallest."""
    return [gemm for gemm in GEMMS if fits(gemm, device, dtype_bytes)] or [GEMMS[0]]


def occupying(
    candidates: Iterable[Any], blocks: Callable[[Any], tuple[int, int]], m: int, n: int, device: InductorProperties
) -> list[Any]:
    """The candidates that give every compute unit a program for an m × n result; those with the most programs where
    none does. ``blocks``: a candidate's (block_m, block_n)."""

    def programs(candidate: Any) -> int:
        block_m, block_n = blocks(candidate)
        return -(-m // block_m) * -(-n // block_n)

    known = list(candidates)
    most = max(map(programs, known), default=0)
    return [each for each in known if programs(each) >= min(most, device.multi_processor_count)]


def _attention_bytes(queries: int, keys: int, head_dim: int, dtype_bytes: int) -> int:
    """Shared memory of a block's queries, of its keys or values, and of the weights between its two products."""
    return (queries * head_dim + keys * head_dim + queries * keys) * dtype_bytes


def _largest(candidates: list[Any], all_of_them: bool) -> list[Any]:
    return candidates if all_of_them else candidates[-1:]


def flex_forward(
    device: InductorProperties, head_dim: int, dtype_bytes: int, autotune: bool
) -> list[tuple[int, int, int]]:
    """(block_m, block_n, num_warps) of FlexAttention's forward kernel: the largest that fits, all with ``autotune``."""
    fitting = [
        row
        for row in FLEX_FORWARD
        if _attention_bytes(row[0], row[1], head_dim, dtype_bytes) <= device.shared_memory_per_block
        and row[0] * max(row[1], head_dim) <= _ACCUMULATOR_ELEMENTS * row[2] * device.warp_size
    ]
    return _largest(fitting or [FLEX_FORWARD[0]], autotune)


def flex_backward(
    device: InductorProperties, head_dim: int, dtype_bytes: int, autotune: bool
) -> list[tuple[tuple[int, int, int, int], int]]:
    """Blocks and num_warps of FlexAttention's backward kernel, as flex_forward(). It holds two operands more."""
    fitting = [
        (blocks, warps)
        for blocks, warps in FLEX_BACKWARD
        if 2 * _attention_bytes(max(blocks), max(blocks), head_dim, dtype_bytes) <= device.shared_memory_per_block
        and 2 * max(blocks) * head_dim <= _ACCUMULATOR_ELEMENTS * warps * device.warp_size
    ]
    return _largest(fitting or [FLEX_BACKWARD[0]], autotune)


def flex_splits(device: InductorProperties, heads: int) -> int:
    """In how many parts the keys of FlexAttention's decoding kernel are split, so that every compute unit has two
    programs. ``heads``: of the whole batch."""
    return max(1, 2 * (device.multi_processor_count // max(1, heads)))


def flex_decode(device: InductorProperties, head_dim: int, dtype_bytes: int, autotune: bool) -> list[tuple[int, int]]:
    """(block_n, num_warps) of FlexAttention's decoding kernel, as flex_forward()."""
    fitting = [
        row
        for row in FLEX_DECODE
        if _attention_bytes(16, row[0], head_dim, dtype_bytes) <= device.shared_memory_per_block
    ]
    return _largest(fitting or [FLEX_DECODE[0]], autotune)
