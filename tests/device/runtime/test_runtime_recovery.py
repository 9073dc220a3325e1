"""A device that failed is opened again: an error names the kernel, and the process goes on."""

from pathlib import Path

import pytest
from triton.backends.spirv.runtime.context import current

from tests.device.processes import run_script

#: The slow kernel of these scripts stands in its line 3. They launch so many programs of it that an H100 has work for
#: some seconds.
_KERNELS = """import triton
import triton.language as tl
@triton.jit
def slow(x_ptr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at)
    for _ in range(COUNT):
        total = total * 1.0001 + tl.load(x_ptr + at)
    tl.store(x_ptr + at, total)


@triton.jit
def add_one(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + 1)
"""

_START = """
import torch
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
from recovered import add_one, slow
def tell(call):
    try:
        print(call(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "recovered.py"
    path.write_text(_KERNELS)
    return path


def test_a_kernel_past_the_time_limit_is_named_and_the_next_launch_runs(kernels: Path) -> None:
    script = """
x, out = torch.zeros(64), torch.zeros(64)
add_one[(1,)](x, out, BLOCK=64)
before = current()
tell(lambda: slow[(1 << 26,)](torch.zeros(64), 30000, BLOCK=64))
for _ in range(2):
    add_one[(1,)](out, out, BLOCK=64)
tell(lambda: (out.tolist() == [3.0] * 64, current() is before, current().index == before.index))
slow[(1,)](x, 1, BLOCK=64)
tell(lambda: slow[(1 << 26,)](torch.zeros(64), 30000, BLOCK=64))
add_one[(1,)](out, out, BLOCK=64)
tell(lambda: out.tolist() == [4.0] * 64)
os._exit(0)
"""
    done = run_script(_START + script, kernels, TRITON_SPIRV_TIMEOUT="1")
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stderr
    goes_on = current().device.api != "Vulkan"  # a kernel is stopped there
    for line in (lines[0], lines[2]):
        assert line.partition(": ")[2].startswith(
            "recovered.py:3: kernel 'slow' did not end within the time limit of 1000 ms"
        ), done.stdout
        assert ("opens it again" in line) != goes_on
    assert lines[1] == f"(True, {goes_on}, True)" and lines[3] == "True"


@pytest.mark.only_on("Vulkan", "the CPU device stops a kernel and goes on, with the tensors that there are")
def test_memory_of_before_is_refused(kernels: Path) -> None:
    """By copies, and by launches on the device as it was opened again, which may have other memory at its address."""
    script = """
x = buffers.zeros(64, "float32")
add_one[(1,)](x, x, BLOCK=64)
slow[(1 << 26,)](x, 30000, BLOCK=64)
tell(current().native.synchronize)
fresh = [buffers.zeros(64, "float32") for _ in range(8)]
for one in fresh:
    add_one[(1,)](one, one, BLOCK=64)
tell(lambda: all((one.to_numpy() == 1).all() for one in fresh))
tell(lambda: add_one[(1,)](x, fresh[0], BLOCK=64))
tell(lambda: x.to_numpy())
tell(lambda: (fresh[0].to_numpy() == 1).all())
os._exit(0)
"""
    done = run_script(_START + script, kernels, TRITON_SPIRV_TIMEOUT="1")
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    assert lines[0].startswith("VulkanError: recovered.py:3: kernel 'slow' did not end within"), done.stdout
    assert lines[1] == lines[4] == "True"
    assert lines[2] == (
        "ValueError: kernel 'add_one': argument 'x_ptr' is in memory of the device as it was before it failed: make "
        "the tensor again"
    )
    assert lines[3].startswith("RuntimeError: this belongs to a device that failed earlier"), done.stdout


def test_a_lost_device_is_opened_again(kernels: Path, faulty_layer: dict[str, str]) -> None:
    script = """
