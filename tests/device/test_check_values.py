"""TRITON_SPIRV_CHECK_VALUES: launches that are compared with the reference's, and what changes a value is named."""

import contextlib
import json
import logging
import os
import pickle
import subprocess
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv import cli, runtime
from triton.backends.spirv.launching.values import values_launcher as launcher
from triton.backends.spirv.launching.values.host_copies import Storage
from triton.backends.spirv.reference import item_of
from triton.backends.spirv.runtime import ValuesDiffer
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.native_module import native
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.device.forks import run_python
from tests.device.processes import on_path
from tests.device.seeded_faults import FAULTS

ROOT = Path(__file__).parents[2]
#: Faults that act on code of a GPU alone.
DEVICES = {"axis": "emulate:intel-xe"}


def _process(fault: str, folder: Path, *arguments: str) -> str:
    """What a process with a fault in its compiler prints."""
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": str(folder),
        "TRITON_SPIRV_BACKEND": "1",
        "TRITON_SPIRV_CHECK_VALUES": "1",
        "TRITON_SPIRV_DEVICE": DEVICES.get(fault, "cpu"),
    }
    done = run_python(["-m", "tests.device.seeded_faults", fault, *arguments], environment, ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    _, _, item = FAULTS[fault]
    said = json.loads(_process(fault, tmp_path))
    assert said["items"] == [item]
    assert said["message"].startswith(f"seeded_faults.py:{said['line']}: kernel '{said['kernel']}': out[")
    assert f"without it alone the optimised kernel is right: launch it with without=('{item}',)" in said["message"]
    if fault != "upstream":
        reads = item_of(item).reads
        assert (f"it goes by analysis/{reads}, whose claims" in said["message"]) == bool(reads)


def test_without_a_fault_no_value_differs(tmp_path: Path) -> None:
    assert _process("alike", tmp_path, "--right") == ""


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def in_place(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def tickets(counter, out):
    tl.store(out + tl.program_id(0), tl.atomic_add(counter, 1))


@triton.jit
def summed(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + tl.program_id(0) * BLOCK + i)))


@triton.jit
def copied(source, target, BLOCK: tl.constexpr):
    target.store([0, 0], source.load([0, 0]))


@triton.jit
def left_over(x, y, sums, out, BLOCK: tl.constexpr, PLACED: tl.constexpr = False):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    to = at + (tl.load(x + at) * 1e-9).to(tl.int32) if PLACED else at
    tl.store(out + to, tl.dot(tl.load(x + at), tl.load(y + at), input_precision="ieee") + tl.load(sums + at))


@pytest.fixture
def compared() -> Any:
    """A function that says how many launches were compared since the last call."""
    last = launcher.compared_here

    def since() -> int:
        nonlocal last
        before, last = last, launcher.compared_here
        return last - before

    return since


def test_what_a_launch_wrote_stays(compared: Any) -> None:
    x = torch.arange(100, dtype=torch.int32)
    for launch in range(3):
        in_place[(1,)](x, 90, BLOCK=128, check_values=True)
        assert compared() == 1
        expected = np.arange(100) + (np.arange(100) < 90) * (launch + 1)
        np.testing.assert_array_equal(x.numpy(), expected)
    in_place[(1,)](x, 90, BLOCK=128, check_values=False)
    assert compared() == 0


def test_what_cancels_is_as_uncertain_as_the_reference(compared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(2, 32, 32, generator=torch.Generator().manual_seed(0))
    out = torch.zeros(32, 32)
    left_over[(1,)](x, y, -(x @ y), out, BLOCK=32, check_values=True)
    assert compared() == 1 and 0 < out.abs().max() < 1e-4
    with pytest.raises(ValuesDiffer, match="left_over"):  # floats moved might be places outside
        left_over[(1,)](x, y, -(x @ y), out, BLOCK=32, PLACED=True, check_values=True)
    monkeypatch.setattr(launcher, "_NUDGED", 99)
    with pytest.raises(ValuesDiffer, match="left_over"):
        left_over[(1,)](x, y, -(x @ y), out, BLOCK=32, check_values=True)
    x, y = x.round(), y.round()  # of whole numbers nothing is left, however they are summed
    left_over[(1,)](x, y, -(x @ y), out, BLOCK=32, check_values=True)
    assert compared() == 3 and not out.any()


@triton.jit
def residuals(x, y, sums, out, K, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, N), tl.arange(0, BLOCK)
    acc = -tl.load(sums + m[:, None] * N + n)
    for start in range(0, K, BLOCK):
        a, b = tl.load(x + m[:, None] * K + start + k), tl.load(y + (start + k[:, None]) * N + n)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out + m[:, None] * N + n, acc)


