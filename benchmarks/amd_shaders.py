"""What AMD's compiler makes of kernels, on a machine without an AMD GPU.

Mesa's RADV compiles for GPUs that are not there: this script gives it modules made ahead of time for the profile
``amd-rdna3`` and prints what its compiler, ACO, says of each.

    python -m benchmarks.amd_shaders [--json] [MODULE.spv ...]

Without modules it takes the kernels of all examples. Mesa's Vulkan drivers must be installed; from 25.2 on RADV wants a
library that plays the GPU, which docs/internals/testing.md says how to build.

==========  ====================================================================================
vgprs       vector registers of an invocation; more than about 96 leave few subgroups in flight
spilled     vector registers that had no room, in scratch memory instead
scalars     the same of scalar registers, in vector registers
shared      bytes of workgroup memory
scratch     bytes of scratch memory of an invocation
in_flight   subgroups that a SIMD unit can have at once, 16 at most
latency     ACO's own estimate of a subgroup's cycles; in a loop, of some rounds
accesses    loads and stores of device memory
wide        accesses of 128 bits
matrix      matrix instructions (WMMA)
==========  ====================================================================================
"""

from __future__ import annotations

from benchmarks.mesa_shaders import Compiler, main

COMPILER = Compiler(
    "amd-rdna3",
    {
        "vgprs": ("VGPRs",),
        "spilled": ("Spilled VGPRs",),
        "scalars": ("Spilled SGPRs",),
        "shared": ("LDS size",),
        "scratch": ("Scratch size",),
        "in_flight": ("Subgroups per SIMD",),
        "instructions": ("Instructions",),
        "latency": ("Latency",),
    },
    {"accesses": r"^\s+global_(?:load|store)_", "wide": r"^\s+global_(?:load|store)_b128", "matrix": r"^\s+v_wmma_"},
)

if __name__ == "__main__":
    main(__doc__, COMPILER)
