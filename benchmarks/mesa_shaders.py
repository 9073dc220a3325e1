"""What one of Mesa's drivers says of modules, for a GPU that need not be there.

amd_shaders.py and intel_shaders.py share this.

The driver is loaded in a process of its own, with an environment that makes it compile for a GPU that it is told of and
write figures to standard error.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_MANIFEST_FOLDERS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")


class NoCompiler(RuntimeError):
    """The driver is not installed, or compiles for no such GPU. The message says what to install."""


def manifest(prefix: str) -> Path:
    """The manifest ``<prefix>*.json`` of a driver: one that the environment lists, or else one that is installed.

    Raises NoCompiler.
    """
    listed = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES") or ""
    files = [Path(name) for name in listed.split(os.pathsep) if name]
    for folder in _MANIFEST_FOLDERS:
        files.extend(sorted(Path(folder).glob(f"{prefix}*.json")))
    found = [file for file in files if file.name.startswith(prefix) and file.is_file()]
    if not found:
        raise NoCompiler(
            f"no driver manifest {prefix}*.json is installed; get it with: apt-get install mesa-vulkan-drivers"
        )
    return found[0]


def check(modules: Sequence[Path]) -> None:
    """Raises ValueError on a damaged module."""
    from triton.backends.spirv.runtime.pipeline import read_module

    for module in modules:
        try:
            read_module(module.read_bytes())
        except ValueError as error:
            raise ValueError(f"{module}: {error}") from None


def told(modules: Sequence[Path], driver: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """``{"device": capabilities …, "modules": [(name, what the driver wrote while it compiled it), …]}``.

    Raises RuntimeError with the driver's own words where it refuses a module, or cannot be opened.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "told.json"
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.mesa_shaders", str(out), *map(str, modules)],
            check=False,
            env={
                **os.environ,
                "VK_DRIVER_FILES": str(driver),
                "VK_ICD_FILENAMES": str(driver),
                "MESA_SHADER_CACHE_DISABLE": "true",
                "TRITON_SPIRV_DEVICE": "",
                "LOCAL_RANK": "",
                "TRITON_SPIRV_VALIDATE": "0",
                **environment,
            },
            capture_output=True,
            text=True,
            errors="replace",
            cwd=Path(__file__).parents[1],
        )
        if done.returncode:
            raise RuntimeError(f"{driver.name} failed with {done.returncode}:\n{done.stderr[-4000:]}")
        known: dict[str, Any] = json.loads(out.read_text())
        return known


def compiled_examples(folder: Path, profile: str) -> list[Path]:
    """The examples' kernels, compiled for a profile, as modules in ``folder``."""
    from triton.backends.spirv import cli

    from benchmarks.example_kernels import KERNELS

    modules = []
    for number, (example, kernel, signature) in enumerate(KERNELS):
        module = folder / f"{number:02}-{kernel}.spv"
        source = Path(__file__).parents[1] / "examples" / f"{example}.py"
        with contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(
                ["compile", f"{source}:{kernel}", "--signature", signature, "--target", profile, "-o", str(module)]
            )
        if status:
            raise SystemExit(status)
        modules.append(module)
    return modules


def _compile(modules: Sequence[Path]) -> dict[str, Any]:
    """In the process whose only Vulkan driver is the one that is asked."""
    from dataclasses import asdict

    from triton.backends.spirv.runtime.devices import compute_queue_family, selected
    from triton.backends.spirv.runtime.loader import vulkan
    from triton.backends.spirv.runtime.logical_device import create_device, create_pipeline_layout
    from triton.backends.spirv.runtime.pipeline import create_module, create_pipeline, read_module

    device = selected()
    capabilities = device.capabilities
    assert capabilities is not None
    handle = create_device(device, compute_queue_family(device))
    layout = create_pipeline_layout(handle, capabilities)
    found = []
    for path in modules:
        spirv = path.read_bytes()
        with _standard_error() as text:
            module = create_module(handle, spirv)
            create_pipeline(handle, layout, vulkan().ffi.NULL, module, read_module(spirv), capabilities.subgroup_size)
        found.append((path.stem, "".join(text)))
    reported = {
        name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(capabilities).items()
    }
    return {"device": {"name": device.name, "version": device.driver_version, **reported}, "modules": found}


@contextlib.contextmanager
def _standard_error() -> Iterator[list[str]]:
    """What the process, its libraries included, writes there in the block: a list of one text afterwards."""
    written: list[str] = []
    before = os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield written
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            written.append(file.read())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(_compile([Path(name) for name in sys.argv[2:]])))
