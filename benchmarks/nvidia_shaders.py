"""What NVIDIA's instructions look like that Mesa's compiler makes of kernels, on a machine without an NVIDIA GPU.

Mesa's NVK believes in a GPU where a library of Mesa's own plays the kernel driver, which NOUVEAU_NOOP_DRM_SHIM names;
docs/internals/testing.md says how to build it. This script gives NVK modules made ahead of time for the profile
``nvk-ampere`` and prints what it says of each. NVIDIA's own driver has another compiler: registers and cycles are no
more than a hint at what it does.

    NOUVEAU_NOOP_DRM_SHIM=libnouveau_noop_drm_shim.so python -m benchmarks.nvidia_shaders [--json] [MODULE.spv ...]

Without modules it takes the kernels of all examples. NOUVEAU_CHIPSET names another GPU than 172 (GA102), such as 192.

============  ==================================================================
registers     of an invocation
spilled       registers that went to memory
cycles        NVK's own estimate for a subgroup, without loops and waits
in_flight     subgroups that a multiprocessor can have at once
accesses      loads and stores of device memory
wide          accesses of 128 bits
matrix        matrix instructions (HMMA, IMMA)
============  ==================================================================
"""

from __future__ import annotations

from benchmarks.mesa_shaders import Compiler, main

COMPILER = Compiler(
    "nvk-ampere",
    {
        "registers": ("Number of GPRs",),
        "spilled": ("Spills to memory",),
        "instructions": ("Instruction count",),
        "cycles": ("Static cycle count",),
        "in_flight": ("Max warps/SM",),
    },
    {"accesses": r"\b(?:ld|st)\.global\.", "wide": r"\b(?:ld|st)\.global\.\S*b128\b", "matrix": r"\b[hi]mma\."},
)

if __name__ == "__main__":
    main(__doc__, COMPILER)
