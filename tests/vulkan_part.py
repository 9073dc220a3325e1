"""The tests that have to pass on Mesa's CPU driver as well as on the CPU device.

The compiler's work for GPUs is tested without a device (tests/lowering, tests/unit), and every module that a test
emits is validated. What is listed here says that a Vulkan device runs such modules, and that the runtime's part for
Vulkan works: every file of the runtime, and one file of each family of the lowering.
"""

#: File, or folder of files → why it is run on a Vulkan device, too.
FILES: dict[str, str] = {
    "tests/device/runtime": "memory, launches, faults, graphs and events of native/vulkan and runtime/vulkan",
    "tests/device/test_elementwise.py": "lowering: constants, and arguments of every type",
    "tests/device/test_fuzz_functions.py": "lowering: each function of the language, of each type",
    "tests/device/test_memory.py": "lowering: loads and stores of every width, masks, caches",
    "tests/device/test_casts.py": "lowering: conversions of every pair of types",
    "tests/device/test_integers.py": "lowering: integers, where drivers have faults (limits.md)",
    "tests/device/test_reduce.py": "lowering: reductions within and across subgroups",
    "tests/device/test_scan.py": "lowering: scans within and across subgroups",
    "tests/device/test_convert_layout.py": "lowering: conversions by shuffles and through shared memory",
    "tests/device/test_control_flow.py": "lowering: branches and loops, which subgroups leave apart",
    "tests/device/test_atomics.py": "lowering: atomic operations",
    "tests/device/test_gather.py": "lowering: gathers by shuffles and through shared memory",
    "tests/device/test_dot.py": "lowering: multiply-adds from shared memory, but in kernels that it compiles for long",
    "tests/device/test_barriers.py": "barriers of the workgroup and of the subgroup, which the CPU device has not",
    "tests/device/test_races.py": "the same: races that they prevent",
    "tests/device/test_debug.py": "prints, assertions, and loops that the driver ends",
    "tests/device/test_bounds.py": "reports by way of device memory",
    "tests/device/test_driver_properties.py": "what programs ask of a device",
    "tests/device/test_disassembly.py": "what the driver tells of its code",
    "tests/device/test_programs.py": "whole programs of several families",
    "tests/device/test_split_grid.py": "grids with more programs than an axis of Vulkan's takes",
    "tests/device/test_strips.py": "strips, which this driver's compiler needs as well",
    "tests/device/torch_device/test_later.py": "torch's operations whose kernels the driver still compiles",
    "tests/device/torch_device/test_views.py": "torch's tensors on the device",
    "tests/device/torch_ops/test_elementwise.py": "torch's operations: elementwise",
    "tests/device/torch_ops/test_reductions.py": "torch's operations: reductions",
    "tests/device/torch_ops/test_wide_accesses.py": "accesses to neighbours, which lanes of the CPU device lack",
}
