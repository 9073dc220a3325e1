"""``triton-spirv`` in the tests' own process, which has imported Triton; as a program it is started by
tests/unit/ahead_of_time/test_command.py and test_ahead_of_time.py."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

from triton.backends.spirv import cli


def triton_spirv(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """How the command ended, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main([str(word) for word in words])
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())
