"""Whether a native part is older than its sources; building it again where it is.

An editable installation loads this file by its path at each `import triton`, so it needs the standard library only and
looks at a few dozen file times. Where these differ it compares contents, since a rebase or a checkout gives files that
it leaves as they were another time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

#: What was compiled, in a build folder; and what a build that has not ended, or has failed, was given.
STAMP, BEGUN = "sources.json", "sources-begun.json"
SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inc", ".cmake")
_FOLDERS = ("backend", "src", "cmake", "include")

#: Path → time, size and sha256 of each source.
Sources = dict[str, list[int | str]]


def _paths(root: Path) -> dict[str, Path]:
    found = {"CMakeLists.txt": root / "CMakeLists.txt"}
    found |= {path.name: path for path in root.iterdir() if path.suffix in SUFFIXES}
    for folder in _FOLDERS:
        for parent, _, names in os.walk(root / folder):
            found |= {os.path.join(parent, name): Path(parent, name) for name in names if name.endswith(SUFFIXES)}
    return {name: path for name, path in sorted(found.items()) if path.is_file()}


def _times(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_mtime_ns, stat.st_size]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_times(root: Path) -> Sources:
    """Time, size and sha256 of each source of a plugin's native part."""
    return {name: [*_times(path), _digest(path)] for name, path in _paths(root).items()}


def _recorded(stamp: Path) -> Sources:
    try:
        return dict(json.loads(stamp.read_text()))
    except (OSError, ValueError):
        return {}


def is_current(root: Path, folder: Path) -> bool:
    """Whether what lies in a build folder was built from the present sources."""
    paths, recorded = _paths(root), _recorded(folder / STAMP)
    if paths.keys() != recorded.keys():
        return False
    newer = [name for name, path in paths.items() if _times(path) != recorded[name][:2]]
    same = all(_digest(paths[name]) == recorded[name][-1] for name in newer)
    if newer and same:
        _restore_times(root, recorded, by_content=True)
    return same


def _restore_times(root: Path, recorded: Sources, by_content: bool) -> None:
    """Give each source the time that it was compiled with, where it is as it was then, and the present time elsewhere:
    the build program compiles by times."""
    for name, path in _paths(root).items():
        times, known = _times(path), recorded.get(name, [])
        if times == known[:2]:
            continue
        same = by_content and bool(known) and _digest(path) == known[-1]
        with contextlib.suppress(OSError):  # another's file
            now = time.time_ns()
            os.utime(path, ns=(now, int(known[0]) if same else now))


def begin(root: Path, folder: Path) -> None:
    """Before a build: leaves to the build program what differs from the last one in content. What a build compiled that
    did not end is not known, so that its sources are told by their times."""
    stamp, begun = folder / STAMP, folder / BEGUN
    if stamp.exists():
        _restore_times(root, _recorded(stamp), by_content=True)
    elif begun.exists():
        _restore_times(root, _recorded(begun), by_content=False)
    folder.mkdir(parents=True, exist_ok=True)
    begun.write_text(json.dumps(source_times(root)))
    stamp.unlink(missing_ok=True)


def end(root: Path, folder: Path) -> None:
    """After a build that succeeded. Of a source that changed meanwhile it is not known what was compiled."""
    paths = _paths(root)
    sources = {
        name: facts if name in paths and _times(paths[name]) == facts[:2] else [*facts[:2], ""]
        for name, facts in _recorded(folder / BEGUN).items()
    }
    (folder / BEGUN).write_text(json.dumps(sources))
    (folder / BEGUN).replace(folder / STAMP)


def ensure(root: str, folder: str) -> None:
    """Build the native part of the checkout at `root` again, where its sources changed since it was built."""
    if is_current(Path(root), Path(folder)):
        return
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"TRITON_SPIRV_TOOLS_IN_PLACE": "1"}
    command = [sys.executable, "-m", "tools", "dev", "--native"]
    done = subprocess.run(command, cwd=root, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        raise ImportError(
            f"the native part of the checkout {root} is older than its sources, and building it failed: see above"
        )
