"""What Intel's compiler of Mesa makes of kernels, on a machine without an Intel GPU.

Mesa's ANV believes in a GPU where a library of Mesa's own plays the kernel driver. That library is not in packages. It
comes from Mesa's source, of about the version of the driver:

    meson setup build -Dtools=drm-shim -Dplatforms= -Dvulkan-drivers= -Dgallium-drivers= -Dglx=disabled \\
        -Degl=disabled -Dgbm=disabled -Dllvm=disabled -Dopengl=false
    ninja -C build src/intel/tools/libintel_noop_drm_shim.so

The script then gives ANV modules made ahead of time for the profile ``intel-xe`` and prints what it says of each.

    python -m benchmarks.intel_shaders --shim libintel_noop_drm_shim.so [--gpu dg2] [--json] [MODULE.spv ...]

Without modules it takes the kernels of all examples. Mesa's Vulkan drivers must be installed.

============  ==================================================================
lanes         of a subgroup, as it was compiled
instructions  of the whole kernel
cycles        ANV's own estimate for a subgroup
spilled       stores to scratch memory, and loads from it, for lack of registers
============  ==================================================================
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.mesa_shaders import NoCompiler, check, compiled_examples, manifest, told

PROFILE = "intel-xe"
DRIVER = "intel_icd"
#: The GPU that the profile describes, by ANV's name.
GPU = "dg2"

_FIGURES = re.compile(
    r"SIMD(?P<lanes>\d+) shader: (?P<instructions>\d+) inst.* (?P<cycles>\d+) cycles\. "
    r"(?P<spills>\d+):(?P<fills>\d+) spills:fills"
)


def shaders(modules: Sequence[Path], shim: Path, gpu: str = GPU) -> dict[str, Any]:
    """What ANV says of the device, and of each module: ``{"device": …, "shaders": [{"module": …, figures …}]}``.

    Raises NoCompiler, ValueError on a damaged module, RuntimeError with the driver's own words where it refuses one.
    """
    check(modules)
    if not shim.is_file():
        raise NoCompiler(f"{shim} is not there; see python -m benchmarks.intel_shaders --help for how to build it")
    known = told(
        modules,
        manifest(DRIVER),
        {"LD_PRELOAD": str(shim.resolve()), "INTEL_STUB_GPU_PLATFORM": gpu, "INTEL_DEBUG": "cs"},
    )
    return {
        "device": known["device"],
        "shaders": [{"module": name, **_figures(name, text)} for name, text in known["modules"]],
    }


def _figures(name: str, text: str) -> dict[str, int]:
    # The last attempt counts: others may have been dropped.
    found = list(_FIGURES.finditer(text))
    if not found:
        raise RuntimeError(f"ANV says nothing of {name}:\n{text[-2000:]}")
    return {figure: int(value) for figure, value in found[-1].groupdict().items()}


def main() -> None:
    """Prints a line a module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--shim", type=Path, required=True, help="libintel_noop_drm_shim.so")
    parser.add_argument("--gpu", default=GPU, help=f"ANV's name of a GPU; {GPU} is the default")
    parser.add_argument("--json", action="store_true", help="print all that is known")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        modules = [path.resolve() for path in options.modules] or compiled_examples(Path(folder), PROFILE)
        known = shaders(modules, options.shim, options.gpu)
    if options.json:
        print(json.dumps(known, indent=1))
        return
    print(f"{known['device']['name']}, {known['device']['version']}")
    print(f"{'module':32}{'lanes':>7}{'instructions':>14}{'cycles':>11}{'spilled':>13}")
    for one in known["shaders"]:
        spilled = f"{one['spills']} : {one['fills']}"
        print(f"{one['module']:32}{one['lanes']:7}{one['instructions']:14}{one['cycles']:11}{spilled:>13}")


if __name__ == "__main__":
    main()
