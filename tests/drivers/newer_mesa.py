"""Runs Python under the Mesa of a newer Debian, without installing it.

    apt-get download …; dpkg -x each .deb FOLDER
    python -m tests.drivers.newer_mesa FOLDER -m pytest -n0 tests/device/test_dot_fragments.py

FOLDER holds ``usr/lib/x86_64-linux-gnu`` with libvulkan_lvp.so, libvulkan.so.1, all that they need, and the C library
that they were built against, whose loader starts the interpreter.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import tempfile
from pathlib import Path

#: The environment variable of the tests that names such a folder.
VARIABLE = "NEWER_MESA"


def command(folder: Path, arguments: list[str]) -> list[str]:
    """The command that runs this interpreter with ``arguments`` on the libraries of ``folder``. Raises OSError."""
    libraries = folder / "usr" / "lib" / sysconfig.get_config_var("MULTIARCH")
    loader = libraries / "ld-linux-x86-64.so.2"
    for file in (loader, libraries / "libvulkan_lvp.so", libraries / "libvulkan.so.1"):
        if not file.exists():
            raise FileNotFoundError(f"{file} is not there: {folder} does not hold the Mesa of a newer Debian")
    interpreter = Path(sys.executable).resolve()
    return [*(str(loader), "--argv0", sys.executable, "--library-path", str(libraries), str(interpreter)), *arguments]


def environment(folder: Path, manifest: Path) -> dict[str, str]:
    """What the process needs in its environment. Writes the ``manifest`` that names the driver. Modules are not
    validated: a validation layer that is older than the driver refuses its extensions."""
    libraries = folder / "usr" / "lib" / sysconfig.get_config_var("MULTIARCH")
    driver = {"api_version": "1.4.0", "library_path": str(libraries / "libvulkan_lvp.so")}
    manifest.write_text(json.dumps({"file_format_version": "1.0.1", "ICD": driver}))
    return {**os.environ, "VK_DRIVER_FILES": str(manifest), "TRITON_SPIRV_VALIDATE": "0"}


def main() -> None:
    """The command line: see above."""
    folder = Path(sys.argv[1]).resolve()
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        manifest = Path(file.name)
    made = command(folder, sys.argv[2:])
    os.execve(made[0], made, environment(folder, manifest))


if __name__ == "__main__":
    main()