x, out = torch.zeros(64), torch.zeros(64)
add_one[(1,)](x, out, BLOCK=64)
os.environ["FAULTY_SUBMIT"] = "1"
tell(lambda: add_one[(1,)](x, out, BLOCK=64))
os.environ["FAULTY_SUBMIT"] = "0"
add_one[(1,)](out, out, BLOCK=64)
tell(lambda: out.tolist() == [2.0] * 64)
"""
    done = run_script(_START + script, kernels, TRITON_SPIRV_VALIDATE="0", FAULTY_SUBMIT="0", **faulty_layer)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("VulkanError: vkQueueSubmit failed: VK_ERROR_DEVICE_LOST (-4): the device reset or")
    assert lines[1] == "True" and done.returncode == 0, done.stderr


def test_memory_at_an_address_of_before_is_not_used(kernels: Path, faulty_layer: dict[str, str]) -> None:
    """Each VkDevice of NVIDIA's driver has its own addresses, which begin where another's do."""
    script = """
old = buffers.zeros(64, "float32")
add_one[(1,)](old, old, BLOCK=64)
os.environ["FAULTY_SUBMIT"] = "1"
tell(lambda: add_one[(1,)](old, old, BLOCK=64))
os.environ["FAULTY_SUBMIT"] = "0"
new = buffers.zeros(64, "float32")
add_one[(1,)](new, new, BLOCK=64)
tell(lambda: (new.to_numpy() == 1).all())
tell(lambda: new.data_ptr() == old.data_ptr())
"""
    done = run_script(
        _START + script, kernels, TRITON_SPIRV_VALIDATE="0", FAULTY_SUBMIT="0", FAULTY_ADDRESSES="8", **faulty_layer
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stderr
    assert "VK_ERROR_DEVICE_LOST" in lines[0] and lines[1:] == ["True", "False"], done.stdout


def test_a_process_ends_after_a_kernel_that_did_not(kernels: Path) -> None:
    script = """
tell(lambda: slow[(1 << 26,)](torch.zeros(64), 30000, BLOCK=64))
out = torch.zeros(64)
add_one[(1,)](out, out, BLOCK=64)
tell(lambda: out.tolist() == [1.0] * 64)
"""
    done = run_script(_START + script, kernels, TRITON_SPIRV_TIMEOUT="1")
    assert done.stdout.splitlines()[1:] == ["True"] and done.returncode == 0, done.stderr


def test_torch_operations_say_what_failed(kernels: Path, faulty_layer: dict[str, str]) -> None:
    """Those that are done like earlier ones, whose launches nobody waits for."""
    script = """
x = torch.ones(64, device="spirv")
for _ in range(4):
    y = x * x
torch.spirv.synchronize()
def fail():
    for _ in range(100000):
        x * x
os.environ["FAULTY_SUBMIT"] = "1"
tell(fail)
os.environ["FAULTY_SUBMIT"] = "0"
tell(lambda: (torch.ones(64, device="spirv") * 2).sum().item())
"""
    done = run_script(_START + script, kernels, TRITON_SPIRV_VALIDATE="0", FAULTY_SUBMIT="0", **faulty_layer)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("VulkanError: vkQueueSubmit failed: VK_ERROR_DEVICE_LOST (-4): the device reset or")
    assert lines[1] == "128.0" and done.returncode == 0, done.stderr


@pytest.mark.only_on("Vulkan", "the CPU device stops a kernel and goes on, with the tensors that there are")
def test_torch_operations_go_on(kernels: Path) -> None:
    """Their kernels are loaded again; a tensor of before is refused."""
    script = """
from triton.backends.spirv.torch import registration
registration.register()
for _ in range(4):
    old = torch.ones(64, device="spirv") * 2
tell(lambda: old.sum().item())
slow[(1 << 26,)](old, 30000, BLOCK=64)
tell(torch.spirv.synchronize)
for _ in range(4):
    new = torch.ones(64, device="spirv") * 2
tell(lambda: new.sum().item())
for _ in range(4):
    new + 1
tell(lambda: (old + 1).cpu())
tell(lambda: (new * 3).sum().item())
os._exit(0)
"""
    done = run_script(_START + script, kernels, TRITON_SPIRV_TIMEOUT="1")
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    assert lines[0] == lines[2] == "128.0" and lines[4] == "384.0", done.stdout
    assert lines[1].startswith("VulkanError: recovered.py:3: kernel 'slow' did not end within"), done.stdout
    assert lines[3].startswith("ValueError:") and "before it failed" in lines[3], done.stdout
