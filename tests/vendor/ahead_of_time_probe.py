"""Run in an environment without Triton: loads the modules in the folder that is named and launches them. With a second
argument the Vulkan package, which loads the Vulkan loader, cannot be imported."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

if len(sys.argv) > 2:
    sys.modules["vulkan"] = None  # type: ignore[assignment]  # an import raises ImportError

import triton.backends.spirv.runtime
from triton.backends.spirv.runtime import from_numpy, load


def main(folder: Path) -> None:
    """Print what was imported and how far off the results are."""
    x = np.random.default_rng(0).standard_normal((50, 300), dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    expected /= expected.sum(axis=1, keepdims=True)
    softmax = load(folder / "softmax.spv")
    out = np.zeros_like(x)
    softmax[(50,)](out, x, 300)
    on_device = from_numpy(np.zeros_like(x))
    softmax[(50,)](on_device, from_numpy(x), columns=300, BLOCK=512)
    guarded = load(folder / "guarded.spv")
    few = np.zeros(8, np.int32)
    guarded[8](few, 8)
    try:
        guarded[8](few, 5)
        failed = ""
    except AssertionError as error:
        failed = str(error)
    print(
        json.dumps(
            {
                "triton": importlib.util.find_spec("triton.language") is not None,
                "file": getattr(triton, "__file__", None),
                "torch": "torch" in sys.modules,
                "runtime": triton.backends.spirv.runtime.__name__,
                "errors": [float(np.abs(found - expected).max()) for found in (out, on_device.to_numpy())],
                "few": few.tolist(),
                "assertion": failed,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
