"""The table of cases.py, run once in a process of its own, where kernels are interpreted."""

import json
import os
import subprocess
import sys

import pytest

from .cases import NAMES


@pytest.fixture(scope="module")
def results() -> dict[str, str | None]:
    command = [sys.executable, "-m", "tests.interpreter.cases"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_is_what_numpy_computes(name: str, results: dict[str, str | None]) -> None:
    assert results[name] is None
