"""Sixty kinds of kernels in the form in which users write them, beside what a user would pick instead: torch, numba,
NumPy, and with ``--inductor`` torch.compile's C++, all in one process and on one thread.

Each family is a file with its kernels and a function that gives its rows. The goal is 0.9 of the best of the others in
geometric mean, and 0.5 in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.cpu.users import atomics, attention, elementwise, indexed, products, reductions, scans, softmax, tiles
from benchmarks.cpu.users.rows import Data, Row

FAMILIES: dict[str, Callable[[Data], Iterator[Row]]] = {
    "elementwise": elementwise.rows,
    "softmax": softmax.rows,
    "reductions": reductions.rows,
    "atomics": atomics.rows,
    "indexed": indexed.rows,
    "products": products.rows,
    "attention": attention.rows,
    "tiles": tiles.rows,
    "scans": scans.rows,
}
