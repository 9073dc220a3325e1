"""Plugins are imported and checked in a child process before a wheel is written.

Triton imports every backend when it is imported itself, so a plugin with a mistake in it would make `import triton`
fail wherever the wheel is installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import ToolError
from ..progress import note, step
from ..project import Project, pip_environment, replace_file
from ..queue import queue_hash
from .inputs import digest_of, plugin_sources
from .plugins import Plugin

_PROBE = Path(__file__).with_name("plugin_probe.py")
_SECONDS = 120


def check_classes(project: Project, plugin: Plugin, native: dict[str, Path], strict: bool = False) -> None:
    """Import a plugin in the patched tree; a ToolError says what is wrong: syntax, imports, one class each.

    A plugin that imports what is not installed here is told of, and is an error too if `strict`.

    What was checked once is not checked again until it changes.
    """
    files = plugin_sources(plugin)
    wanted = digest_of(files, queue_hash(project), sys.version, _PROBE.read_text())
    stamp = project.cache / "checked" / plugin.name
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    prefix = f"{plugin.package}/"
    with tempfile.TemporaryDirectory(dir=project.build, prefix=".lib-") as scratch:
        for name, path in {**plugin.files(), **native}.items():
            if name.startswith(prefix):
                target = Path(scratch) / plugin.name / name.removeprefix(prefix)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        with step(f"check the plugin {plugin.name}"):
            found = _run(project, plugin, Path(scratch))
    if fault := found.get("fault"):
        raise ToolError(f"plugin {plugin.folder}: {fault}")
    if missing := found.get("missing"):
        lacks = f"it imports {missing}, which is not installed here"
        if strict:
            raise ToolError(f"plugin {plugin.folder}: {lacks}: install {missing}, or build without --strict")
        note(f"plugin {plugin.name}: its classes are not checked: {lacks}")
        return
    replace_file(stamp, wanted.encode())


def _run(project: Project, plugin: Plugin, folder: Path) -> dict[str, str]:
    # Backends of the tree only: what is installed for this interpreter has nothing to do with the wheel.
    environment = {key: value for key, value in pip_environment().items() if not key.startswith("TRITON_")}
    environment |= {"PYTHONPATH": str(project.tree / "python"), "TRITON_BACKENDS_IN_TREE": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, str(_PROBE), plugin.name, str(folder)]
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"plugin {plugin.folder}: its import takes more than {_SECONDS} s") from None
    try:
        result: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        end = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise ToolError(f"plugin {plugin.folder}: its import ended the interpreter: {end}") from None
    return result
