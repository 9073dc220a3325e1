"""The first hour of a new user, in its own environment, with the time of each step.

    python -m tests.vendor.new_user FOLDER [--torch 2.13.0]

Clones this checkout into FOLDER, which must not be there, and does what README.md says: the demo, the wheel in another
environment, the kernel that README.md has, torch before the wheel and the sample for it, a page about that kernel, and
a profile. Prints a line for each step; the exit status is 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python_of_readme() -> list[str]:
    """The programs of README.md: the kernel, and what goes on from it with torch."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[:2]
    return [first, first + second]


class Walk:
    """Steps in ``folder``: each is timed and must end well."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed = 0

    def step(self, what: str, command: Sequence[str | Path], expected: str = "") -> None:
        """Run a command; ``expected`` must be in what it prints."""
        start = time.perf_counter()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL", "PYTHON"))}
        environment["TRITON_CACHE_DIR"] = str(self.folder / "cache")
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder / "checkout" if (self.folder / "checkout").exists() else self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        right = done.returncode == 0 and expected in said and "ERROR" not in said
        self.failed += not right
        print(f"{what:46} {time.perf_counter() - start:7.1f} s  {'ok' if right else 'FAILED'}", flush=True)
        if not right:
            print(said[-3000:], flush=True)


def main() -> int:
    """Status 1 if a step fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch", default="", metavar="VERSION", help="which torch; the newest where it is not given")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True)
    walk = Walk(folder)
    python, own = folder / "own" / "bin" / "python", folder / "own" / "bin"
    kernel = folder / "add.py"
    alone, with_torch = python_of_readme()
    kernel.write_text(alone, encoding="utf-8")
    torch = f"torch=={options.torch}" if options.torch else "torch"
    steps: list[tuple[str, list[str | Path], str]] = [
        ("git clone", ["git", "clone", "--quiet", ROOT, "checkout"], ""),
        ("python3 -m tools demo", [sys.executable, "-m", "tools", "demo"], "try next:"),
        ("a fresh environment", [sys.executable, "-m", "venv", folder / "own"], ""),
        ("pip install . numpy", [python, "-m", "pip", "install", ".", "numpy"], "Successfully installed"),
        ("README's kernel", [python, kernel], "largest error: 0.0"),
        (f"pip install {torch}", [python, "-m", "pip", "install", torch], "Successfully installed"),
        (
            "the wheel again",
            [python, "-m", "pip", "install", "--no-warn-conflicts", ".", "numpy"],
            "Successfully installed",
        ),
        ("README's kernel with torch", [python, kernel], "largest error: 0.0\nlargest error: 0.0"),
        ("triton-spirv inspect add", [own / "triton-spirv", "inspect", "add", "-o", folder / "add.html"], "add.html"),
        ("triton-spirv profile add.py", [own / "triton-spirv", "profile", kernel], "launches"),
    ]
    begin = time.perf_counter()
    for what, command, expected in steps:
        if what.endswith("with torch"):  # the same file goes on
            kernel.write_text(with_torch, encoding="utf-8")
        walk.step(what, command, expected)
    print(f"{'all':46} {time.perf_counter() - begin:7.1f} s")
    return int(walk.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
