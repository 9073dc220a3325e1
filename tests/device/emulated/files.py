"""Which device tests an emulated device runs: those of kernels.

Tests of the runtime, of torch's device and of programs on the command line are of the device that this machine has.
test_races.py and test_disorder.py leave out barriers, which an emulated device refuses before they find it."""

from __future__ import annotations

#: Under tests/device.
KERNEL_TESTS = (
    "math",
    "test_atomic_access.py",
    "test_atomics.py",
    "test_barriers.py",
    "test_bounds.py",
    "test_broadcast.py",
    "test_calls.py",
    "test_casts.py",
    "test_control_flow.py",
    "test_convert_layout.py",
    "test_debug.py",
    "test_descriptors.py",
    "test_dot.py",
    "test_dot_fragments.py",
    "test_dot_precision.py",
    "test_dot_scaled.py",
    "test_elementwise.py",
    "test_extended.py",
    "test_float16.py",
    "test_gather.py",
    "test_global_scratch.py",
    "test_gluon.py",
    "test_gluon_buffers.py",
    "test_gluon_shared_atomics.py",
    "test_hints.py",
    "test_histogram.py",
    "test_inline_ptx.py",
    "test_integers.py",
    "test_map_elementwise.py",
    "test_memory.py",
    "test_narrowed_results.py",
    "test_nested_programs.py",
    "test_overwriting.py",
    "test_prefetch.py",
    "test_programs.py",
    "test_random.py",
    "test_reduce.py",
    "test_scan.py",
    "test_sort.py",
    "test_strip_arrays.py",
    "test_strips.py",
    "test_tensor_ops.py",
    "test_tutorials.py",
)

#: Profile → the files that every run of the tests runs on its emulated device: three minutes of processor time. They
#: differ, so that together they cover exchanges between lanes, fragments of two vendors' matrix units, and atomics.
EVERY_TIME = {
    "amd-rdna3": ("test_convert_layout.py", "test_dot_fragments.py"),
    "apple-m1": ("test_descriptors.py",),
    "intel-xe": ("test_hints.py",),
    "nvidia-hopper": ("test_atomics.py", "test_dot_precision.py"),
    "nvk-ampere": ("test_barriers.py", "test_dot_fragments.py", "test_prefetch.py"),
    "qualcomm-adreno7": ("test_gather.py",),
}
