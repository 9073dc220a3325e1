"""A group of matrix products of different sizes in one launch.

The problems' matrices lie one after another in three buffers; a table on the device says where each begins and how
large it is. A fixed number of programs walks over the tiles of all problems, each taking every n-th tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone

#: Columns of the table: rows, columns and depth of a problem, and where its A, B and C begin.
FIELDS = 6


@triton.jit
def grouped_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    table_ptr,
    problems,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FIELDS: tl.constexpr,
):
    tile = tl.program_id(0)
    first = 0
    for problem in range(problems):
        row = table_ptr + problem * FIELDS
        m, n, k = tl.load(row), tl.load(row + 1), tl.load(row + 2)
        a_base, b_base, c_base = a_ptr + tl.load(row + 3), b_ptr + tl.load(row + 4), c_ptr + tl.load(row + 5)
        tiles_n = tl.cdiv(n, BLOCK_N)
        last = first + tl.cdiv(m, BLOCK_M) * tiles_n
        while tile < last:
            place = tile - first
            rows = place // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = place % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
            total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for start in range(0, k, BLOCK_K):
                steps = start + tl.arange(0, BLOCK_K)
                a = tl.load(
                    a_base + rows[:, None] * k + steps[None, :],
                    mask=(rows[:, None] < m) & (steps[None, :] < k),
                    other=0.0,
                )
                b = tl.load(
                    b_base + steps[:, None] * n + columns[None, :],
                    mask=(steps[:, None] < k) & (columns[None, :] < n),
                    other=0.0,
                )
                total = tl.dot(a, b, total, input_precision="ieee")
            tl.store(
                c_base + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n)
            )
            tile += tl.num_programs(0)
        first = last


def grouped_gemm(a: Any, b: Any, c: Any, table: Any, problems: int, programs: int = 32) -> None:
    """All products of a group, on a fixed number of programs."""
    grouped_kernel[(programs,)](a, b, c, table, problems, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, FIELDS=FIELDS)


def table_of(sizes: list[tuple[int, int, int]]) -> np.ndarray:
    """The problems as the kernel reads them."""
    rows, a, b, c = [], 0, 0, 0
    for m, n, k in sizes:
        rows.append((m, n, k, a, b, c))
        a, b, c = a + m * k, b + k * n, c + m * n
    return np.array(rows, np.int32)


def cases() -> list[Case]:
    """Four problems, none of them a multiple of the tile but one."""
    sizes = [(128, 96, 64), (100, 50, 70), (1, 200, 33), (257, 65, 128)]
    table = table_of(sizes)
    random = np.random.default_rng(0)
    a, b, c = (
        random.standard_normal(sum(size[x] * size[y] for size in sizes), dtype=np.float32)
        for x, y in ((0, 2), (2, 1), (0, 1))
    )
    expected = np.concatenate(
        [
            (a[at_a : at_a + m * k].reshape(m, k).astype(np.float64) @ b[at_b : at_b + k * n].reshape(k, n)).ravel()
            for m, n, k, at_a, at_b, _ in table.tolist()
        ]
    )
    arguments = [device_array(array) for array in (a, b, c, table)]
    return [
        Case(
            "grouped GEMM",
            f"{len(sizes)} products fp32",
            lambda: grouped_gemm(*arguments, len(sizes)),
            c,
            expected,
            operations=sum(2 * m * n * k for m, n, k in sizes),
        )
    ]


if __name__ == "__main__":
    run_alone(cases)
