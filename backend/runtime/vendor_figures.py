"""What code for NVIDIA's GPUs asks for and Vulkan does not report: errors that say what is missing, and what to use."""

from __future__ import annotations

from typing import NoReturn

#: Functions of triton.testing that compute with what is so of NVIDIA's GPUs → what they need of a device.
_FIGURES = {
    "get_max_tensorcore_tflops": "the number of its multiprocessors and the products of their tensor cores in a cycle",
    "get_max_simd_tflops": "the number of its multiprocessors and their operations in a cycle",
    "set_gpu_clock": "clocks that can be set; nvidia-smi sets those of NVIDIA's GPUs",
}
#: Names that drivers of CUDA and their device interfaces have → what to use instead.
_NAMES = {
    "get_device_capability": "compute capabilities are NVIDIA's. What a device can do is in "
    "triton.runtime.driver.active.get_current_target().arch",
    "get_device_properties": "the limits of a device are in "
    "triton.runtime.driver.active.utils.get_device_properties(0)",
}


def refuse_vendor_figure(helper: str) -> NoReturn:
    """Raises NotImplementedError for a function of triton.testing (patches/vendor-figures.patch)."""
    raise NotImplementedError(
        f"triton.testing.{helper} needs of a device {_FIGURES[helper]}. Vulkan does not report that: measure with "
        "triton.testing.do_bench, or take the figure from the vendor's data sheet"
    )


def missing_attribute(owner: object, name: str) -> AttributeError:
    """The error for a name that ``owner``, a driver or device interface, does not have."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(f"{text}: {_NAMES[name]}" if name in _NAMES else text, name=name, obj=owner)


class WithoutVendorNames:
    """A class whose objects say what to use in place of what only CUDA's have; ``hasattr`` is False for that."""

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(self, name)
