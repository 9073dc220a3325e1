"""`try-wheel WHEEL…`: install each wheel into its own environment, and launch a kernel with it.

The wheel of the plugin alone is installed with the stock triton that it asks for. What the wheels need comes from the
package registry; the kernel runs on the Vulkan device that is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import ToolError
from ..progress import step
from ..project import Project, pip_environment

PROBE = Path(__file__).parents[1] / "packaging" / "wheel_probe.py"
_SECONDS = 300


def run(project: Project, arguments: list[str]) -> int:
    if not arguments:
        raise ToolError("try-wheel needs the path of a wheel, such as dist/triton-….whl")
    for name in arguments:
        print(f"{Path(name).name}: {try_wheel(Path(name))}")
    return 0


def try_wheel(wheel: Path, index: Path | None = None, links: Path | None = None) -> str:
    """What ran; a ToolError where the wheel cannot be installed, imported, or gives wrong values.

    With an `index`, a folder of pages (PEP 503), pip is given the wheel's name and version, and finds it there; what it
    depends on comes from `links`, a folder of wheels, before the registry.
    """
    if not wheel.is_file():
        raise ToolError(f"there is no wheel {wheel}")
    environment = {key: value for key, value in pip_environment().items() if not key.startswith("TRITON_")}
    what = [str(wheel.absolute())]
    if index is not None:
        what = ["--extra-index-url", index.resolve().as_uri(), "==".join(wheel.name.split("-")[:2])]
    what += ["--find-links", str(links)] if links else []
    with tempfile.TemporaryDirectory(prefix="try-wheel-") as scratch, step(f"try {wheel.name}"):
        python = str(Path(scratch, "venv", "bin", "python"))
        environment |= {"TRITON_CACHE_DIR": str(Path(scratch, "cache"))}
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *what, "numpy"]
        for command in ([sys.executable, "-m", "venv", "--without-pip", str(Path(scratch, "venv"))], install):
            done = _run(command, scratch, environment)
            if done.returncode:
                raise ToolError(f"{wheel.name} cannot be installed: {_last(done)}")
        # The kernel's source is a file, and `python FILE` puts its folder on the path, where nothing else may lie.
        probe = Path(scratch, "probe", PROBE.name)
        probe.parent.mkdir()
        probe.write_bytes(PROBE.read_bytes())
        done = _run([python, str(probe)], scratch, environment)
        if done.returncode:
            raise ToolError(f"{wheel.name} is installed, and its kernel fails: {_last(done)}")
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    if not found["right"] or found["driver"] != "SPIRVDriver":
        raise ToolError(f"{wheel.name}: a kernel ran on {found['driver']}, and its values are {found['values']}")
    return f"a kernel ran on {found['device']} with triton {found['triton']}"


def _run(command: list[str], folder: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=environment | {"PYTHONSAFEPATH": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"`{' '.join(command[:4])} …` takes more than {_SECONDS} s") from None


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {done.returncode}"
