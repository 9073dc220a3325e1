"""CUDA tensors as arguments: on NVIDIA's Vulkan driver, where torch sees the same GPU."""

import sys
from pathlib import Path

import pytest
from triton.backends.spirv.runtime.context import current

from tests.device.processes import run

_PROGRAM = Path(__file__).with_name("cuda_tensors.py")
_ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def _beside_cuda() -> None:
    if not current().shares_memory:
        pytest.skip(f"{current().device.name} shares no memory with CUDA")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch was built without CUDA, or sees no GPU")


def _check(name: str, **environment: str) -> None:
    # whatever memory torch takes outside of the tests
    environment = {"PYTORCH_ALLOC_CONF": "", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False", **environment}
    done = run([sys.executable, str(_PROGRAM), name], cwd=_ROOT, **environment)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


@pytest.mark.parametrize(
    "check",
    [
        "in_place",
        "memory_that_is_freed_and_taken_again",
        "ordinary_memory_is_refused",
        "streams_in_order",
        "a_stream_that_is_done_does_not_start_anothers_launch",
        "threads_with_streams_of_their_own",
        "with_other_memory",
    ],
)
def test_memory_of_a_pool(check: str) -> None:
    _check(check)


@pytest.mark.parametrize("check", ["expandable_segments", "expandable_segments_that_change"])
def test_expandable_segments(check: str) -> None:
    _check(check, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")


def test_copies_through_host_memory() -> None:
    _check("staged", TRITON_SPIRV_CUDA="staged")


@pytest.mark.parametrize(
    "way", [{"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, {"TRITON_SPIRV_CUDA": "staged"}]
)
@pytest.mark.parametrize("check", ["compared_launches", "a_wrong_item_is_named"])
def test_values_are_compared(check: str, way: dict[str, str]) -> None:
    _check(check, **way)


def test_expandable_segments_unasked() -> None:
    """The choice of this backend for kernels makes torch's segments expandable."""
    _check("expandable_segments", PYTORCH_CUDA_ALLOC_CONF="", TRITON_SPIRV_BACKEND="1")


@pytest.mark.parametrize(
    ("check", "registered"),
    [
        ("the_current_gpu", "0"),
        ("a_gpu_for_each_thread", "0"),
        ("gradients_on_both_gpus", "0"),
        ("the_current_gpu_of_the_device_spirv", "1"),
    ],
)
def test_several_gpus(check: str, registered: str) -> None:
    """Where torch has the device spirv, too, that one's current device is where launches go."""
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("torch sees one GPU")
    _check(
        check,
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True" if registered == "1" else "",
        TRITON_SPIRV_BACKEND="1",
        TRITON_SPIRV_TORCH_DEVICE=registered,
        TRITON_SPIRV_DEVICE="",
        LOCAL_RANK="",
    )


def test_time_limits() -> None:
    _check("a_limit_does_not_count_what_cuda_takes", TRITON_SPIRV_TIMEOUT="0.5")
    _check("a_kernel_that_never_ends", TRITON_SPIRV_TIMEOUT="2")
