"""Which device tests an emulated device runs: those of kernels, which are all but those named here."""

from pathlib import Path

_TESTS = Path(__file__).parents[1]
_COMMANDS = "of a program on the command line, about the device that this machine has"
_PACKAGES = (
    "of programs and packages that others wrote: their kernels are those of the tests here, and their devices are not"
)
_TORCH = "of torch's device, which this machine's device stands for"
_HOST = "of the runtime and of time, which emulation does not change"

#: Files and folders under tests/device that an emulated device does not run → why.
LEFT_OUT = {
    "emulated": "starts emulated devices itself",
    "runtime": _HOST,
    "test_benchmarks.py": "of times",
    "test_cached_kernels.py": _HOST,
    "test_device_report.py": _COMMANDS,
    "test_disassembly.py": _COMMANDS,
    "test_doctor.py": _COMMANDS,
    "test_driver_properties.py": _HOST,
    "test_examples.py": _PACKAGES,
    "test_fuzz_families.py": "of random kernels, which have a command and a step of weekly.yml of their own",
    "test_fuzz_floats.py": "of random kernels, as above",
    "test_fuzz_kinds.py": "of random kernels, as above",
    "test_inspect.py": _COMMANDS,
    "test_kernel_times.py": "of times",
    "test_package_features.py": _PACKAGES,
    "test_packages.py": _PACKAGES,
    "test_profile.py": "of times; test_known.py has what `profile` says of an emulated device",
    "test_proton.py": "of times",
    "test_replay.py": _HOST,
    "test_testing.py": "of times",
    "test_warm.py": _COMMANDS,
    "torch_compile": _TORCH,
    "torch_device": _TORCH,
    "torch_ops": _TORCH,
}


def _with_tests() -> list[str]:
    """The files and folders of tests under tests/device."""
    return sorted(
        path.name
        for path in _TESTS.iterdir()
        if path.name.startswith("test_") or (path.is_dir() and any(path.glob("test_*.py")))
    )


#: Under tests/device: those that an emulated device runs.
KERNEL_TESTS = tuple(name for name in _with_tests() if name not in LEFT_OUT)

#: Profile → the files that every run of the tests runs on its emulated device, each value of their parameters. They
#: differ, so that together they cover exchanges between lanes, fragments of two vendors' matrix units, and atomics.
EVERY_TIME = {
    "amd-rdna3": ("test_convert_layout.py", "test_dot_fragments.py"),
    "apple-m1": ("test_descriptors.py",),
    "intel-xe": ("test_hints.py", "test_loop_reductions.py"),
    "nvidia-hopper": ("test_atomics.py", "test_dot_precision.py", "test_tf32_halves.py"),
    "nvk-ampere": ("test_barriers.py", "test_dot_fragments.py", "test_prefetch.py"),
    "qualcomm-adreno7": ("test_gather.py",),
}
