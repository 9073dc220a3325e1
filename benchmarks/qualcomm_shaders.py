"""What Qualcomm's instructions look like that Mesa's compiler makes of kernels, on a machine without an Adreno GPU.

Mesa's Turnip believes in a GPU where a library of Mesa's own plays the kernel driver, which FREEDRENO_NOOP_DRM_SHIM
names; docs/internals/testing.md says how to build it. This script gives Turnip modules made ahead of time for the
profile ``qualcomm-adreno7`` and prints what it says of each. Qualcomm's own driver has another compiler.

    FREEDRENO_NOOP_DRM_SHIM=libfreedreno_noop_drm_shim.so python -m benchmarks.qualcomm_shaders [--json] [MODULE ...]

Without modules it takes the kernels of all examples. FD_GPU_ID names another GPU than 740, such as 730 or 750.

============  ==================================================================
instructions  of the whole kernel
registers     of an invocation, in fours
spilled       stores to an invocation's own memory
waits         cycles of waiting for memory, ir3's own estimate, without loops
in_flight     subgroups that a core can have at once
accesses      loads and stores of device memory
wide          accesses of 128 bits
============  ==================================================================
"""

from __future__ import annotations

from benchmarks.mesa_shaders import Compiler, main

COMPILER = Compiler(
    "qualcomm-adreno7",
    {
        "instructions": ("Instruction Count",),
        "registers": ("Registers used",),
        "spilled": ("STP Count",),
        "waits": ("Estimated cycles stalled on SY",),
        "in_flight": ("Max Waves Per Core",),
    },
    {"accesses": r"\b(?:ldg|stg)\.", "wide": r"\b(?:ldg|stg)\.(?:\w\.)?[us]32 .*, 4$"},
)

if __name__ == "__main__":
    main(__doc__, COMPILER)
