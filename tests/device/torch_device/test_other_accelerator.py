"""torch's only place for an out-of-tree device stays free beside another accelerator of torch, unless the device is
asked for by itself. On a machine without CUDA its files and torch's figures are played."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.device.forks import torch_server

#: torch with CUDA on a machine with NVIDIA's driver, before its entry point is called.
PLAYED = """
import os, torch
torch.version.cuda = torch.version.cuda or "13.0"
there = os.path.exists
os.path.exists = lambda path: path == "/dev/nvidiactl" or there(path)
"""
AUTOLOAD = "import triton_spirv_autoload\ntriton_spirv_autoload.autoload()\n"
NAME = "print(torch._C._get_privateuse1_backend_name())\n"
#: Nothing of this is set outside of these tests.
UNSET = dict.fromkeys(("TRITON_SPIRV_BACKEND", "TRITON_DEFAULT_BACKEND", "TRITON_SPIRV_TORCH_DEVICE"), "")


Python = Callable[..., str]


@pytest.fixture(scope="module")
def python() -> Iterator[Python]:
    """Gives what a program prints, in a process that has imported torch alone, without its entry points."""
    with torch_server(**UNSET, TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:

        def told(script: str, **environment: str) -> str:
            done = run(PLAYED + script, **environment)
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield told


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "privateuseone"),
        ({"TRITON_SPIRV_BACKEND": "1"}, "privateuseone"),
        ({"TRITON_DEFAULT_BACKEND": "spirv"}, "privateuseone"),
        ({"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_TORCH_DEVICE": "0"}, "privateuseone"),
        ({"TRITON_SPIRV_TORCH_DEVICE": "1"}, "spirv"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "spirv"),
    ],
    ids=str,
)
def test_the_choice_of_kernels_is_no_choice_of_torchs_device(
    python: Python, environment: dict[str, str], name: str
) -> None:
    assert python(AUTOLOAD + NAME, **environment) == f"{name}\n"


def test_what_is_missing_says_how_to_have_it(python: Python) -> None:
    told = python(
        AUTOLOAD + "try: torch.spirv\nexcept AttributeError as error: print(error)\n"
        "print(hasattr(torch, 'spirv'), hasattr(torch, 'no_such_name'), torch.compiler.is_compiling())\n",
        TRITON_SPIRV_BACKEND="1",
    )
    lines = told.splitlines()
    assert lines[0].startswith("module 'torch' has no attribute 'spirv': torch's device 'spirv' steps aside for 'cuda'")
    assert "TRITON_SPIRV_TORCH_DEVICE=1" in lines[0] and "triton.backends.spirv.torch.register()" in lines[0]
    assert lines[1] == "False False False"


def test_a_call_of_its_own_registers_the_device(python: Python) -> None:
    told = python(
        AUTOLOAD + NAME + "from triton.backends.spirv.torch import register\n"
        "register()\nregister()\n" + NAME + "print((torch.ones(3, device='spirv') * 2).sum().item())\n",
        TRITON_SPIRV_BACKEND="1",
    )
    assert told == "privateuseone\nspirv\n6.0\n"


def test_a_wrong_value_is_refused(python: Python) -> None:
    told = python("try:\n    " + AUTOLOAD.replace("\n", "\n    ") + "pass\nexcept ValueError as error: print(error)\n",
                  TRITON_SPIRV_TORCH_DEVICE="cuda")  # fmt: skip
    assert told == "TRITON_SPIRV_TORCH_DEVICE must be 0 or 1, not 'cuda'\n"


#: A GPU of NVIDIA's driver, which torch drives with CUDA too, in the place of the device of these tests.
GPU = """
from types import SimpleNamespace
from triton.backends.spirv.driver import SPIRVDriver
from triton.backends.spirv.runtime import context
gpu = SimpleNamespace(host_memory="staged", shares_memory={shares}, index=0, device=SimpleNamespace(uuid="ab" * 16))
context.current = lambda: gpu
torch.cuda.is_available, torch.cuda.device_count = lambda: {count} > 0, lambda: {count}
torch.cuda.init = lambda: None
uuids = ["GPU-" + "cd" * 16, "GPU-abababab-abab-abab-abab-abababababab"]
torch.cuda.get_device_properties = lambda index: SimpleNamespace(uuid=uuids[index])
print(SPIRVDriver().get_active_torch_device())
"""


@pytest.mark.parametrize(
    ("shares", "count", "environment", "told"),
    [
        (True, 2, {}, "cuda:1\nprivateuseone\n"),
        (True, 1, {}, "cpu\nprivateuseone\n"),
        (False, 2, {}, "cpu\nprivateuseone\n"),
        (True, 0, {}, "spirv:0\nspirv\n"),
        (True, 2, {"TRITON_SPIRV_TORCH_DEVICE": "1"}, "spirv:0\nspirv\n"),
    ],
    ids=["the same GPU", "another GPU", "another driver", "a driver without a GPU", "asked for"],
)
def test_kernels_take_the_tensors_of_the_accelerator(
    python: Python, shares: bool, count: int, environment: dict[str, str], told: str
) -> None:
    """Libraries ask the driver where to put tensors: no answer takes torch's place unasked."""
    assert python(AUTOLOAD + GPU.format(shares=shares, count=count) + NAME, **environment) == told


