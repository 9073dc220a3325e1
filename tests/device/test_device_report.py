"""``triton-spirv report``: its file, what is left out of it, and the profile that is made of it."""

import getpass
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.capabilities import read_profile
from triton.backends.spirv.inspection import device_report
from triton.backends.spirv.inspection.device_report import kernels, run_profile_of, without_persons
from triton.backends.spirv.runtime import capabilities_of, current


def test_a_report_and_its_profile(tmp_path: Path) -> None:
    """From the command line, and a kernel is compiled for the profile."""
    report, profile = tmp_path / "report.json", tmp_path / "mine.json"
    verb = [sys.executable, "-m", "triton.backends.spirv.cli"]
    subprocess.run([*verb, "report", "-o", report], check=True, capture_output=True, timeout=600)
    known = json.loads(report.read_text())
    assert known["format"] == 1 and known["info"]["used"]["name"] and known["doctor"]
    assert set(known["self_test"].values()) == {"right"}
    ran = [one for one in known["kernels"] if "skipped" not in one]
    assert len(known["kernels"]) > 30 and len(ran) > 25
    assert all(one["right"] and one["error"] <= 1 for one in ran)
    assert sum(one["seconds"] > 0 for one in ran) > 25
    text = report.read_text()
    assert current().device.uuid not in text and str(Path.home()) not in text
    subprocess.run([*verb, "profiles", "--from", report, "-o", profile], check=True, capture_output=True)
    assert read_profile(profile).capabilities == capabilities_of(current().device)
    assert read_profile(report) == replace(read_profile(profile), name="report")
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef one(x):\n    tl.store(x, tl.load(x) + 1)\n"
    )
    compiled = [
        *verb,
        "compile",
        f"{kernel}:one",
        "--signature",
        "*fp32",
        "--target",
        profile,
        "-o",
        tmp_path / "one.spv",
    ]
    subprocess.run(compiled, check=True, capture_output=True)
    assert (tmp_path / "one.spv").stat().st_size


def test_a_kernel_that_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and the kernels behind it run in another process."""
    calls: list[list[str]] = []

    def spoken(command: list[str], environment: dict[str, str], seconds: float) -> tuple[list[str], str]:
        left = command[3:]
        calls.append(left)
        right = [json.dumps({"name": name, "right": True}) for name in left]
        if "add int32" in left:
            at = left.index("add int32")
            return [
                *right[:at],
                json.dumps({"name": "add int32", "begin": True}),
            ], "it ends the process with status -11"
        return right, ""

    monkeypatch.setattr(device_report, "spoken", spoken)
    found = {one["name"]: one for one in kernels(lambda _: None)}
    assert found["add int32"] == {"name": "add int32", "right": False, "error": "it ends the process with status -11"}
    assert len(calls) == 2 and all(one["right"] for name, one in found.items() if name != "add int32")


def test_persons_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    monkeypatch.setattr(device_report.socket, "gethostname", lambda: "desk")
    known: Any = {
        "a": ["/home/somebody/.triton and /home/somebody2", "desk: desktop of somebody"],
        "uuid": "12",
        "n": 3,
    }
    assert without_persons(known) == {"a": ["~/.triton and /home/somebody2", "MACHINE: desktop of USER"], "n": 3}


@pytest.mark.parametrize("text", ["", "{}", '{"info": {"devices": [], "error": "no device"}}'])
def test_what_is_no_report(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    report.write_text(text)
    assert run_profile_of(report, tmp_path / "profile.json") == 1
    assert "is no report of a device that runs kernels" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["report.json"]
