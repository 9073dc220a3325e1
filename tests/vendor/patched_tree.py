"""A patched triton for the tests in this folder, each use of it in its own process.

Where the installed triton is already the patched one, that is used. Else a copy is made once: the installed Python
files in a temporary folder, with overlay/ laid over them and patches/ applied; what is heavy and never patched is
linked.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: A file of the overlay.
_OURS = "runtime/driver_selection.py"
_LINKED = ("_C", "FileCheck", "include", "lib", "bin", "instrumentation")


def installed_triton() -> Path:
    """The folder of the installed triton package, found without importing it."""
    spec = importlib.util.find_spec("triton")
    assert spec is not None and spec.origin is not None, "these tests need triton installed"
    return Path(spec.origin).resolve().parent


def series() -> list[Path]:
    """The patch files in the order in which they are applied."""
    lines = (line.strip() for line in (ROOT / "patches" / "series").read_text().splitlines())
    return [ROOT / "patches" / line for line in lines if line and not line.startswith("#")]


def git_apply(patch: Path, tree: Path, *options: str) -> None:
    """Applies `patch` in folder `tree`, wherever that lies. Raises CalledProcessError."""
    env = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    subprocess.run(["git", "apply", *options, str(patch)], cwd=tree, env=env, check=True, capture_output=True)


def copy_tree(target: Path) -> None:
    """Copies the installed triton to `target`/python/triton, heavy parts as links; without the SPIR-V backend."""
    source, copy = installed_triton(), target / "python" / "triton"

    def skip(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in _LINKED or name == "__pycache__" or Path(folder, name).is_symlink()}

    shutil.copytree(source, copy, ignore=skip)
    for folder in (source, *(source / "backends").glob("*/")):
        for name in _LINKED:
            if (folder / name).exists():
                (copy / folder.relative_to(source) / name).symlink_to(folder / name)
    # A metadata folder of the same name hides the installed one, whose entry points may name missing backends.
    info = target / "python" / next(source.parent.glob("triton-*.dist-info")).name
    info.mkdir()
    shutil.copy(source.parent / info.name / "METADATA", info)
    names = sorted(path.parent.name for path in (copy / "backends").glob("*/compiler.py"))
    (info / "entry_points.txt").write_text(
        "[triton.backends]\n" + "".join(f"{name} = triton.backends.{name}\n" for name in names)
    )


def stock_tree(target: Path) -> None:
    """As copy_tree, with the series taken off again where the installed triton has it."""
    copy_tree(target)
    if (target / "python/triton" / _OURS).exists():
        for patch in reversed(series()):
            git_apply(patch, target, "--reverse")


@functools.cache
def python_path() -> str | None:
    """The folder to put on PYTHONPATH for a patched triton, or None if the installed one is patched."""
    if (installed_triton() / _OURS).exists():
        return None
    target = Path(tempfile.mkdtemp(prefix="patched-triton-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    copy_tree(target)
    shutil.copytree(ROOT / "overlay", target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for patch in series():
        git_apply(patch, target)
    return str(target / "python")


def run_python(
    code: str,
    cache: Path,
    env: Mapping[str, str] | None = None,
    path: tuple[Path | str, ...] = (),
    script: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `code` (or `script`) with the patched triton, the Triton cache in `cache`, `path` first on PYTHONPATH.

    Selection variables of the surrounding environment are dropped; `env` adds to what is left.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}
    patched = python_path()
    folders = [*map(str, path), *([patched] if patched else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    inherited |= {"PYTHONPATH": os.pathsep.join(folders), "TRITON_CACHE_DIR": str(cache)}
    if script is None:
        # @triton.jit reads the source of its function, so the code must lie in a file.
        cache.mkdir(parents=True, exist_ok=True)
        script = cache / "script.py"
        script.write_text(code)
    return subprocess.run(
        [sys.executable, str(script)], env=inherited | dict(env or {}), capture_output=True, text=True, timeout=300
    )


def run_ok(code: str, cache: Path, **options: object) -> str:
    """As run_python; asserts that it ends well and returns what it printed."""
    result = run_python(code, cache, **options)  # type: ignore[arg-type]
    assert result.returncode == 0, result.stderr
    return result.stdout
