"""Matrix units are asked of the instance that a device belongs to."""

from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.runtime.vulkan import matrix_properties


def test_the_function_is_the_one_of_the_devices_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that failed is opened again in a new instance. A function that the loader gave for another
    instance crashes there where the loader does not know the extension."""
    asked: list[Any] = []
    lib = SimpleNamespace(vkGetInstanceProcAddr=lambda instance, name: asked.append((instance, name)) or 0)
    monkeypatch.setattr(matrix_properties, "vulkan", lambda: SimpleNamespace(ffi=SimpleNamespace(NULL=0), lib=lib))
    second: Any = SimpleNamespace(handle="second")
    assert matrix_properties.matrix_properties(second, "device") == ()
    assert asked == [("second", b"vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")]
