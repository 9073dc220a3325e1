"""What Mesa's compiler for Apple's GPUs says of kernels, on a machine without one.

Mesa's Honeykrisp, Vulkan for Apple's GPUs on Linux, believes in an M1 where a library of Mesa's own plays the kernel
driver, which ASAHI_NOOP_DRM_SHIM names; docs/internals/testing.md says how to build it. This script gives Honeykrisp
modules made ahead of time for the profile ``apple-m1`` and prints what it says of each. macOS has another compiler.

    ASAHI_NOOP_DRM_SHIM=libasahi_noop_drm_shim.so python -m benchmarks.apple_shaders [--json] [MODULE.spv ...]

Without modules it takes the kernels of all examples.

============  ==================================================================
instructions  of the whole kernel
registers     of an invocation, of 16 bits
spilled       registers that went to memory
filled        registers that came back
in_flight     invocations that a core can have at once
============  ==================================================================
"""

from __future__ import annotations

from benchmarks.mesa_shaders import Compiler, main

COMPILER = Compiler(
    "apple-m1",
    {
        "instructions": ("Instructions",),
        "registers": ("GPRs",),
        "spilled": ("Spills",),
        "filled": ("Fills",),
        "in_flight": ("Threads",),
    },
)

if __name__ == "__main__":
    main(__doc__, COMPILER)
