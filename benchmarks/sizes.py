"""What a new size costs an eager operation on ``spirv``, beside the same sizes again and torch's CPU device.

Each operation is warmed up with other sizes, so that its kernels are compiled, then called once with each of many new
sizes, and then with these again. Printed are the milliseconds of processor time of the thread that calls, and the
kilobytes by which the process's resident memory grew, for each size. Other threads' time says nothing of sizes: those
that share launches look for the next one for 200 µs. torch's CPU device has one thread.

    python -m benchmarks.sizes [NAME …] [--sizes N]
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

_WIDTH, _CLASSES = 64, 512
#: Sizes up to the first are for warming up. They are of all kinds: multiples of 16, others, fewer than a tile's. So are
#: these above it, of rows that fit other tiles.
_FIRST = 40
_WARM = {*range(1, _FIRST), *(2**k + more for k in range(5, 12) for more in (-1, 2, 16))}
_PAGE = os.sysconf("SC_PAGE_SIZE")

#: Of a size on a device: the operation's tensors. Then the operation.
_Operation = tuple[Callable[[int], Sequence[torch.Tensor]], Callable[..., Any]]


def operations(device: str) -> dict[str, _Operation]:
    """By name."""

    def rows(n: int) -> list[torch.Tensor]:
        return [torch.randn(n, _WIDTH, device=device)]

    def places(n: int) -> list[torch.Tensor]:
        return [torch.zeros(n, dtype=torch.long, device=device)]

    weight, bias, table = (
        torch.randn(*shape, device=device) for shape in ((_WIDTH, _WIDTH), (_WIDTH,), (_CLASSES, 64))
    )
    return {
        "linear": (rows, lambda x: F.linear(x, weight, bias)),
        "layer norm": (rows, lambda x: F.layer_norm(x, (_WIDTH,), bias, bias)),
        "GELU": (rows, F.gelu),
        "add": (lambda n: rows(n) * 2, torch.add),
        "softmax": (lambda n: [torch.randn(4, n, device=device)], lambda x: x.softmax(-1)),
        "attention": (lambda n: [torch.randn(1, 2, n, 32, device=device)] * 3, F.scaled_dot_product_attention),
        "cross entropy": (lambda n: rows(n) + places(n), F.cross_entropy),
        "dropout": (rows, F.dropout),
        "embedding": (places, lambda i: F.embedding(i, table)),
    }


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _round(operation: Callable[..., Any], given: list[Sequence[torch.Tensor]], device: str) -> tuple[float, float]:
    """Milliseconds and kilobytes of each."""
    before, start = _resident(), time.thread_time()
    for one in given:
        operation(*one)
    spent = time.thread_time() - start
    if device != "cpu":
        torch.spirv.synchronize()  # type: ignore[attr-defined]
    return 1e3 * spent / len(given), (_resident() - before) / 1e3 / len(given)


def measured(operation: _Operation, device: str, count: int) -> list[tuple[float, float]]:
    """(milliseconds, kilobytes) of a new size, and of the same again once calls of it are prepared."""
    make, run = operation
    for n in _WARM:
        run(*make(n))
    given = [make(n) for n in range(_FIRST, _FIRST + count) if n not in _WARM]
    new = _round(run, given, device)
    _round(run, given, device)
    return [new, _round(run, given, device)]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of operations; all without one")
    parser.add_argument("--sizes", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ours, theirs = operations("spirv"), operations("cpu")
    print(f"{'':15}{'spirv, new':>20}{'again':>20}{'cpu, new':>20}{'again':>20}")
    for name in options.names or ours:
        found = [*measured(ours[name], "spirv", options.sizes), *measured(theirs[name], "cpu", options.sizes)]
        print(f"{name:15}" + "".join(f"{f'{spent:.3f} ms {kept:.1f} kB':>20}" for spent, kept in found), flush=True)


if __name__ == "__main__":
    main()
