"""The plugin of pytest (backend/pytest_plugin/, backend/kernel_tests.py), in runs of pytest of their own."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest
from triton.backends.spirv import kernel_tests, settings
from triton.backends.spirv.options import CHOICES
from triton.backends.spirv.settings import EMULATE

from tests.device.processes import on_path

ROOT = Path(__file__).parents[2]

KERNELS = """import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv import runtime


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def no_mask(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n))


@triton.jit
def total(x, out):
    tl.store(out, tl.load(out) + tl.load(x + tl.program_id(0)))


def launch_add(n):
    x, y, out = (runtime.from_numpy(np.full(n, value, np.float32)) for value in (1, 2, 0))
    add[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
    assert (out.to_numpy() == 3).all()


def launch_no_mask():
    no_mask[(1,)](*(runtime.from_numpy(np.zeros(50, np.float32)) for _ in range(2)), 50, BLOCK=64)
"""
LINE = KERNELS.splitlines().index("    tl.store(out + i, tl.load(x + i, mask=i < n))") + 1

TESTS = """

@pytest.mark.parametrize("n", [1, 100, 1000])
def test_add(n):
    launch_add(n)


def test_no_mask():  # looks at no value
    launch_no_mask()
"""

MARKED = """

def test_before(triton_kernels):
    launch_add(8)
    assert triton_kernels["test_kernels.py:add"].launches == 1
    assert triton_kernels["test_kernels.py:add"].checks == {}


@pytest.mark.triton(checks="bounds,races")
def test_marked(triton_kernels):
    launch_add(8)  # a kernel that was compiled without
    assert triton_kernels["test_kernels.py:add"].checks == {"bounds": 1, "races": 1}
    with pytest.raises(IndexError):
        launch_no_mask()
    with pytest.raises(runtime.ProgramRace, match="nothing orders them"):
        total[(4,)](*(runtime.from_numpy(np.zeros(4, np.float32)) for _ in range(2)))


def test_after(triton_kernels, triton_device):
    torch = pytest.importorskip("torch")
    assert isinstance(triton_device, torch.device)
    x = torch.ones(8, device=triton_device)
    add[(1,)](x, x, x, 8, BLOCK=64)
    assert triton_kernels["test_kernels.py:add"].checks == {} and (x == 2).all()
"""


def run(folder: Path, text: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_kernels.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TRITON_SPIRV"))}
    environment[settings.DEVICE.name] = "cpu"  # a GPU would refuse to look for races between programs
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env={**environment, **variables}, capture_output=True, text=True, check=False
    )


def row(output: str, kernel: str, file: str = "test_kernels.py") -> list[str]:
    """Launches, checks, worst difference and seconds of a kernel in the last table."""
    pattern = rf"^{re.escape(file)}:{kernel} +(\d+)  (\S+(?:,? \S+)*)  +(\S*) +(\d+\.\d\d)$"
    found = re.findall(pattern, output, re.MULTILINE)
    assert found, output
    return list(found[-1])


def test_without_options_nothing_of_triton_is_imported(tmp_path: Path) -> None:
    text = (
        "import sys\n\n\ndef test_it(pytestconfig):\n    assert pytestconfig.pluginmanager.hasplugin('spirv')\n"
        "    assert {name.partition('.')[0] for name in sys.modules}.isdisjoint({'triton', 'torch', 'numpy'})\n"
    )
    others = {f"-pno:{plugin.name}" for plugin in entry_points(group="pytest11")} - {"-pno:spirv"}  # what they import
    done = run(tmp_path, text, *others)
    assert done.returncode == 0 and "kernels on" not in done.stdout, done.stdout


def test_a_kernel_without_a_mask_fails_with_its_line(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    done = run(tmp_path, KERNELS + TESTS, "--triton-checks=bounds,races,disorder", f"--junitxml={results}")
    assert done.returncode == 1 and "1 failed, 3 passed" in done.stdout, done.stdout
    assert re.search(rf"OutOfBounds: .*test_kernels\.py:{LINE}: kernel 'no_mask': store out of bounds", done.stdout)
    assert "backend/runtime" not in done.stdout  # the frames that are shown are the test's
    assert "kernels on cpu" in done.stdout
    assert row(done.stdout, "add")[:2] == ["3", "bounds, disorder, races"]
    assert row(done.stdout, "no_mask")[:2] == ["1", "bounds, disorder, races"]
    said = [(one.get("name"), one.get("value")) for one in ElementTree.parse(results).iter("property")]
    assert said.count(("triton.device", "cpu")) == 4
    kernel = "test_kernels.py:add, launches: 1, checks: bounds, disorder, races"
    assert said.count(("triton.kernel", kernel)) == 3


def test_a_marker_is_for_its_test_alone(tmp_path: Path) -> None:
    done = run(tmp_path, KERNELS + MARKED)
    assert done.returncode == 0, done.stdout
    assert row(done.stdout, "add")[:2] == ["3", "bounds (1), races (1)"]


@pytest.mark.parametrize("seeded", [False, True])
def test_values_are_compared_with_the_reference_s(tmp_path: Path, seeded: bool) -> None:
    text = (
        "from tests.device.seeded_faults import FAULTS\n\nseed, launch, _ = FAULTS['simplification']\n\n\n"
        f"def test_launch():  # looks at no value\n    {'seed()' if seeded else 'pass'}\n    launch()\n"
    )
    variables = {"PYTHONPATH": on_path(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = run(tmp_path, text, "--triton-checks=values", **variables)
    assert done.returncode == seeded, done.stdout
    launches, checks, worst, _ = row(done.stdout, "doubled", str(ROOT / "tests/device/seeded_faults.py"))
    assert (launches, checks) == ("1", "values")
    if seeded:
        assert "ValuesDiffer: seeded_faults.py" in done.stdout and "'simplification'" in done.stdout
        assert float(worst) > 0.3
    else:
        assert worst == "0"


def test_workers_and_devices_are_added_up(tmp_path: Path) -> None:
    results = tmp_path / "out" / "results.xml"
    options = ["-n2", "--triton-device=cpu,emulate:amd-rdna3", "--triton-checks=bounds", f"--junitxml={results}"]
    done = run(tmp_path, KERNELS + TESTS, *options)
    assert done.returncode == 1 and done.stdout.count("1 failed, 3 passed") == 2, done.stdout
    first, second = done.stdout.split("kernels on emulate:amd-rdna3")
    assert "kernels on cpu" in first
    for part in (first, second):
        assert row(part, "add")[:2] == ["3", "bounds"]
    suites = list(ElementTree.parse(results).iter("testsuite"))
    assert [(suite.get("name"), suite.get("failures")) for suite in suites] == [
        ("cpu", "1"),
        ("emulate:amd-rdna3", "1"),
    ]
    assert [one.get("value") for one in suites[1].iter("property") if one.get("name") == "triton.device"] == [
        "emulate:amd-rdna3"
    ] * 4


def test_the_page_s_example(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    page = (ROOT / "docs" / "testing-kernels.md").read_text()
    kernels, tests, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "kernels.py").write_text(kernels)
    done = run(tmp_path, tests, "--triton-checks=bounds,values")
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert re.search(r"OutOfBounds: .*kernels\.py:8: kernel 'scale': store out of bounds: argument 'out' ", done.stdout)
    assert re.search(r"^kernels\.py:scale +3  bounds, values ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "variables", "message"),
    [
        (["--triton-checks=bounds,vales"], {}, "no check 'vales' of kernels; the checks are bounds, "),
        (["--triton-checks="], {}, "no check of kernels is named"),
        (["--triton-device=,"], {}, "--triton-device names no device"),
        (["--triton-checks=bounds"], {"TRITON_INTERPRET": "1"}, "TRITON_INTERPRET is set"),
        ([], {}, 'test_kernels.py::test_it: write the marker as @pytest.mark.triton(checks="bounds,'),
    ],
)
def test_is_refused(tmp_path: Path, options: list[str], variables: dict[str, str], message: str) -> None:
    text = "import pytest\n\n\n@pytest.mark.triton(cheques='bounds')\ndef test_it():\n    pass\n"
    done = run(tmp_path, text, *options, **variables)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert f"ERROR: {message}" in done.stderr or f"ERROR: there is {message}" in done.stderr, done.stderr


def test_each_check_is_an_option_of_a_launch() -> None:
    """A marker would not check anything otherwise."""
    known = {choice.setting for choice in CHOICES.values()}
    for name, made_of in kernel_tests.CHECKS.items():
        assert made_of and made_of.keys() <= known, name
        for setting, value in made_of.items():
            assert setting.parse(value) != setting.default


def test_all_gpus_that_are_emulated() -> None:
    devices = kernel_tests.devices_of("emulated, cpu, emulate:amd-rdna3")
    assert devices[-1] == "cpu" and len(devices) == len(set(devices))
    assert {f"{EMULATE}{name}" for name in ("amd-rdna3", "intel-xe", "nvidia-hopper", "qualcomm-adreno7")} <= {*devices}
    assert not any("cpu-" in device for device in devices)
