"""What the wheel does when torch is imported: the device is known, and nothing of triton is imported for it.

The ways in which a process may first use the device are in tests/device/torch_device/first_uses.py.
"""

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.device.processes import run

_NAMED = "torch._C._get_privateuse1_backend_name()"


def python(script: str, **environment: str) -> str:
    done = run([sys.executable, "-c", script], seconds=120, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_entry_point_is_there() -> None:
    (point,) = entry_points(group="torch.backends", name="spirv")
    assert point.value == "triton_spirv_autoload:autoload"


def test_torch_knows_the_device_and_triton_is_imported_when_it_is_used() -> None:
    told = python(
        "import sys, torch\n"
        "assert torch.device('spirv').type == 'spirv'\n"
        "torch.manual_seed(3)\n"
        "x = torch.rand(3, requires_grad=True)\n"
        "(x * 2).sum().backward()\n"
        "torch.nn.Linear(3, 3)(x).sum().backward()\n"
        "assert 'triton' not in sys.modules, 'no device was used'\n"
        "y = torch.arange(5, device='spirv')\n"
        "assert 'triton' in sys.modules and y.device == torch.device('spirv', 0)\n"
        "assert torch.spirv.is_available() and torch.spirv.device_count() >= 1\n"
        "assert torch.accelerator.current_accelerator().type == 'spirv' and torch.accelerator.is_available()\n"
        "assert y.is_spirv and y.cpu().tolist() == [0, 1, 2, 3, 4]\n"
        "print('done')\n"
    )
    assert told == "done\n"


def test_a_device_that_is_registered_by_hand_compiles() -> None:
    told = python(
        "import torch\n"
        "from triton.backends.spirv.torch import registration\n"
        "registration.register()\n"
        "x = torch.arange(8.0, device='spirv')\n"
        "print(torch.compile(lambda x: (x * 2).sum())(x).item())\n",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        TRITON_SPIRV_BACKEND="1",
    )
    assert told == "56.0\n"


def test_torchs_own_switch_leaves_it_out() -> None:
    assert python(f"import torch; print({_NAMED})", TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "privateuseone\n"


def test_it_steps_aside_for_another_backend(tmp_path: Path) -> None:
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nother = other_backend:autoload\n")
    (tmp_path / "other_backend.py").write_text(
        "def autoload():\n    import torch\n    torch.utils.rename_privateuse1_backend('other')\n"
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    told = python(
        f"import torch; print({_NAMED})\n"
        "from triton.backends.spirv.torch import registration\n"
        "try: registration.register()\n"
        "except RuntimeError as error: print(error)\n",
        PYTHONPATH=path,
    )
    assert told.startswith("other\n") and "is taken by 'other'" in told


def test_an_older_torch_is_as_it_was() -> None:
    told = python(
        "import sys, torch, triton_spirv_autoload\n"
        "torch.__version__ = torch.torch_version.TorchVersion('2.8.0+cpu')\n"
        "before = list(sys.meta_path)\n"
        "triton_spirv_autoload.autoload()\n"
        f"print({_NAMED}, sys.meta_path == before)\n"
        "from triton.backends.spirv.torch import registration\n"
        "try: registration.register()\n"
        "except RuntimeError as error: print(error)\n",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert told.startswith("privateuseone True\ntorch 2.8.0+cpu is too old for the device 'spirv', which needs 2.10")


def test_without_triton_torch_is_as_it_was() -> None:
    told = python(
        "import sys; sys.modules['triton'] = None\n"
        "import torch\n"
        "print(torch.compile(lambda x: x + 1, backend='eager')(torch.zeros(1)).item())\n"
    )
    assert told == "1.0\n"


def test_the_entry_point_takes_milliseconds() -> None:
    told = python(
        "import torch, time, triton_spirv_autoload\n"
        "start = time.process_time()\n"
        "triton_spirv_autoload.autoload()\n"
        "print(time.process_time() - start)\n",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    print(f"autoload() took {float(told) * 1e3:.2f} ms")
    assert float(told) < 0.05, "a generous limit, of the processor's time"


def test_a_torch_without_what_the_device_can_do_without_compiles_for_it() -> None:
    """Of what each hook without which the device is not refused needs, such a torch has nothing."""
    told = python(
        "import torch\n"
        "from dataclasses import replace\n"
        "from triton.backends.spirv.torch.compile.internals import hooks as internals\n"
        "internals.HOOKS = [replace(each, needs=('gone',)) if each.otherwise else each for each in internals.HOOKS]\n"
        "x = torch.arange(4.0, device='spirv', requires_grad=True)\n"
        "torch.compile(lambda x: (2 * x).square().sum())(x).backward()\n"
        "print(x.grad.tolist(), internals.BROKEN)\n"
    )
    assert told == "[0.0, 8.0, 16.0, 24.0] {}\n"


@pytest.mark.parametrize(
    "uses",
    [
        "import torch; torch.zeros(2, device='spirv')",
        "import triton.backends.spirv.torch; triton.backends.spirv.torch.register()",
        "from triton.backends.spirv.autoload import OLDEST_TORCH; import torch; torch.zeros(2, device='spirv')",
    ],
)
def test_no_module_of_the_entry_point_is_loaded_twice(uses: str) -> None:
    """It is installed outside of triton and inside."""
    told = python(
        f"import sys, os\n{uses}\n"
        "named = [module for name, module in sys.modules.items() if 'autoload' in name and 'spirv' in name]\n"
        "ours = {id(module): module for module in named}\n"
        "files = sorted(os.path.basename(module.__file__) for module in ours.values())\n"
        "print(len(files) >= 9, len(files) == len(set(files)), 'triton.backends.spirv.autoload' in sys.modules)\n"
    )
    assert told == "True True True\n"
