"""Upstream's profiler, Proton, with this backend: times of the device in its tree and its trace."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import triton
import triton.language as tl

proton = pytest.importorskip("triton.profiler", reason="this triton has no Proton")
if not hasattr(proton, "driver_sessions"):
    pytest.skip("this triton lacks the patch 'proton-driver-events'", allow_module_level=True)

from triton.profiler.hooks import launch_times  # noqa: E402

SIZE = 1000


def stated(grid: Any, metadata: Any, args: dict[str, Any]) -> dict[str, Any]:
    """What the launch of scale() does."""
    return {"name": f"scale_{args['n']}", "bytes": 8 * args["n"], "flops32": args["n"]}


@triton.jit(launch_metadata=stated)
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def count(x):
    tl.atomic_add(x, 1)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Proton writes its settings into the environment."""
    with mock.patch.dict(os.environ):
        yield


def launch() -> None:
    """Three scales and one count in a scope, and one count outside of it."""
    x, total = torch.ones(SIZE), torch.zeros(1, dtype=torch.int32)
    with proton.scope("outer", {"items": torch.tensor(3.5)}):
        for _ in range(3):
            scale[(16,)](x, torch.empty(SIZE), SIZE, BLOCK=64)
        with proton.scope("inner"):
            count[(7,)](total)
    count[(5,)](total)
    assert total.item() == 12


def flat(nodes: list[dict[str, Any]], above: str = "") -> dict[str, dict[str, Any]]:
    """Path → metrics of each frame of a tree."""
    found = {}
    for node in nodes:
        path = f"{above}/{node['frame']['name']}" if above else node["frame"]["name"]
        found[path] = node["metrics"]
        found |= flat(node["children"], path)
    return found


def tree(path: Path) -> dict[str, dict[str, Any]]:
    """The frames of a file of Proton's, which ends with what is known of devices: nothing."""
    root, devices = json.loads(path.read_text())
    assert devices == {}
    return flat([root])


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    launch()  # compiles
    yield str(tmp_path / "session")
    proton.finalize()


@pytest.mark.parametrize("context", ["shadow", "python"])
def test_a_tree(name: str, context: str) -> None:
    session = proton.start(name, context=context)
    launch()
    proton.finalize(session)
    found = tree(Path(f"{name}.hatchet"))
    assert found["ROOT"] == {"time (ns)": 0, "count": 0}  # proton-viewer adds them up
    if context == "python":  # the frames of Python instead of the scopes
        ((path, values),) = [item for item in found.items() if item[0].endswith("@scale")]
        assert "test_proton.py" in path and "@launch/" in path and values["count"] == 3 and values["time (ns)"] > 0
        return
    assert {path: values.get("count") for path, values in found.items()} == {
        "ROOT": 0,
        "ROOT/outer": None,
        "ROOT/outer/scale": 3,
        "ROOT/outer/inner": None,
        "ROOT/outer/inner/count": 1,
        "ROOT/count": 1,
    }
    assert all(values["time (ns)"] > 0 for values in found.values() if values.get("count"))
    assert found["ROOT/outer"] == {"items": 3.5}


def test_launch_metadata_names_launches_and_states_their_work(name: str) -> None:
    session = proton.start(name, hook="triton")
    launch()
    proton.finalize(session)
    found = tree(Path(f"{name}.hatchet"))
    scales = found[f"ROOT/outer/scale_{SIZE}"]
    assert scales.pop("time (ns)") > 0
    assert scales == {"count": 3, "bytes": 3 * 8 * SIZE, "flops32": 3 * SIZE}
    assert found["ROOT"] == {"time (ns)": 0, "count": 0, "bytes": 0, "flops32": 0}


def test_a_trace_has_the_devices_own_times(name: str) -> None:
    session = proton.start(name, data="trace")
    launch()
    proton.finalize(session)
    events = json.loads(Path(f"{name}.chrome_trace").read_text())["traceEvents"]
    assert {"outer", "inner"} <= {event["name"].partition(":")[0] for event in events}
    kernels = [event for event in events if event["cat"] == "kernel"]
    assert [event["name"] for event in kernels] == ["scale"] * 3 + ["count"] * 2
    for earlier, later in zip(kernels, kernels[1:], strict=False):
        assert earlier["dur"] > 0 and later["ts"] >= earlier["ts"] + earlier["dur"] - 1.0, "launches run in order"
    assert kernels[0]["ts"] > -1e4, "the scope and its kernels are on one clock"


def test_traces_stay_on_the_hosts_clock_as_it_moves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns
    monkeypatch.setattr(launch_times, "_launches", launch_times._Launches())  # as in a new process
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() - 3_600_000_000_000)  # an hour behind, before it was set
        session = proton.start(f"{name}.before", data="trace")
        launch()
        proton.finalize(session)
    session = proton.start(name, data="trace")
    launch()
    proton.finalize(session)
    events = json.loads(Path(f"{name}.chrome_trace").read_text())["traceEvents"]
    assert min(event["ts"] for event in events if event["cat"] == "kernel") > -1e6, "an old clock was used"


def test_several_sessions_and_pauses(name: str) -> None:
    first, second = proton.start(f"{name}1"), proton.start(f"{name}2")
    launch()
    proton.deactivate(first)
    launch()
    proton.activate(first)
    proton.finalize(second)
    launch()
    proton.finalize()
    assert tree(Path(f"{name}1.hatchet"))["ROOT/outer/scale"]["count"] == 6
    assert tree(Path(f"{name}2.hatchet"))["ROOT/outer/scale"]["count"] == 6
    launch()  # measured by none


def test_more_launches_than_wait_for_their_times(name: str) -> None:
    total = torch.zeros(1, dtype=torch.int32)
    session = proton.start(name)
    for _ in range(1500):
        count[(1,)](total)
    proton.finalize(session)
    assert tree(Path(f"{name}.hatchet"))["ROOT/count"]["count"] == 1500 == total.item()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "pcsampling"}, "no mode 'pcsampling' for the backend 'spirv': leave out mode="),
        ({"backend": "cupti"}, "'cupti' does not measure the devices of the backend 'spirv': leave out backend="),
        ({"backend": "instrumentation"}, "'instrumentation' does not measure the devices"),
        ({"hook": "none"}, "Unsupported hook"),
    ],
)
def test_what_it_cannot_do(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        proton.start(name, **options)


SCRIPT = """
import torch, triton, triton.language as tl

@triton.jit
def count(x):
    tl.atomic_add(x, 1)

total = torch.zeros(1, dtype=torch.int32)
for _ in range(3):
    count[(7,)](total)
print(total.item())
"""


def test_the_command_and_the_viewer(tmp_path: Path) -> None:
    """`proton script.py`, then `proton-viewer`."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "triton.profiler.proton", "-n", str(tmp_path / "run"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "21\n"), done.stderr
    assert tree(tmp_path / "run.hatchet")["ROOT/count"]["count"] == 3
    pytest.importorskip("hatchet", reason="proton-viewer needs llnl-hatchet")
    viewer = [sys.executable, "-m", "triton.profiler.viewer", "-m", "time/ms,count", str(tmp_path / "run.hatchet")]
    done = subprocess.run(viewer, capture_output=True, text=True, check=True)
    root, kernel = (line.split() for line in done.stdout.splitlines()[:2])
    assert root[1:] == ["3.000", "ROOT"] and kernel[2:] == ["3.000", "count"], done.stdout
