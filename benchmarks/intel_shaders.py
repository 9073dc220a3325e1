"""What Intel's compiler of Mesa makes of kernels, on a machine without an Intel GPU.

Mesa's ANV believes in a GPU where a library of Mesa's own plays the kernel driver, which INTEL_NOOP_DRM_SHIM names;
docs/internals/testing.md says how to build it. This script gives ANV modules made ahead of time for the profile
``intel-xe`` and prints what it says of each.

    INTEL_NOOP_DRM_SHIM=libintel_noop_drm_shim.so python -m benchmarks.intel_shaders [--json] [MODULE.spv ...]

Without modules it takes the kernels of all examples. INTEL_STUB_GPU_PLATFORM names another GPU than dg2.

============  ==================================================================
instructions  of the whole kernel
cycles        ANV's own estimate for a subgroup; in a loop, of some rounds
spilled       stores to scratch memory for lack of registers
filled        loads from it
matrix        matrix instructions (DPAS)
============  ==================================================================
"""

from __future__ import annotations

from benchmarks.mesa_shaders import Compiler, main

#: Names of Mesa to 24, of 25, and since.
COMPILER = Compiler(
    "intel-xe",
    {
        "instructions": ("Instruction Count", "Instruction count", "Instructions"),
        "cycles": ("Cycle Count", "Cycle count", "Cycles"),
        "spilled": ("Spill Count", "Spill count", "Spills"),
        "filled": ("Fill Count", "Fill count", "Fills"),
    },
    {"matrix": r"\bdpas\."},
)

if __name__ == "__main__":
    main(__doc__, COMPILER)
