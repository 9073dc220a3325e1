"""What is run in Windows' Python: `python windows_checks.py [--torch] [--vulkan DEVICE]`.

`python3 -m tools windows` runs it under Wine; on Windows it needs the plugin's wheel, and nothing else of this
repository than the files beside it. All of it happens in a new folder with spaces and letters outside of ASCII, which
is the user's home folder, too: Triton's cache lies there. Ends with status 1 behind the first that fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 900
_KERNEL = "windows_probe.py:softmax"
_SIGNATURE = "*fp32:16, *fp32:16, i32, 1024"
#: The kinds of device: the processor itself, and a Vulkan device.
CPU, VULKAN = "cpu", "vulkan"


@dataclass(frozen=True)
class Check:
    """``arguments`` of Python, on a device of a kind, or with ``device`` for TRITON_SPIRV_DEVICE; the text that has to
    be printed, and the exit status."""

    arguments: tuple[str, ...]
    prints: str
    on: str = VULKAN
    device: str = ""
    status: int = 0


def _verb(name: str, *arguments: str, prints: str, on: str = VULKAN, device: str = "", status: int = 0) -> Check:
    return Check(("-m", "triton_spirv.cli", name, *arguments), prints, on, device, status)


#: In this order: a check may need files of those before it.
CHECKS = (
    Check(("windows_cpu_probe.py",), "a time limit: endless loops ended", CPU),
    _verb("info", prints="used: device", on=CPU),
    _verb("doctor", prints="a tiny kernel ran on", on=CPU),
    _verb("compile", _KERNEL, "-s", _SIGNATURE, "-t", "cpu-x86-64-v3", "-o", "softmax.o", prints="softmax.o", on=CPU),
    Check(("windows_drivers_probe.py",), "answered in a process of their own"),
    Check(("windows_probe.py",), "four threads: largest error"),
    _verb("info", prints="used: device"),
    _verb(
        "info",
        prints="emulated devices do not run on Windows: use Linux, or WSL 2",
        device="emulate:amd-rdna3",
        status=1,
    ),
    _verb("doctor", prints="a tiny kernel ran on"),
    _verb("profiles", prints="amd-rdna3"),
    _verb("include", prints="include"),
    _verb("compile", _KERNEL, "-s", _SIGNATURE, "-o", "softmax.spv", prints="softmax.spv"),
    _verb(
        *("compile", _KERNEL, "-s", _SIGNATURE, "-t", "device", "-t", "cpu-x86-64-v3", "--bundle", "kernels.tsb"),
        prints="kernels.tsb: softmax for",
    ),
    _verb("stubs", "kernels.tsb", prints="kernels.hpp"),
    _verb("kernels", "softmax", prints="windows_probe.py:"),
    _verb("disassemble", "softmax.spv", prints="OpEntryPoint"),
    _verb("disassemble", "softmax.spv", "--stage", "machine", prints="vmovups", on=CPU),
    _verb("inspect", _KERNEL, "-s", _SIGNATURE, "-o", "softmax.html", prints="softmax.html"),
    _verb("profile", "windows_probe.py", prints="the device was busy for"),
    _verb("bisect", "windows_probe.py", prints="no value differs", on=CPU),
    # Stock Triton's interpreter takes torch's tensors alone.
    _verb("verdict", "windows_probe.py", prints="no race was found, and no optional pass", status=3, on=CPU),
    _verb("opt", "--list", prints="canonicalizer: "),
    _verb("tuned", "nothing.tuned", prints="there is no file nothing.tuned", status=1),
    _verb("warm", "--record", "kernels.txt", "--", sys.executable, "windows_probe.py", prints="3 kernels recorded"),
    _verb("warm", "kernels.txt", prints="3 kernels: 0 compiled, 3 already there"),
    _verb("report", "-o", "report.json", prints="all that ran are right", on=CPU),
    Check(("windows_processes_probe.py",), "a process after one that was killed"),
    Check(("windows_places_probe.py",), "a cache in it"),
)
TORCH = tuple(Check(("windows_torch_probe.py",), "torch.compile for the CPU", kind) for kind in (CPU, VULKAN))


def failure(check: Check, folder: Path, vulkan: str) -> str:
    """What went wrong with a check in the folder; "" if nothing did. What it printed is printed."""
    names = ("TRITON_", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith(names)}
    environment |= {"USERPROFILE": str(folder), "HOME": str(folder), "TRITON_SPIRV_QUIET": "1"}
    device = check.device or (CPU if check.on == CPU else vulkan)
    if device:
        environment["TRITON_SPIRV_DEVICE"] = device
    try:
        done = subprocess.run(
            [sys.executable, *check.arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"did not end within {_SECONDS} seconds; it printed {error.output!r}"
    if done.returncode != check.status or check.prints not in done.stdout:
        return f"ended with status {done.returncode}, and not with {check.status} and {check.prints!r}:\n{done.stdout}"
    lines = done.stdout.splitlines()
    shown = lines if check.arguments[0] != "-m" else [line for line in lines if check.prints in line][:1]
    print("\n".join(f"    {line}" for line in shown), flush=True)
    return ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The plugin on Windows.")
    parser.add_argument("--torch", action="store_true", help="torch's device `spirv`, too: torch is installed")
    parser.add_argument("--vulkan", default="", metavar="DEVICE", help="TRITON_SPIRV_DEVICE (default: none)")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="Prüfung von triton ", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        for probe in Path(__file__).parent.glob("windows_*probe.py"):
            shutil.copy(probe, folder)
        for check in CHECKS + (TORCH if options.torch else ()):
            start, name = time.perf_counter(), " ".join(check.arguments).removeprefix("-m triton_spirv.cli ")
            print(f"{check.device or check.on}: {name}", flush=True)
            if wrong := failure(check, folder, options.vulkan):
                print(f"FAILED: {name} {wrong}", flush=True)
                return 1
            print(f"    {time.perf_counter() - start:.0f} s", flush=True)
    print(f"all {len(CHECKS) + len(TORCH) * options.torch} were right", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
