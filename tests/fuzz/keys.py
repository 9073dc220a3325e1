"""Launches of one kernel whose arguments compare equal, or look alike, and yet are others: in any order, each is what a
fresh process would compute."""

import random
import time
from typing import Any

import torch
import triton
import triton.language as tl

from tests.fuzz.running import Found

#: Constants of a row compare equal or have texts that look alike.
_ALIKE: tuple[tuple[Any, ...], ...] = (
    (0, 0.0, -0.0, False, "0", "False", "-0.0"),
    (1, 1.0, True, "1", "1.0", "True"),
    (None, "None", "", "none"),
    (16, 16.0, "16", 17),
    (tl.float32, "fp32", tl.float64, tl.int32, tl.uint32),
    ("a-b", "a", "b-c", "a, b", "('a',)"),
)
_SCALARS: tuple[Any, ...] = (0, 1, 1.0, True, False, 2, 16, 16.0, 17, -1, 0.0)
_DTYPES = (torch.int32, torch.int8, torch.float32, torch.float16, torch.bool)


@triton.constexpr_function
def number(value):
    """One for each constant. The elements of a tuple are constants of their own in a kernel."""
    total = 0
    for character in repr(value).replace("constexpr[", "").replace("]", "").replace(",)", ")"):
        total = (total * 31 + ord(character)) % 1000003
    return total


def kernel(out_ptr, x_ptr, scalar, C: tl.constexpr, D: tl.constexpr):
    tl.store(out_ptr, number(C))
    tl.store(out_ptr + 1, number(D))
    tl.store(out_ptr + 2, scalar)
    if x_ptr is None:
        tl.store(out_ptr + 3, -5)
    else:
        tl.store(out_ptr + 3, tl.load(x_ptr).to(tl.int32))


def _constant(rng: random.Random, depth: int = 0) -> list[Any]:
    """Constants that are alike."""
    if depth < 2 and rng.random() < 0.35:
        parts = [_constant(rng, depth + 1) for _ in range(rng.randint(1, 3))]
        return [tuple(rng.choice(part) for part in parts) for _ in range(4)]
    row = rng.choice(_ALIKE)
    return rng.sample(row, min(len(row), 4))


def _tensor(rng: random.Random) -> torch.Tensor | None:
    if rng.random() < 0.2:
        return None
    dtype, first = rng.choice(_DTYPES), rng.choice((0, 0, 1, 4))
    return torch.ones(64, dtype=dtype)[first:] if dtype == torch.bool else torch.arange(3, 67).to(dtype)[first:]


def run(seed: int) -> Found:
    """A dozen launches of one kernel, in an order in which some come again, so that the native module repeats them."""
    rng, start = random.Random(f"keys {seed}"), time.process_time()
    fresh, lines, fault = triton.jit(kernel), [], ""
    constants, others, tensors = _constant(rng), _constant(rng), [_tensor(rng) for _ in range(3)]
    scalars = rng.sample(_SCALARS, 3)
    kinds = [(rng.choice(tensors), rng.choice(scalars), rng.choice(constants), rng.choice(others)) for _ in range(5)]
    for x, scalar, c, d in [rng.choice(kinds) for _ in range(14)]:
        out = torch.zeros(4)
        lines.append(f"{None if x is None else (x.dtype, x.storage_offset())}, {scalar!r}, C={c!r}, D={d!r}")
        fresh[(1,)](out, x, scalar, C=c, D=d)
        wanted = [number(c), number(d), float(scalar), -5 if x is None else int(x[0])]
        if out.tolist() != wanted and not fault:
            fault = f"launch {len(lines)}: {out.tolist()} instead of {wanted}"
    return Found(fault, "\n".join(lines) + "\n", time.process_time() - start)
