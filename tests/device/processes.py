"""Programs of the tests that may hang: each has a time limit, and takes its own children along when it ends."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

#: Kernels written by hand, as tests/device/runtime has them, in their own process: ``load()`` gives a callable
#: (grid, *arguments), ``last(launch, seconds)`` a grid with which a launch takes about that long.
_PRELUDE = """
import faulthandler, os, sys
faulthandler.dump_traceback_later({seconds}, exit=True)
import time, numpy
from pathlib import Path
from triton.backends.spirv.runtime import array, buffer as buffers
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.launches.launch import make_launcher
from triton.backends.spirv.runtime.kernel import Kernel
module = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else b""
ADD = [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")]
def load(entries=ADD):
    kernel = Kernel(current(), "test", module)
    launch = make_launcher(current(), "test", entries, indirect=False)
    return lambda grid, *args: launch(*grid, 0, kernel.handle, None, None, None, None, *args)
def last(launch, seconds):
    launch((1, 1, 1))  # a driver may compile at the first launch
    current().native.synchronize()
    def timed():
        start = time.perf_counter()
        launch((min(count, 65535), -(-count // 65535), 1))
        current().native.synchronize()
        return time.perf_counter() - start
    count = 2
    while (spent := min(timed() for _ in range(3))) < 0.05:  # the processors may be busy with something else
        count *= 2
    count = int(count * seconds / spent)
    return (min(count, 65535), min(-(-count // 65535), 65535), 1)
"""
#: How long a process may take to end once it was killed: a driver may have to wait for its kernel.
_SECONDS_TO_END = 60


def on_path(folder: Path) -> str:
    """PYTHONPATH with a folder before what it names already: packages may be there."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def run(
    command: Sequence[str], seconds: float = 120, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program in its own session. After ``seconds`` it, and what it started, is killed and the test fails
    with what was printed, the stacks of a Python that told faulthandler so, and what each thread waits for in the
    system; what it started is killed after it ended, too."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=cwd,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        waits = ""
        try:
            ended = _ends(process.pid, seconds)
            if not ended:
                waits = _waits(process.pid)
                os.kill(process.pid, signal.SIGABRT)
                _ends(process.pid, 5)
        finally:
            # Not reaped yet, so that the number is still that of its group.
            os.killpg(process.pid, signal.SIGKILL)
        told = []
        for file in (out, err):
            file.seek(0)
            told.append(file.read())
        if not ended:
            gone = "" if _ends(process.pid, _SECONDS_TO_END) else f" and is still there {_SECONDS_TO_END} s later"
            told = [f"did not end within {seconds} s{gone}: {' '.join(command)[-2000:]}", *told, waits]
            pytest.fail("\n".join(told))
        return subprocess.CompletedProcess(command, process.wait(), *told)


def _waits(pid: int) -> str:
    """Each thread of a process: its name, and the functions of the system that it is in, where those can be read."""
    lines = []
    for thread in sorted(Path(f"/proc/{pid}/task").glob("*")):
        with contextlib.suppress(OSError):
            inside = re.findall(r"] (\w+)", (thread / "stack").read_text(encoding="utf-8"))
            lines.append(f"{(thread / 'comm').read_text(encoding='utf-8').strip()}: {' < '.join(inside)}")
    return "\n".join(lines)


def _ends(pid: int, seconds: float) -> bool:
    """Whether a child of this process, which is not reaped, ends within the time."""
    end = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def run_script(
    script: str, module: Path | None = None, seconds: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python statements after the prelude, with the kernel's file as their argument. If they take longer than
    ``seconds``, the stacks of all threads are printed and the test fails."""
    prelude = _PRELUDE.replace("{seconds}", str(seconds))
    return run(
        [sys.executable, "-c", prelude + script, *([str(module)] if module else [])], seconds + 10, **environment
    )
