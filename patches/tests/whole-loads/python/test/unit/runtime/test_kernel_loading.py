import threading
from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


class Device:
    """A driver that counts how often it loads a kernel."""

    def __init__(self, fails=0):
        self.loads = 0
        self.fails = fails
        self.begun = threading.Event()
        self.utils = self

    def get_current_device(self):
        return 0

    def get_device_properties(self, device):
        return {"max_shared_mem": 1 << 20}

    def launcher_cls(self, source, metadata):
        return "launcher"

    def load_binary(self, name, binary, shared, device):
        self.loads += 1
        self.begun.set()
        if self.loads <= self.fails:
            raise KeyboardInterrupt
        threading.Event().wait(0.05)
        return "module", "function", 0, 0, 1024

    def unload_module(self, module):
        pass


@pytest.fixture
def load(monkeypatch):

    def compiled(device):
        monkeypatch.setattr("triton.compiler.compiler.driver", SimpleNamespace(active=device))
        return triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=GPUTarget("cuda", 80, 32))

    return compiled


def test_threads_load_a_kernel_once(load):
    device = Device()
    compiled = load(device)
    barrier = threading.Barrier(4)

    def first_use():
        barrier.wait()
        compiled._init_handles()

    threads = [threading.Thread(target=first_use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert device.loads == 1


def test_a_kernel_has_no_launcher_before_its_function(load):
    device = Device()
    compiled = load(device)
    thread = threading.Thread(target=compiled._init_handles)
    thread.start()
    device.begun.wait()
    assert compiled._run is None or compiled.function is not None
    assert (compiled.run, compiled.function) == ("launcher", "function")
    thread.join()


def test_an_interrupted_load_is_made_up_for(load):
    device = Device(fails=1)
    compiled = load(device)
    with pytest.raises(KeyboardInterrupt):
        compiled._init_handles()
    assert (compiled.run, compiled.function) == ("launcher", "function")
