"""backend/native/abi.h: the part of the ABI that the C++ code reads.

``python -m backend.abi.header`` writes the file; a test checks that it is current.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .block import WORD_BYTES
from .launch_arguments import LaunchArgument, Place
from .native_version import VERSION
from .scalars import POINTER, SCALARS, Packing

PATH = Path(__file__).resolve().parents[1] / "native" / "abi.h"

_HEADER = """// Written by python -m backend.abi.header from backend/abi/: change it there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triton_spirv {
"""


def _camel(name: str) -> str:
    """A constant's name in C++: READ_ONLY is kReadOnly."""
    return "k" + name.title().replace("_", "")


def _enum(name: str, base: str, comment: str, rows: Iterable[tuple[str, int | None]]) -> str:
    lines = [f"  {row},\n" if value is None else f"  {row} = {value},\n" for row, value in rows]
    return f"\n// {comment}\nenum {name}{base} {{\n{''.join(lines)}}};\n"


def text() -> str:
    """What the file has to be."""
    scalars = "".join(
        f'    {{"{scalar.name}", Packing::{scalar.packing.value}, {scalar.bytes}}},\n' for scalar in SCALARS.values()
    )
    return "".join(
        (
            _HEADER,
            "\n// What the Python code must agree with.\n",
            f"inline constexpr uint32_t kAbiVersion = {VERSION};\n",
            _enum("class Packing", "", "How an argument is written.", ((packing.value, None) for packing in Packing)),
            "\n// A type that is passed by value.\n",
            "struct ScalarType {\n  std::string_view name;\n  Packing packing;\n  uint32_t bytes;\n};\n\n",
            f"// clang-format off\ninline constexpr ScalarType kScalarTypes[] = {{\n{scalars}}};\n// clang-format on\n",
            f"inline constexpr uint32_t kPointerBytes = {POINTER.bytes};\n",
            "\n// The block's size is a multiple of it.\n",
            f"inline constexpr uint32_t kWordBytes = {WORD_BYTES};\n",
            _enum(
                "LaunchArgument",
                " : std::ptrdiff_t",
                "Where Triton's launch arguments are.",
                ((_camel(place.name), place.value) for place in LaunchArgument),
            ),
            _enum(
                "Place",
                " : uint8_t",
                "Where the memory of a pointer argument lies: a bit each, so that a number holds all of a launch.",
                ((_camel(place.name), place.value) for place in Place),
            ),
            "\n// What launch metadata calls a place.\n",
            "constexpr const char* place_name(Place place) {\n  switch (place) {\n",
            *(f'    case {_camel(place.name)}:\n      return "{place.transfer}";\n' for place in Place),
            '  }\n  return "?";\n}\n\n}  // namespace triton_spirv\n',
        )
    )


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
