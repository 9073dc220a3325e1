"""Run beside stock triton in the environment of test_plugin_only.py: vector add on the Vulkan device."""

from __future__ import annotations

import json

import numpy as np
import triton
import triton.backends.spirv.runtime.arrays as alias
import triton.language as tl
from triton.language.extra import libdevice
from triton_spirv.registration import get_backend, register_backend
from triton_spirv.runtime import array, arrays


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + libdevice.exp(tl.load(y + at, mask)), mask)


def main() -> None:
    """Print what ran and how far off it is."""
    size = 10_000
    x, y = np.random.default_rng(0).standard_normal((2, size), dtype=np.float32)
    out = np.zeros(size, np.float32)
    add[(triton.cdiv(size, 512),)](array(x), array(y), array(out), size, BLOCK=512)
    driver = triton.runtime.driver.active
    difference = float(np.abs(out - (x + np.exp(y))).max())
    spirv = get_backend("spirv")
    backend = spirv.compiler.__module__
    another = register_backend("another", spirv.compiler, spirv.driver)
    try:
        register_backend("spirv", spirv.compiler, spirv.driver)
    except ValueError as error:
        refused = str(error)
    print(
        json.dumps(
            {
                "driver": type(driver).__name__,
                "module": backend,
                "error": difference,
                "registered": triton.backends.backends["another"] is another and refused,
                "one_module": alias is arrays and triton.backends.spirv.runtime.array is array,
            }
        )
    )


if __name__ == "__main__":
    main()
