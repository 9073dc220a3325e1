"""`audit WHEEL…`: have auditwheel check that wheels run on the systems that their names promise.

Meant for the wheel of the plugin alone: what is compiled here lies in it, and upstream's own libraries, in the patched
wheel, take auditwheel minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ..errors import ToolError
from ..project import Project

_TAG = re.compile(r'is consistent with the following platform tag: "([^"]+)"')
_MANYLINUX = re.compile(r"manylinux_2_(\d+)_(\w+)")


def run(project: Project, arguments: list[str]) -> int:
    if not arguments:
        raise ToolError("audit needs the path of a wheel, such as dist/triton_spirv-….whl")
    for name in arguments:
        found = audit(Path(name))
        print(f"{Path(name).name}: auditwheel finds {found}, which holds what the name promises")
    return 0


def audit(wheel: Path) -> str:
    """The platform that auditwheel finds; a ToolError where the wheel's name promises more."""
    if not wheel.is_file():
        raise ToolError(f"there is no wheel {wheel}")
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = _TAG.search(" ".join(done.stdout.split()))  # its lines are folded anywhere
    if done.returncode or not found:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise ToolError(f"auditwheel cannot tell about {wheel.name}: {lines[-1] if lines else 'it printed nothing'}")
    promised = wheel.stem.split("-")[-1].split(".")
    if not any(_holds(found.group(1), one) for one in promised):
        raise ToolError(f"{wheel.name} promises {'.'.join(promised)}, but auditwheel finds {found.group(1)}")
    return found.group(1)


def _holds(found: str, promised: str) -> bool:
    """Whether a wheel that needs the platform `found` runs on every system of the `promised` one."""
    if found == promised or promised.startswith("linux_"):
        return True
    needs, has = _MANYLINUX.fullmatch(found), _MANYLINUX.fullmatch(promised)
    if not needs or not has:
        return False
    return needs.group(2) == has.group(2) and int(needs.group(1)) <= int(has.group(1))
