"""What users of CUDA do goes on working where SPIR-V is chosen for kernels, and docs/torch.md says what does not once
torch has the device ``spirv`` beside CUDA. The model of kernels is also trained on the device of these tests."""

import json
import sys
from pathlib import Path

import pytest
from triton.backends.spirv.runtime.context import current

torch = pytest.importorskip("torch")

from triton.runtime import driver  # noqa: E402

from tests.device.processes import run  # noqa: E402
from tests.device.runtime.kernel_model import trained, worst  # noqa: E402

_ROOT = Path(__file__).parents[3]

#: What torch does otherwise, or refuses, once it has two accelerators.
BROKEN = {
    "backward of sums",
    "a custom function",
    "layers",
    "layers of kernels",
    "checkpointing",
    "torch compile",
    "autocast",
    "pinned memory",
    "streams and events",
    "streams and events of any device",
    "torch accelerator",
    "device numbers",
    "gradient scaling",
    "a process group",
    "a process group of nccl",
    "threads",
}


def test_layers_of_kernels_train_as_torchs_own() -> None:
    """Gradients as near to float64's as torch's own operations on the CPU, and the losses of eight steps."""
    device = str(driver.active.get_active_torch_device())
    exact, exact_losses = trained("cpu", False, torch.float64)
    own, _ = trained("cpu", False, torch.float32)
    ours, losses = trained(device, True, torch.float32)
    assert worst(ours, exact) < 4 * worst(own, exact) + 1e-6
    assert max(abs(a - b) for a, b in zip(losses, exact_losses, strict=True)) < 1e-3
    assert losses[-1] < losses[0] / 4


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch was built without CUDA, or sees no GPU")
@pytest.mark.parametrize(
    ("environment", "arguments", "broken"),
    [
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, [], set()),
        ({"TRITON_SPIRV_BACKEND": "1"}, [], set()),
        ({"TRITON_DEFAULT_BACKEND": "spirv"}, [], set()),
        ({"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_TORCH_DEVICE": "1"}, [], BROKEN),
        ({"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_TORCH_DEVICE": "1"}, ["use"], BROKEN),
    ],
    ids=["torch alone", "chosen", "chosen by Triton's variable", "registered", "used"],
)
def test_what_users_of_cuda_do(
    environment: dict[str, str], arguments: list[str], broken: set[str], tmp_path: Path
) -> None:
    if not current().shares_memory:
        pytest.skip(f"{current().device.name} shares no memory with CUDA")
    unset = ("TRITON_SPIRV_BACKEND", "TRITON_DEFAULT_BACKEND", "TRITON_SPIRV_TORCH_DEVICE")
    environment = {
        **dict.fromkeys(unset, ""),
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
        **environment,
    }
    command = [sys.executable, "-m", "tests.device.runtime.beside_cuda", *arguments]
    done = run(command, seconds=400, cwd=_ROOT, **environment)
    found = {line["row"]: line for line in map(json.loads, filter(None, done.stdout.splitlines())) if "right" in line}
    assert len(found) == 22, done.stderr
    assert {name for name, line in found.items() if not line["right"]} == broken, found
