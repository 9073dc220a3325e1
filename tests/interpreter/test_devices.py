"""TRITON_INTERPRET=1 with the runtime's arrays and with torch's device, each in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", **variables}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


def test_the_readme_s_program(tmp_path: Path) -> None:
    program = tmp_path / "add.py"
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    program.write_text(blocks[0] + blocks[1])  # its own arrays, then torch's
    done = run(str(program))
    assert done.stdout == "largest error: 0.0\nlargest error: 0.0\n", done.stderr


@pytest.mark.parametrize("what", ["arrays", "tensors", "cuda_tensors"])
def test_takes(what: str) -> None:
    done = run("-m", "tests.interpreter.devices", what)
    assert done.returncode == 0, done.stderr
