"""Matrix multiplication by persistent programs: as many as the device runs at once, each taking every n-th tile.

Operands and result are tensor descriptors, in one variant made on the host and passed, in the other made by the kernel.
Blocks that reach past the end are padded with zeros when they are read, and cut off when they are written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from examples.harness import Case, device_array, run_alone

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32
PROGRAMS = 8


@triton.jit
def persistent_kernel(a, b, c, m, n, k):
    """``c = a @ b`` over descriptors of a (m, k), b (k, n) and c (m, n)."""
    block_m: tl.constexpr = a.block_shape[0]
    block_k: tl.constexpr = a.block_shape[1]
    block_n: tl.constexpr = b.block_shape[1]
    tiles_n = tl.cdiv(n, block_n)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, block_m) * tiles_n, tl.num_programs(0), flatten=True):
        row, column = tile // tiles_n * block_m, tile % tiles_n * block_n
        total = tl.zeros((block_m, block_n), tl.float32)
        for step in range(0, k, block_k):
            total = tl.dot(a.load([row, step]), b.load([step, column]), total, input_precision="ieee")
        c.store([row, column], total.to(c.dtype))


@triton.jit
def device_descriptors_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    persistent_kernel(a, b, c, m, n, k)


def with_host_descriptors(a: Any, b: Any, c: Any, m: int, n: int, k: int) -> None:
    """``c = a @ b``: the descriptors are arguments."""
    persistent_kernel[(PROGRAMS,)](
        TensorDescriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K]),
        TensorDescriptor(b, [k, n], [n, 1], [BLOCK_K, BLOCK_N]),
        TensorDescriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N]),
        m,
        n,
        k,
    )


def with_device_descriptors(a: Any, b: Any, c: Any, m: int, n: int, k: int) -> None:
    """``c = a @ b``: the kernel makes the descriptors."""
    device_descriptors_kernel[(PROGRAMS,)](a, b, c, m, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)


def cases() -> list[Case]:
    """Sizes that no block divides; rows begin at multiples of 16 bytes, as descriptors require."""
    m, n, k = 200, 260, 100
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k), dtype=np.float32), random.standard_normal((k, n), dtype=np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)

    def case(name: str, run: Any) -> Case:
        c = np.zeros((m, n), np.float32)
        arguments = [device_array(array) for array in (a, b, c)]
        return Case(name, f"{m}×{n}×{k} fp32", lambda: run(*arguments, m, n, k), c, expected, operations=2 * m * n * k)

    return [
        case("persistent matmul, host descriptors", with_host_descriptors),
        case("persistent matmul, device descriptors", with_device_descriptors),
    ]


if __name__ == "__main__":
    run_alone(cases)
