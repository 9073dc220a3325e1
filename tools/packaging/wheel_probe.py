"""Run where a wheel is installed: a kernel on the Vulkan device; prints what it found as JSON."""

from __future__ import annotations

import json

import numpy as np
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


def main() -> None:
    """Add two arrays whose length is not a multiple of the block."""
    from triton.backends.spirv.runtime import array
    from triton.backends.spirv.runtime.context import current

    size = 1000
    x, y = np.arange(size, dtype=np.float32), np.arange(size, dtype=np.float32)[::-1].copy()
    out = np.zeros(size, np.float32)
    add[(triton.cdiv(size, 128),)](array(x), array(y), array(out), size, BLOCK=128)
    print(
        json.dumps(
            {
                "right": bool((out == size - 1).all()),
                "values": out[:4].tolist(),
                "driver": type(triton.runtime.driver.active).__name__,
                "device": current().device.name,
                "triton": triton.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
