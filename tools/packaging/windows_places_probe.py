"""What `python3 -m tools windows` runs about places: a kernel's source and its compiled file under names with letters
of Japanese, and a compiled file and Triton's cache in a folder whose path has more letters than Windows once allowed
(260).

A line for each that was right; an assertion for the first that was not. A kernel's source is not tried there: Wine 8
ends GetFinalPathNameByHandle(), of which Python's os.path.realpath() is made, with an error for a long path.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from triton.backends.spirv import cli, runtime

if TYPE_CHECKING:
    from .windows_processes_probe import COLUMNS, ROWS, child, error_of, report
else:  # a script of its own, beside that one
    from windows_processes_probe import COLUMNS, ROWS, child, error_of, report

_SECONDS = 300
_SIGNATURE = "*fp32:16, *fp32:16, i32, 1024"
_NAME = "Ordner für Kerne, 日本 "
_LONGEST = 260


def loaded(file: Path) -> float:
    """The largest error of the compiled kernel in a file."""
    kernel = runtime.load(file)
    return error_of(lambda x, out: kernel[(ROWS,)](x, out, COLUMNS))


def main() -> None:
    short = Path.cwd() / _NAME.strip()
    short.mkdir()
    source, compiled = short / "kernel 日本.py", short / "softmax 日本.spv"
    shutil.copy("windows_probe.py", source)
    assert cli.main(["compile", f"{source}:softmax", "-s", _SIGNATURE, "-o", str(compiled)]) == 0
    report("letters of Japanese", loaded(compiled), 1e-6)

    folder = Path.cwd()
    while len(str(folder)) <= _LONGEST:
        folder /= _NAME + "x" * 30
    folder.mkdir(parents=True)
    for file in short.glob("softmax 日本.*"):
        shutil.copy(file, folder)
    report(f"a path of {len(str(folder))} letters", loaded(folder / compiled.name), 1e-6)

    process = child("once", home=str(folder))
    said = process.communicate(timeout=_SECONDS)[0]
    assert "launched: largest error" in said and not process.returncode, said
    kept = [*(folder / ".triton" / "cache").rglob("*.spv")]
    assert kept, f"no kernel is in {[*folder.iterdir()]}"
    print(f"a cache in it: {len(kept)} kernel", flush=True)


if __name__ == "__main__":
    main()
