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
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.mesa_shaders import NoCompiler, check, compiled_examples, manifest, told

PROFILE = "amd-rdna3"
DRIVER = "radeon_icd"
#: RADV's names of an RDNA 3 GPU (Radeon RX 7900): of Mesa to 23.0, and since.
FAMILIES = ("gfx1100", "navi31")

#: Name here → ACO's name of a figure.
FIGURES = {
    "vgprs": "VGPRs",
    "spilled_vgprs": "Spilled VGPRs",
    "spilled_sgprs": "Spilled SGPRs",
    "shared": "LDS size",
    "scratch": "Scratch size",
    "subgroups": "Subgroups per SIMD",
    "instructions": "Instructions",
}


def shaders(modules: Sequence[Path]) -> dict[str, Any]:
    """What RADV says of the device, and of each module: ``{"device": …, "shaders": [{"module": …, figures …}]}``.

    Raises NoCompiler, ValueError on a damaged module, RuntimeError with the driver's own words where it refuses one.
    """
    check(modules)
    driver = manifest(DRIVER)
    for family in FAMILIES:
        try:
            known = told(modules, driver, {"RADV_FORCE_FAMILY": family, "RADV_DEBUG": "shaders,shaderstats,nocache"})
        except RuntimeError as error:
            if f"Unknown family: {family}" not in str(error):
                raise
            continue
        return {
            "device": known["device"],
            "shaders": [{"module": name, **_figures(text)} for name, text in known["modules"]],
        }
    raise NoCompiler(f"the RADV of {driver} knows none of {', '.join(FAMILIES)}")


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = shaders([path.resolve() for path in options.modules] or compiled_examples(Path(folder), PROFILE))
    if options.json:
        print(json.dumps(known, indent=1))
        return
    print(f"{known['device']['name']}, {known['device']['version']}")
    print(f"{'module':32}{'vgprs':>7}{'spilled':>12}{'shared':>8}{'subgroups':>11}{'instructions':>14}{'wide':>9}")
    for one in known["shaders"]:
        wide = sum(count for name, count in one["accesses"].items() if name.endswith("_b128"))
        spilled = f"{one['spilled_vgprs']} + {one['spilled_sgprs']}"
        print(
            f"{one['module']:32}{one['vgprs']:7}{spilled:>12}{one['shared']:8}{one['subgroups']:11}"
            f"{one['instructions']:14}{wide:5}/{sum(one['accesses'].values())}"
        )


if __name__ == "__main__":
    main()