def test_gradients_that_fail_say_why(python: Python) -> None:
    told = python(
        "engine = torch.autograd.graph._engine_run_backward\n"
        "def fail(*args, **kwargs): raise RuntimeError('opt_ready_stream && opt_parent_stream INTERNAL ASSERT')\n"
        "torch.autograd.graph._engine_run_backward = torch.autograd._engine_run_backward = fail\n" + AUTOLOAD +
        "try: torch.ones(1, requires_grad=True).sum().backward()\n"
        "except RuntimeError as error: print(error)\n",
        TRITON_SPIRV_TORCH_DEVICE="1",
    )  # fmt: skip
    assert told.startswith("torch computes no gradients of 'cuda' tensors in a process that has the device 'spirv'")
    assert "TRITON_SPIRV_TORCH_DEVICE" in told


def test_kernels_are_tuned_where_torch_does_not_know_the_device(python: Python, tmp_path: Path) -> None:
    """Inductor's kernels of other devices' tensors run on the Vulkan device, and are timed there."""
    told = python(
        AUTOLOAD + "import torch._inductor.config as inductor\n"
        "from torch._inductor.runtime import triton_heuristics\n"
        "timed, bench = [], triton_heuristics.CachingAutotuner.bench\n"
        "def counted(*args, **options): timed.append(bench(*args, **options)); return timed[-1]\n"
        "triton_heuristics.CachingAutotuner.bench = counted\n"
        "inductor.cpu_backend, inductor.max_autotune_pointwise = 'triton', True\n"
        "x = torch.randn(100, 64, requires_grad=True)\n"
        "torch.compile(lambda x: torch.nn.functional.gelu(x).sum(-1))(x).sum().backward()\n"
        "found, x.grad = x.grad, None\n"
        "torch.nn.functional.gelu(x).sum().backward()\n"
        "torch.testing.assert_close(found, x.grad)\n"
        "print(len(timed) > 1 and all(0 < time < 1e3 for time in timed))\n" + NAME,
        TRITON_SPIRV_BACKEND="1",
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
        TRITON_CACHE_DIR=str(tmp_path / "triton"),
        TORCHINDUCTOR_COMPILE_THREADS="1",
    )
    assert told == "True\nprivateuseone\n"


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, []),
        ({"TRITON_SPIRV_BACKEND": "1"}, ["expandable_segments:True"]),
        ({"TRITON_DEFAULT_BACKEND": "spirv"}, ["expandable_segments:True"]),
        ({"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_TORCH_DEVICE": "1"}, ["expandable_segments:True"]),
        (
            {"TRITON_SPIRV_BACKEND": "1", "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"},
            ["max_split_size_mb:64,expandable_segments:True"],
        ),
        ({"TRITON_SPIRV_BACKEND": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}, []),
        ({"TRITON_SPIRV_BACKEND": "1", "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, []),
        ({"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_CUDA": "staged"}, []),
        ({"TRITON_SPIRV_BACKEND": "1", "CUDA_VISIBLE_DEVICES": ""}, []),
    ],
    ids=str,
)
def test_torchs_memory_can_be_imported(python: Python, environment: dict[str, str], told: list[str]) -> None:
    """torch.cuda's allocator is told at import, and not against the user."""
    unset = dict.fromkeys(("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "TRITON_SPIRV_CUDA"), "")
    script = "told = []\ntorch._C._accelerator_setAllocatorSettings = told.append\n" + AUTOLOAD + "print(told)\n"
    assert python(script, **{**unset, **environment}) == f"{told}\n"


#: Three GPUs, of which torch.cuda shows two, in another order, and has one current for each thread.
TWO_GPUS = """
import threading
from dataclasses import replace
from types import SimpleNamespace
from triton.backends.spirv.runtime import context, device_choice
one = device_choice.devices()[0]
gpus = [replace(one, uuid=name * 16) for name in ("ab", "cd", "ef")]
device_choice._found = context.all_devices = device_choice.devices = lambda: tuple(gpus)
context.choose = lambda found: device_choice.choose(gpus)
torch.cuda.device_count = lambda: 2
torch.cuda.get_device_properties = lambda index: SimpleNamespace(uuid=gpus[1 - index].uuid)
state = threading.local()
torch.cuda.current_device = lambda: getattr(state, "index", 0)
torch.cuda.set_device = lambda index: setattr(state, "index", index)
started = False
torch.cuda.is_initialized = lambda: started
"""


def test_launches_go_to_the_current_gpu_of_torch_cuda(python: Python) -> None:
    """In each thread; CUDA is not started by it; and what the runtime chooses is torch.cuda's choice, too."""
    told = python(
        AUTOLOAD
        + TWO_GPUS
        + """
from triton.backends.spirv.driver import SPIRVDriver
driver = SPIRVDriver()
seen = [driver.get_current_device()]
started = True
seen += [driver.get_current_device()]
torch.cuda.set_device(1)
seen += [driver.get_current_device()]
def work():
    seen.append(driver.get_current_device())
    driver.set_current_device(0)
    seen.append((driver.get_current_device(), torch.cuda.current_device()))
thread = threading.Thread(target=work)
thread.start()
thread.join()
with context.on_device(1):
    seen.append((driver.get_current_device(), torch.cuda.current_device()))
seen.append((driver.get_current_device(), torch.cuda.current_device()))
with context.on_device(2):
    seen.append((driver.get_current_device(), torch.cuda.current_device()))
seen.append((driver.get_current_device(), torch.cuda.current_device()))
print(seen)
""",
        TRITON_SPIRV_BACKEND="1",
        TRITON_SPIRV_DEVICE="",
        LOCAL_RANK="2",
    )
    assert told == "[2, 1, 0, 1, (0, 1), (1, 0), (0, 1), (2, 1), (0, 1)]\n"


def test_a_program_with_tensors_of_its_own_does_not_follow(python: Python) -> None:
    told = python(
        AUTOLOAD
        + TWO_GPUS
        + """
started = True
from triton.backends.spirv.driver import SPIRVDriver
torch.cuda.set_device(1)
print(SPIRVDriver().get_current_device(), len(context.devices()))
""",
        TRITON_SPIRV_TORCH_DEVICE="1",
        TRITON_SPIRV_DEVICE="",
        LOCAL_RANK="2",
    )
    assert told == "0 1\n"
