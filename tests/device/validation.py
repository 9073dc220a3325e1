"""Whether what validates is there: Khronos' layer, which checks each call of Vulkan."""

import pytest
from triton.backends.spirv.runtime.errors import DeviceUnavailable
from triton.backends.spirv.runtime.vulkan.loader import VALIDATION_LAYER, instance_layers


def layer_is_installed() -> bool:
    """Whether the loader knows the validation layer."""
    try:
        return VALIDATION_LAYER in instance_layers()
    except DeviceUnavailable:
        return False


#: Of a test of what the layer says.
needs_layer = pytest.mark.skipif(not layer_is_installed(), reason=f"{VALIDATION_LAYER} is not installed")
