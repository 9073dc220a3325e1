"""README's sample is examples/readme/first_kernel.py, which prints what it should."""

from __future__ import annotations

import re
import subprocess
import sys

from vendor_support import ROOT

FILE = ROOT / "examples/readme/first_kernel.py"


def test_the_sample_is_the_file() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    code = FILE.read_text().split('"""', 2)[2].lstrip("\n")
    assert code in blocks, "README.md must quote examples/readme/first_kernel.py, without its docstring"


def test_the_sample_prints() -> None:
    done = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "largest error: 0.0\n"
