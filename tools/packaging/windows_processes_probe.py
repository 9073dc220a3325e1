"""What `python3 -m tools windows` runs behind windows_probe.py: a file and a bundle that were compiled ahead of time,
processes that compile at once into one empty cache, and one that is killed while its kernels run.

A line for each that was right; an assertion for the first that was not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from triton.backends.spirv import runtime

if TYPE_CHECKING:
    from .windows_probe import COLUMNS, ROWS, report, softmax
else:  # a script of its own, beside that one
    from windows_probe import COLUMNS, ROWS, report, softmax

_SECONDS = 300


def given() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows, and the softmax of each in float64."""
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    expected = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return x, expected / expected.sum(1, keepdims=True)


def error_of(launch: Callable[[Any, Any], object]) -> float:
    """The largest error of ``launch(x, out)``."""
    x, expected = given()
    out = runtime.empty((ROWS, COLUMNS), "float32")
    launch(runtime.from_numpy(x), out)
    return float(np.abs(out.to_numpy() - expected).max())


def launched() -> float:
    """The error of the kernel as Triton compiles it."""
    return error_of(lambda x, out: softmax[(ROWS,)](x, out, COLUMNS, BLOCK=1024))


def child(*arguments: str, home: str) -> subprocess.Popen[str]:
    """This program in a process of its own, with a home folder in the working folder, where its cache is."""
    home = os.path.abspath(home)
    environment = {**os.environ, "USERPROFILE": home, "HOME": home}
    command = [sys.executable, os.path.abspath(__file__), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def main(arguments: list[str]) -> None:
    """``once`` launches; ``forever`` does not end; without either, all of it with files of the working folder."""
    if arguments == ["once"]:
        return report("launched", launched(), 1e-6)
    while arguments == ["forever"]:
        report("launched", launched(), 1e-6)
    kernel = runtime.load("softmax.spv")
    report("ahead of time", error_of(lambda x, out: kernel[(ROWS,)](x, out, COLUMNS)), 1e-6)

    kernel = runtime.load_bundle("kernels.tsb")["softmax"]
    report("of a bundle", error_of(lambda x, out: kernel[(ROWS,)](x, out, COLUMNS)), 1e-6)

    both = [child("once", home="home of both") for _ in range(2)]
    said = [process.communicate(timeout=_SECONDS)[0] for process in both]
    assert all("launched: largest error" in text for text in said) and not any(one.returncode for one in both), said
    print("two processes: both were right", flush=True)

    endless = child("forever", home="home of one")
    assert endless.stdout is not None and "launched" in endless.stdout.readline()
    endless.kill()
    endless.wait(_SECONDS)
    assert endless.returncode
    again = child("once", home="home of one")
    assert "launched: largest error" in again.communicate(timeout=_SECONDS)[0] and not again.returncode
    print("a process after one that was killed: it was right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
