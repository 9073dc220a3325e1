"""torch's operations go on while the driver compiles their kernels."""

import re

import pytest

from tests.device.processes import run_script

pytestmark = pytest.mark.only_on("Vulkan", "the CPU device makes its kernels at once")

#: Kernels of operations are compiled once ``gate`` is set; ``REFUSES``: none then.
_HELD = """
import threading, torch
from triton.backends.spirv.torch import register
from triton.backends.spirv.runtime.vulkan.pipeline import VulkanKernel
register()
gate, compiled = threading.Event(), VulkanKernel._compiled
def held(kernel, *args, late=True, **kwargs):
    if not late:
        gate.wait()
    if REFUSES:
        raise RuntimeError("VK_ERROR_UNKNOWN")
    return compiled(kernel, *args, late=late, **kwargs)
x = torch.arange(64, dtype=torch.float32).div(64).to("spirv")
VulkanKernel._compiled = held
"""


def test_a_step_of_training() -> None:
    script = """
def step(device):
    torch.manual_seed(0)
    a = torch.randn(16, 16).to(device).requires_grad_()
    values = torch.arange(1000.).to(device)[:256].view(16, 16)  # a copy between launches
    loss = torch.nn.functional.gelu(a @ a + values / 1000).softmax(-1).square().sum()
    loss.backward()
    with torch.no_grad():
        a -= 0.1 * a.grad
        a[3:5].fill_(7)
    return loss.detach(), a.detach()
results = step("spirv")
print("launched", not gate.is_set(), flush=True)
threading.Timer(0.2, gate.set).start()
for one, other in zip(results, step("cpu")):
    torch.testing.assert_close(one.cpu(), other)
print(results[0].item() > 0)
"""
    done = run_script(_HELD.replace("REFUSES", "False") + script)
    assert done.stdout == "launched True\nTrue\n", done.stderr


@pytest.mark.parametrize("reads", ["results[0].item()", "results[2].cpu()", "torch.spirv.synchronize()", "x + 1"])
def test_a_kernel_that_is_refused_is_left_to_the_cpu_from_then_on(reads: str) -> None:
    """The call that is an error names the kernel; what was prepared meanwhile is not done like it again."""
    script = (
        _HELD.replace("REFUSES", "True")
        + f"""
results = [torch.nn.functional.silu(x)[5] for _ in range(3)]
gate.set()
while not any(one._refused for one in typed_kernels._every):
    time.sleep(0.01)
current().opened.compilations.end()
try:
    {reads}
except RuntimeError as error:
    print(error)
wanted = torch.nn.functional.silu(x.cpu())
for _ in range(3):
    torch.testing.assert_close(torch.nn.functional.silu(x).cpu(), wanted)
"""
    ).replace("import threading", "from triton.backends.spirv.launching import typed_kernels\nimport threading")
    done = run_script(script, TRITON_SPIRV_VALIDATE="0")  # launches that are validated are not prepared
    assert done.returncode == 0, done.stderr
    first, _, why = done.stdout.partition(" did not run, and neither did what followed it: ")
    assert re.search(r":\d+: kernel '\w+'$", first), done.stdout + done.stderr
    assert why.count("\n") == 1 and "was refused by" in why and "VK_ERROR_UNKNOWN" in why
