"""Run the tools as `python faulted_tools.py <arguments>`, with a toy registry: for the tests that kill them.

TOY_REGISTRY is a folder of wheels that the registry answers from.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tools import registry  # noqa: E402
from tools.__main__ import main  # noqa: E402
from tools.project import ReleaseWheel, file_sha256  # noqa: E402


def wheel_of(name: str, version: str, *_: object) -> ReleaseWheel:
    (path,) = Path(os.environ["TOY_REGISTRY"]).glob(f"{name}-{version}-*.whl")
    python, abi, platform = path.stem.split("-")[2:]
    return ReleaseWheel(python, abi, platform.removeprefix("linux_"), path.name, file_sha256(path))


registry.release_wheel = registry.wheel_for_this_python = wheel_of
registry.release_wheels = lambda name, version: (wheel_of(name, version),)
raise SystemExit(main(sys.argv[1:]))