def test_what_cancels_in_long_sums(compared: Any) -> None:
    x, y = torch.randn(2, 64, 1024, generator=torch.Generator().manual_seed(1))
    y, out = y.T.contiguous(), torch.zeros(64, 64)
    residuals[(2,)](x, y, x @ y, out, 1024, N=64, BLOCK=32, check_values=True)
    assert compared() == 1 and 0 < out.abs().max() < 1e-3


@triton.jit
def softmax_backward(p, grad, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    y = tl.load(p + at, tl.arange(0, BLOCK) < n, other=0.0)
    dy = tl.load(grad + at, tl.arange(0, BLOCK) < n, other=0.0)
    tl.store(out + at, y * (dy - tl.sum(y * dy, 0)), tl.arange(0, BLOCK) < n)


def test_what_cancels_in_many_elements_of_few_values(compared: Any) -> None:
    p = torch.randn(256, 515, generator=torch.Generator().manual_seed(0)).softmax(1)
    grad, out = torch.full((256, 515), 1.37), torch.zeros(256, 515)
    softmax_backward[(256,)](p, grad, out, 515, BLOCK=1024, check_values=True)
    assert compared() == 1 and 0 < out.abs().max() < 1e-6


@triton.jit
def product(x, y, out, BLOCK: tl.constexpr, AGAIN: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    dot = tl.dot(tl.load(x + at), tl.load(y + at), input_precision="tf32")  # of fp32 alone
    tl.store(out + at, dot.to(out.dtype.element_ty))
    if AGAIN:
        tl.debug_barrier()
        tl.store(out + at, tl.load(out + at) * 2)


@pytest.mark.parametrize(
    ("of", "to", "again", "named", "hidden"),
    [
        (torch.bfloat16, torch.bfloat16, False, -6, -8),  # rounded as it is stored
        (torch.bfloat16, torch.bfloat16, True, -3, -5),  # what was rounded is read again
        (torch.bfloat16, torch.float32, False, -11, -15),  # arguments are coarser than what is computed
        (torch.int8, torch.float32, False, -11, -15),  # no dot of tf32
    ],
)
def test_which_relative_errors_are_named(
    of: torch.dtype, to: torch.dtype, again: bool, named: int, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (torch.randn(2, 32, 32, generator=torch.Generator().manual_seed(0)) * 20).to(of)
    error, right = 0.0, launcher._Run.after

    def after(self: Any, launch: Any, function: Any, memory: Any = None) -> list[Any]:
        found = right(self, launch, function, memory)
        if function is self.args[launcher.LaunchArgument.FUNCTION]:
            out = torch.from_numpy(found[-1]).view(to)
            out.copy_(out.double() * (1 + error))
        return found

    monkeypatch.setattr(launcher._Run, "after", after)
    for power in (None, hidden, named):
        error = 0.0 if power is None else 2.0**power
        expected = pytest.raises(ValuesDiffer) if power == named else contextlib.nullcontext()
        with expected:
            product[(1,)](x, y, torch.zeros(32, 32, dtype=to), BLOCK=32, AGAIN=again, check_values=True)


def test_arrays_of_the_runtime(compared: Any) -> None:
    x, y = (np.random.default_rng(1).random(100, np.float32) for _ in range(2))
    device, out = runtime.from_numpy(y), runtime.empty(120, "float32").fill(7)
    add[(1,)](runtime.array(x), device, out, 100, BLOCK=128, check_values=True)
    assert compared() == 1
    np.testing.assert_array_equal(out.to_numpy(), np.concatenate([x + y, np.full(20, 7, np.float32)]))


def test_a_tensor_of_another_type(compared: Any) -> None:
    x, out = torch.rand(100), torch.zeros(100, dtype=torch.int32)
    wrapped = triton.reinterpret(out, tl.float32)
    add[(1,)](x, x, wrapped, 100, BLOCK=128, check_values=True)
    assert compared() == 1 and torch.equal(out.view(torch.float32), 2 * x)
    # The way of CUDA tensors, whose memory torch alone reaches.
    storage = Storage(out.data_ptr(), 400, "cuda", wrapped)
    np.testing.assert_array_equal(storage.read(current()).view(np.float32), (2 * x).numpy())
    storage.write(current(), np.zeros(400, np.uint8))
    assert not out.any()


def test_tensor_descriptors(compared: Any) -> None:
    source, target = torch.randn(16, 32), torch.zeros(16, 32)
    descriptors = [TensorDescriptor.from_tensor(one, [16, 32]) for one in (source, target)]
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.store_binary_only = True  # as libraries set it while they tune
        copied[(1,)](*descriptors, BLOCK=16, check_values=True)
    assert compared() == 1 and torch.equal(source, target)


def test_what_is_not_compared_is_said(
    compared: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launcher._told.clear()
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))
    tickets.device_caches.clear()
    with caplog.at_level(logging.WARNING, logger=launcher.__name__):
        counter, out = torch.zeros(1, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
        for _ in range(2):
            tickets[(8,)](counter, out, check_values=True)
    assert compared() == 0 and counter.item() == 16
    assert [record.message for record in caplog.records] == [
        "kernel 'tickets': its values are not compared: it uses what atomic operations return, which depends on the "
        "order of programs"
    ]
    assert len([*tmp_path.glob("*/kernel.o")]) <= 1, "the reference has machine code, too"


def test_a_reference_that_faults_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(launcher._Run, "of_variant", Mock(side_effect=native().KernelFault("needs more stack")))
    x = torch.zeros(100, dtype=torch.int32)
    in_place[(1,)](x, 90, BLOCK=128, check_values=True)
    assert "not compared: the reference faults (KernelFault: needs more stack)" in caplog.text and x.sum() == 90


@pytest.mark.parametrize("overflow", [True, False])
def test_a_reference_that_needs_more_stack_has_it(
    compared: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, overflow: bool
) -> None:
    """Another fault would only come again."""
    after = launcher._Run.after

    def shallow(run: Any, launch: Any, *rest: Any) -> Any:
        if getattr(launch, "__name__", "") == "unhooked" and threading.current_thread() is threading.main_thread():
            error = native().KernelFault("faults")
            error.overflow = overflow
            raise error
        return after(run, launch, *rest)

    monkeypatch.setattr(launcher._Run, "after", shallow)
    x = torch.zeros(100, dtype=torch.int32)
    in_place[(1,)](x, 90, BLOCK=128, check_values=True)
    assert compared() == 1 and ("not compared" not in caplog.text) == overflow and x.sum() == 90


def test_atomic_sums_of_floats(compared: Any) -> None:
    out = torch.zeros(1)
    summed[(64,)](torch.rand(64 * 64), out, BLOCK=64, check_values=True)
    assert compared() == 1


def test_an_error_can_be_sent_to_another_process() -> None:
    facts = dict(kernel="k", argument="x", index=3, usual=1.0, reference=2.0, file="f.py", line=4, items=("a",))
    error = pickle.loads(pickle.dumps(ValuesDiffer("message", **facts, report={})))  # type: ignore[arg-type]
    assert (str(error), error.index, error.items) == ("message", 3, ("a",))


# -- triton-spirv bisect ---------------------------------------------------------------------------------------------
SCRIPT = """
import sys
import torch
from tests.device import seeded_faults as faults
seed, launch, _ = faults.FAULTS[sys.argv[1]]
if "--right" not in sys.argv:
    seed()
try:
    launch()
except RuntimeError:
    pass  # a program may catch what it likes
"""


def _bisect(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": on_path(ROOT)}
    command = ["-m", "triton.backends.spirv.cli", "bisect", *arguments]
    index = next((at for at, one in enumerate(command) if one in FAULTS), len(command))
    command.insert(index, str(script))
    environment["TRITON_SPIRV_DEVICE"] = "cpu"
    return run_python(command, environment, folder)


def test_a_script_with_a_wrong_value(tmp_path: Path) -> None:
    done = _bisect(tmp_path, "--data", "simplification")
    assert done.returncode == 2, done.stderr
    assert "the code generator's 'simplification' (number" in done.stderr
    assert done.stderr.endswith("triton-spirv bisect: doubled.values.json is for a report\n")
    told = json.loads((tmp_path / "doubled.values.json").read_text())
    assert told["items"] == ["simplification"] and told["kernel"] == "doubled" and told["grid"] == [1, 1, 1]
    assert "tt.func public @doubled" in told["ttir"] and told["versions"]["triton"]
    assert [(one["name"], one["type"]) for one in told["arguments"]] == [("x", "*i32"), ("out", "*i32")]
    assert told["arguments"][0]["shape"] == [64] and len(told["data"]) == 2


def test_a_script_without_one(tmp_path: Path) -> None:
    done = _bisect(tmp_path, "simplification", "--right")
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("triton-spirv bisect: launches that were compared: 1; no value differs\n")


def test_a_script_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["bisect", str(tmp_path / "none.py")]) == 1
    assert "triton-spirv bisect: error: there is no file" in capsys.readouterr().err
