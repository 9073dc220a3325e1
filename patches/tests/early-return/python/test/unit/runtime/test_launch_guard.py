import warnings
from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import driver


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


class Device:
    """A driver that loads and launches nothing."""

    can_launch = False

    def __init__(self):
        self.loads = 0
        self.utils = self

    def get_current_device(self):
        return 0

    def get_device_properties(self, device):
        return {"max_shared_mem": 0}

    def launcher_cls(self, source, metadata):
        return lambda *args: None

    def load_binary(self, name, binary, shared, device):
        self.loads += 1
        return "module", "function", 0, 0, 1024

    def unload_module(self, module):
        pass


@pytest.fixture
def compiled(monkeypatch):
    """Makes a kernel that was compiled for a device that need not be there, and the driver that is active."""

    def made(device):
        monkeypatch.setattr("triton.compiler.compiler.driver", SimpleNamespace(active=device))
        monkeypatch.setattr(driver, "_active", device)
        return triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=GPUTarget("cuda", 80, 32))

    return made


def test_a_driver_that_cannot_launch_loads_nothing_and_warns_once(compiled, monkeypatch):
    monkeypatch.setattr("triton.runtime.launch_guard._warned", False)
    device = Device()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            compiled(device)[(1, 1, 1)](None)
    assert device.loads == 0
    (message,) = [str(warning.message) for warning in seen if "not run" in str(warning.message)]
    assert message.startswith("kernel 'kernel' is compiled but not run: Device only compiles")


def test_a_driver_says_why_it_cannot_launch(compiled, monkeypatch):
    monkeypatch.setattr("triton.runtime.launch_guard._warned", False)
    device = Device()
    device.why_no_launch = lambda: "there is no device."
    with pytest.warns(RuntimeWarning, match="not run: there is no device. Its outputs are left as they were"):
        compiled(device)[(1, 1, 1)](None)


def test_other_drivers_launch_as_before(compiled):
    device = Device()
    device.can_launch = True
    device.get_device_properties = lambda device: {"max_shared_mem": 1 << 20}
    kernel = compiled(device)
    kernel._init_handles()
    assert (device.loads, kernel.function) == (1, "function")
