"""Whether a native part is older than its sources; building it again where it is.

An editable installation loads this file by its path at each `import triton`, so it needs the standard library only and
looks at a few dozen file times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

STAMP = "sources.json"
SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inc", ".cmake")
_FOLDERS = ("backend", "src", "cmake", "include")


def source_times(root: Path) -> dict[str, list[int]]:
    """Path → time and size of each source of a plugin's native part."""
    found = {"CMakeLists.txt": root / "CMakeLists.txt"}
    found |= {path.name: path for path in root.iterdir() if path.suffix in SUFFIXES}
    for folder in _FOLDERS:
        for parent, _, names in os.walk(root / folder):
            found |= {os.path.join(parent, name): Path(parent, name) for name in names if name.endswith(SUFFIXES)}
    stats = {name: path.stat() for name, path in sorted(found.items()) if path.is_file()}
    return {name: [stat.st_mtime_ns, stat.st_size] for name, stat in stats.items()}


def is_current(root: Path, folder: Path) -> bool:
    """Whether what lies in a build folder was built from the present sources."""
    try:
        return bool(json.loads((folder / STAMP).read_text()) == source_times(root))
    except (OSError, ValueError):
        return False


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
