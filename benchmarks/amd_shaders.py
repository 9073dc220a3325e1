"""What AMD's compiler makes of kernels, on a machine without an AMD GPU.

Mesa's RADV compiles for GPUs that are not there (RADV_FORCE_FAMILY): this script gives it modules made ahead of time
for the profile ``amd-rdna3`` and prints what its compiler, ACO, says of each: registers, spills, memory, instructions.

    python -m benchmarks.amd_shaders [--json] [MODULE.spv ...]

Without modules it takes the kernels of all examples. Mesa's Vulkan drivers must be installed.

==========  ====================================================================================
vgprs       vector registers of an invocation; more than some 96 leave few subgroups in flight
spilled     vector and scalar registers that had no room, in scratch memory instead
shared      bytes of workgroup memory
subgroups   how many a SIMD unit can have in flight, of 32 at most in RDNA 3's wave64
wide        memory instructions of 128 bits, of all global loads and stores
==========  ====================================================================================
"""
from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PROFILE = "amd-rdna3"
#: RADV's names of an RDNA 3 GPU (Radeon RX 7900): of Mesa to 23.0, and since.
FAMILIES = ("gfx1100", "navi31")
_MANIFEST_FOLDERS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")

#: Name here → ACO's name of a figure.
FIGURES = {"vgprs": "VGPRs", "spilled_vgprs": "Spilled VGPRs", "spilled_sgprs": "Spilled SGPRs", "shared": "LDS size",
           "scratch": "Scratch size", "subgroups": "Subgroups per SIMD", "instructions": "Instructions"}


class NoCompiler(RuntimeError):
    """RADV is not installed, or compiles for no RDNA 3 GPU. The message says what to install."""


def manifest() -> Path:
    """RADV's driver manifest: one that the environment lists, or else one that is installed. Raises NoCompiler."""
    listed = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES") or ""
    files = [Path(name) for name in listed.split(os.pathsep) if name]
    for folder in _MANIFEST_FOLDERS:
        files.extend(sorted(Path(folder).glob("radeon_icd*.json")))
    found = [file for file in files if file.name.startswith("radeon_icd") and file.is_file()]
    if not found:
        raise NoCompiler("RADV is not installed; get it with: apt-get install mesa-vulkan-drivers")
    return found[0]


def shaders(modules: Sequence[Path]) -> dict[str, Any]:
    """What RADV says of the device, and of each module: ``{"device": …, "shaders": [{"module": …, figures …}]}``.

    Raises NoCompiler, ValueError on a damaged module, RuntimeError with the driver's own words where it refuses one.
    """
    from triton.backends.spirv.runtime.pipeline import read_module
    for module in modules:
        try:
            read_module(module.read_bytes())
        except ValueError as error:
            raise ValueError(f"{module}: {error}") from None
    environment = {**os.environ, "VK_DRIVER_FILES": str(manifest()), "VK_ICD_FILENAMES": str(manifest()),
                   "RADV_DEBUG": "shaders,shaderstats,nocache", "MESA_SHADER_CACHE_DISABLE": "true",
                   "TRITON_SPIRV_DEVICE": "", "LOCAL_RANK": "", "TRITON_SPIRV_VALIDATE": "0"}
    told = ""
    for family in FAMILIES:
        done = subprocess.run([sys.executable, "-m", "benchmarks.amd_shaders", "--inside", *map(str, modules)],
                              env={**environment, "RADV_FORCE_FAMILY": family}, capture_output=True, text=True,
                              cwd=Path(__file__).parents[1], check=False)
        if done.returncode == 0:
            known: dict[str, Any] = json.loads(done.stdout)
            return known
        if f"Unknown family: {family}" not in done.stderr:
            raise RuntimeError(f"RADV failed with {done.returncode}:\n{done.stderr[-4000:]}")
        told += done.stderr
    raise NoCompiler(f"the RADV of {manifest()} knows none of {', '.join(FAMILIES)}: {told[-1000:]}")


def compiled_examples(folder: Path) -> list[Path]:
    """The examples' kernels as modules in ``folder``."""
    from triton.backends.spirv import cli

    from benchmarks.example_kernels import KERNELS
    modules = []
    for number, (example, kernel, signature) in enumerate(KERNELS):
        module = folder / f"{number:02}-{kernel}.spv"
        source = Path(__file__).parents[1] / "examples" / f"{example}.py"
        with contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(["compile", f"{source}:{kernel}", "--signature", signature, "--target", PROFILE, "-o",
                               str(module)])
        if status:
            raise SystemExit(status)
        modules.append(module)
    return modules


# -- inside a process whose only Vulkan driver is RADV -------------------------------------------------------------
def _inside(modules: Sequence[Path]) -> dict[str, Any]:
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
        found.append({"module": path.stem, **_figures("".join(text))})
    reported = {**asdict(capabilities), "features": sorted(capabilities.features)}
    return {"device": {"name": device.name, "version": device.driver_version, **reported}, "shaders": found}


@contextlib.contextmanager
def _standard_error() -> Iterator[list[str]]:
    """What the process, its libraries included, writes there in the block: a list of one text afterwards."""
    told: list[str] = []
    before = os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield told
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            told.append(file.read())


def _figures(text: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, label in FIGURES.items():
        match = re.search(rf"^{label}: (\d+)", text, re.MULTILINE)
        if match is None:
            raise RuntimeError(f"RADV says nothing of '{label}':\n{text[-2000:]}")
        figures[name] = int(match[1])
    # The disassembly has each instruction's words in a comment; ACO's own form before it has none.
    accesses = re.findall(r"^\s+(global_(?:load|store)_\w+).*; [0-9a-f]{8}", text, re.MULTILINE)
    figures["accesses"] = {name: accesses.count(name) for name in sorted(set(accesses))}
    return figures


def main() -> None:
    """Prints a line a module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true", help="print all that is known")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(_inside(options.modules)))
        return
    with tempfile.TemporaryDirectory() as folder:
        known = shaders([path.resolve() for path in options.modules] or compiled_examples(Path(folder)))
    if options.json:
        print(json.dumps(known, indent=1))
        return
    print(f"{known['device']['name']}, {known['device']['version']}")
    print(f"{'module':32}{'vgprs':>7}{'spilled':>12}{'shared':>8}{'subgroups':>11}{'instructions':>14}{'wide':>9}")
    for one in known["shaders"]:
        wide = sum(count for name, count in one["accesses"].items() if name.endswith("_b128"))
        spilled = f"{one['spilled_vgprs']} + {one['spilled_sgprs']}"
        print(f"{one['module']:32}{one['vgprs']:7}{spilled:>12}{one['shared']:8}{one['subgroups']:11}"
              f"{one['instructions']:14}{wide:5}/{sum(one['accesses'].values())}")


if __name__ == "__main__":
    main()
