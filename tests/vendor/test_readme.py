"""README's first sample is examples/readme/first_kernel.py; that and the lines with torch print what they should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from vendor_support import ROOT

FILE = ROOT / "examples/readme/first_kernel.py"


def _blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def _printed(file: Path) -> str:
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sample_is_the_file() -> None:
    code = FILE.read_text().split('"""', 2)[2].lstrip("\n")
    assert _blocks()[0] == code, "README.md must quote examples/readme/first_kernel.py, without its docstring"


def test_the_sample_prints() -> None:
    assert _printed(FILE) == "largest error: 0.0\n"


def test_the_lines_with_torch_go_on_from_the_sample(tmp_path: Path) -> None:
    first, with_torch = _blocks()
    (tmp_path / "add.py").write_text(first + with_torch)
    assert _printed(tmp_path / "add.py") == "largest error: 0.0\n" * 2
