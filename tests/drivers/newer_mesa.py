"""Runs Python under the Mesa of a newer Debian, without installing it.

    apt-get download …; dpkg -x each .deb FOLDER
    python -m tests.drivers.newer_mesa FOLDER -m pytest -n0 tests/device/test_dot_fragments.py

FOLDER holds ``usr/lib/x86_64-linux-gnu`` with libvulkan_lvp.so, libvulkan.so.1, all that they need, and the C library
that they were built against, whose loader starts the interpreter.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from triton.backends.spirv.inspection.offline import newer_interpreter, newer_manifest

_LIBRARY = "libvulkan_lvp.so"


def command(folder: Path, arguments: list[str]) -> list[str]:
    """The command that runs this interpreter with ``arguments`` on the libraries of ``folder``. Raises NoMesa."""
    return [*newer_interpreter(folder, _LIBRARY), *arguments]


def environment(folder: Path, where: Path) -> dict[str, str]:
    """What the process needs in its environment. Writes the manifest that names the driver to ``where``. Modules are
    not validated: a validation layer that is older than the driver refuses its extensions."""
    manifest = newer_manifest(folder, _LIBRARY, where)
    return {**os.environ, "VK_DRIVER_FILES": str(manifest), "TRITON_SPIRV_VALIDATE": "0"}


def main() -> None:
    """The command line: see above."""
    folder = Path(sys.argv[1]).resolve()
    made = command(folder, sys.argv[2:])
    os.execve(made[0], made, environment(folder, Path(tempfile.mkdtemp())))


if __name__ == "__main__":
    main()
