"""Run beside stock triton in the environment of test_stock_patches.py: kernels that need fixes of it, on the CPU.

Prints JSON: what each kernel stored, or the error that it ended with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
import triton
import triton.language as tl
from triton_spirv.runtime import array


@triton.jit
def bf16(out, VALUE: tl.constexpr):
    tl.store(out, tl.full((), VALUE, tl.bfloat16).to(tl.float32))


@triton.jit
def constant(out, VALUE: tl.constexpr):
    tl.store(out, tl.full((), VALUE, tl.float32))


@triton.jit
def text(out, VALUE: tl.constexpr):
    if VALUE == "1":
        tl.store(out, 2.0)
    else:
        tl.store(out, 1.0)


@triton.jit
def rounds(out, bounds):
    count = 0.0
    for _ in range(tl.load(bounds), tl.load(bounds + 1)):
        count += 1
    tl.store(out, count)


def stored(kernel: Callable[..., object], *arguments: object) -> float | str:
    """What a launch stores, or its error in one line."""
    out = np.full(1, -1, np.float32)
    try:
        kernel[(1,)](array(out), *arguments)  # type: ignore[index]
    except Exception as error:
        return " ".join(f"{error} {error.__cause__ or ''}".split())
    return float(out[0])


def main() -> None:
    """Print what each kernel stored."""
    found = {f"bf16 {value}": stored(bf16, value) for value in (1.0, 2.0**-16, 1e-9)}
    found |= {f"constant {value}": stored(constant, value) for value in (0.0, -0.0)}
    found |= {f"text {value!r}": stored(text, value) for value in (1, "1")}
    found["rounds"] = stored(rounds, array(np.array([2**31 - 2, 2**31 + 3], np.uint32)))
    print(json.dumps(found), file=sys.stdout)


if __name__ == "__main__":
    main()
