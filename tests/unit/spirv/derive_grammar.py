"""Writes backend/spirv/grammar.txt from Khronos' machine-readable grammar of SPIR-V.

    python tests/unit/spirv/derive_grammar.py FOLDER > backend/spirv/grammar.txt

FOLDER is ``include/spirv/unified1`` of SPIRV-Headers (Debian: /usr/include/spirv/unified1 of the package
spirv-headers), with spirv.core.grammar.json and the grammars of the extended instruction sets named below.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Name of an extended instruction set as OpExtInstImport has it → its grammar.
EXTENDED = {
    "GLSL.std.450": "extinst.glsl.std.450.grammar.json",
    "NonSemantic.DebugPrintf": "extinst.nonsemantic.debugprintf.grammar.json",
    "NonSemantic.Shader.DebugInfo.100": "extinst.nonsemantic.shader.debuginfo.100.grammar.json",
}
OPENCL_VENDORS = ("INTEL", "ALTERA")
CATEGORIES = {"ValueEnum": "value", "BitEnum": "mask", "Composite": "composite"}

HEAD = """\
# The instructions, operand kinds and extended instruction sets of SPIR-V, a row each; grammar.py reads them.
#
# Written by tests/unit/spirv/derive_grammar.py from the grammar in Khronos' SPIRV-Headers, version {version} revision
# {revision}, which is under the MIT licence, copyright 2014 The Khronos Group Inc. Do not edit."""


def row(number: int, name: str, operands: list[dict[str, Any]]) -> str:
    """``12 ExtInst IdResultType IdResult IdRef LiteralExtInstInteger IdRef*``: number, name, kinds with quantifiers."""
    return " ".join([str(number), name, *(operand["kind"] + operand.get("quantifier", "") for operand in operands)])


def instructions(grammar: dict[str, Any]) -> Iterator[str]:
    """A row per instruction. OpenCL's vendor extensions are left out, because no Vulkan module has them."""
    for entry in sorted(grammar["instructions"], key=lambda entry: int(entry["opcode"])):
        if not entry["opname"].endswith(OPENCL_VENDORS):
            yield row(entry["opcode"], entry["opname"].removeprefix("Op"), entry.get("operands", []))


def kinds(grammar: dict[str, Any]) -> Iterator[str]:
    """``mask NAME``, ``value NAME`` and their enumerants, a row each; ``composite NAME KIND KIND``."""
    for kind in grammar["operand_kinds"]:
        if kind["category"] in CATEGORIES:
            yield " ".join([CATEGORIES[kind["category"]], kind["kind"], *kind.get("bases", [])])
            rows = {int(str(entry["value"]), 0): entry for entry in kind.get("enumerants", [])}
            for number, entry in sorted(rows.items()):
                yield row(number, entry["enumerant"], entry.get("parameters", []))


def extended(grammars: dict[str, dict[str, Any]]) -> Iterator[str]:
    """``set NAME`` and its instructions, whose operands are all ids."""
    for name, grammar in grammars.items():
        yield f"set {name}"
        for entry in grammar["instructions"]:
            yield row(entry["opcode"], entry["opname"], [])


def generate(core: dict[str, Any], sets: dict[str, dict[str, Any]]) -> str:
    """The text of grammar.txt: tables with an empty line before each."""
    version = f"{core['major_version']}.{core['minor_version']}"
    head = HEAD.format(version=version, revision=core["revision"])
    return "\n\n".join([head, *map("\n".join, (instructions(core), kinds(core), extended(sets)))])


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1])
    core = json.loads((folder / "spirv.core.grammar.json").read_text(encoding="utf-8"))
    print(generate(core, {name: json.loads((folder / file).read_text("utf-8")) for name, file in EXTENDED.items()}))


if __name__ == "__main__":
    main()
