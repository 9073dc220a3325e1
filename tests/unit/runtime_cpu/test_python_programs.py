"""The CPU device under programs in Python: each is a process of its own, whose kernels are Triton's."""

from .programs import run


def test_host_memory_is_copied_where_it_is_not_used_in_place() -> None:
    """As on a GPU: TRITON_SPIRV_HOST_MEMORY=staged finds kernels that write more than they say."""
    made = run(
        """
import torch, triton, triton.language as tl
from triton.backends.spirv.runtime.context import current
from tests.unit.runtime_cpu.doubled import doubled
x, out = torch.arange(1000.0), torch.full((1100,), -1.0)
for _ in range(3):
    doubled[(4,)](x, out, 1000, BLOCK=256)
context = current()
print(context.host_memory, context.native.host_addresses, (out[:1000] == 2 * x).all().item(), out[1000:].max().item())
""",
        TRITON_SPIRV_DEVICE="cpu",
        TRITON_SPIRV_HOST_MEMORY="staged",
    )
    assert made.stdout == "staged False True -1.0\n", made.stderr


def test_a_forked_child_of_a_program_in_python_goes_on() -> None:
    """With arrays in place, device memory and torch's device. Sizes are small: torch's own threads do not survive."""
    made = run(
        """
import torch
from tests.unit.runtime_cpu.doubled import doubled
from triton.backends.spirv import runtime
def work(seed):
    x, out = torch.arange(20000.0) + seed, torch.zeros(20000)
    doubled[(20,)](x, out, 20000, BLOCK=1024)
    given, found = runtime.from_numpy(np.ones(1000, np.float32)), runtime.empty(1000, "float32")
    doubled[(1,)](given, found, 1000, BLOCK=1024)
    y = torch.ones(5000, device="spirv")
    z = torch.empty_like(y)
    doubled[(5,)](y, z, 5000, BLOCK=1024)
    print((out == 2 * x).all().item(), found.to_numpy().sum(), z.sum().item(), flush=True)
work(0)
for seed in (1, 2):
    if os.fork() == 0:
        work(seed)
        sys.exit()
    os.wait()
work(3)
""",
        TRITON_SPIRV_DEVICE="cpu",
    )
    assert made.stdout.splitlines() == ["True 2000.0 10000.0"] * 4, made.stderr
