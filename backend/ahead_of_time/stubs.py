"""Typed code for the kernels of a bundle: a C++ header and a Python module, `triton-spirv stubs`."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ..abi.scalars import SCALARS, Packing, Scalar
from ..runtime.compiled.bundle import Variant, unpack
from ..runtime.compiled.kernel_file import IncompatibleModule
from .errors import RequestError


def _of_scalar(scalar: Scalar) -> tuple[str, str]:
    if scalar.packing is Packing.BOOL:
        return "bool", "bool"
    if scalar.packing in (Packing.SIGNED, Packing.UNSIGNED):
        return scalar.c_type, "int"
    return "double" if scalar.packing is Packing.DOUBLE else "float", "float"


#: Type of an argument → in C++, in Python; pointers are not among them.
_TYPES = {name: _of_scalar(scalar) for name, scalar in SCALARS.items()}
_CPP_WORDS = frozenset(
    "alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new not operator or "
    "private protected public register return short signed sizeof static struct switch template this throw true try "
    "typedef typename union unsigned using virtual void volatile while xor commands grid kernel record create "
    "run".split()
)

_CPP = """// Written by triton-spirv stubs from {bundle}: its kernels, with the types of their arguments.
#pragma once

#include <triton_spirv.hpp>

namespace {space} {{
{classes}
}}  // namespace {space}
"""
_CPP_CLASS = """
// {name}({signature})
#ifndef TRITON_SPIRV_NO_VULKAN
class {camel} {{
 public:
  explicit {camel}(triton_spirv::Kernel kernel) : kernel_(std::move(kernel)) {{}}
#ifndef TRITON_SPIRV_NO_EXCEPTIONS
  {camel}(const triton_spirv::Bundle &bundle, VkPhysicalDevice physical, VkDevice device,
      const triton_spirv::Options &options = {{}})
      : kernel_(bundle.kernel(physical, device, "{name}", options)) {{}}
#endif
  const triton_spirv::Kernel &kernel() const {{ return kernel_; }}
  // A number that the variant was compiled with, such as a block's size; 0 where it has none of that name.
  uint32_t constant(const char *name) const {{ return kernel_.abi().constant(name); }}
  triton_spirv::Returned<triton_spirv::Done> record(
      VkCommandBuffer commands, std::array<uint32_t, 3> grid{typed}) const {{
    return kernel_.record(commands, grid, {{{names}}});
  }}

 private:
  triton_spirv::Kernel kernel_;
}};
#endif
#ifdef TRITON_SPIRV_HAS_CPU
// The same on the processor.
class {camel}OnCpu {{
 public:
  explicit {camel}OnCpu(triton_spirv::CpuKernel kernel) : kernel_(std::move(kernel)) {{}}
#ifndef TRITON_SPIRV_NO_EXCEPTIONS
  explicit {camel}OnCpu(const triton_spirv::Bundle &bundle) : kernel_(bundle.cpu_kernel("{name}")) {{}}
#endif
  const triton_spirv::CpuKernel &kernel() const {{ return kernel_; }}
  uint32_t constant(const char *name) const {{ return kernel_.abi().constant(name); }}
  triton_spirv::Returned<triton_spirv::Done> run(std::array<uint32_t, 3> grid{typed}) const {{
    return kernel_.run(grid, {{{names}}});
  }}

 private:
  triton_spirv::CpuKernel kernel_;
}};
#endif
"""
_PYTHON = '''"""Written by triton-spirv stubs from {bundle}: its kernels, with the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from triton.backends.spirv.runtime import load_bundle

#: A NumPy array, a device buffer or a torch tensor.
Tensor = Any
Grid = int | Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]

_bundle = load_bundle(Path(__file__).with_name("{bundle}"))
{functions}'''
_PYTHON_FUNCTION = '''

def {function}(grid: Grid{typed}) -> None:
    """Launch {name}({signature}) on the current device."""
    _bundle["{name}"].run(grid{names})
'''


def write_stubs(bundle: Path, folder: Path) -> tuple[Path, Path]:
    """Write NAME.hpp and NAME.py for NAME.tsb. Raises RequestError."""
    if not bundle.is_file():
        raise RequestError(f"there is no bundle {bundle}; `triton-spirv compile --bundle` writes one")
    if not folder.is_dir():
        raise RequestError(f"there is no folder {folder}")
    try:
        variants = {variant.name: variant for variant in reversed(unpack(bundle.read_bytes(), bundle))}
    except IncompatibleModule as error:
        raise RequestError(str(error)) from None
    space = re.sub(r"\W", "_", bundle.stem)
    classes = "".join(_cpp_class(variants[name]) for name in sorted(variants))
    functions = "".join(_python_function(variants[name]) for name in sorted(variants))
    header, module = folder / f"{space}.hpp", folder / f"{space}.py"
    header.write_text(_CPP.format(bundle=bundle.name, space=_word(space, _CPP_WORDS), classes=classes))
    module.write_text(_PYTHON.format(bundle=bundle.name, functions=functions))
    return header, module


def run_stubs(bundle: Path, folder: Path | None) -> int:
    """``triton-spirv stubs``: 0, or 1 with one error on stderr."""
    try:
        header, module = write_stubs(bundle, folder or bundle.absolute().parent)
    except (RequestError, OSError) as error:
        print(f"triton-spirv stubs: error: {error}", file=sys.stderr)
        return 1
    print(f"{header} and {module}")
    return 0


def _word(name: str, taken: frozenset[str]) -> str:
    """A name that a language has no other use for."""
    plain = re.sub(r"\W", "_", name).strip("_") or "value"
    return f"{plain}_" if plain in taken or plain[0].isdigit() else plain


def _signature(variant: Variant) -> str:
    return ", ".join(f"{entry.name}: {entry.type}" for entry in variant.abi.parameters if entry.type is not None)


def _cpp_class(variant: Variant) -> str:
    rows = [(_cpp_type(entry.type), _word(entry.name, _CPP_WORDS)) for entry in variant.abi.arguments]
    camel = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", variant.name))
    return _CPP_CLASS.format(
        name=variant.name,
        camel=_word(camel, _CPP_WORDS),
        signature=_signature(variant),
        typed="".join(f",\n      {type_} {name}" for type_, name in rows),
        names=", ".join(name for _, name in rows),
    )


def _cpp_type(type_: str) -> str:
    return "triton_spirv::Pointer" if type_.startswith("*") else _TYPES[type_][0]


def _python_function(variant: Variant) -> str:
    taken = frozenset((*keyword.kwlist, "grid"))
    rows = list(_python_parameters(variant, taken))
    return _PYTHON_FUNCTION.format(
        function=_word(variant.name, taken),
        name=variant.name,
        signature=_signature(variant),
        typed="".join(f", {name}: {type_}" for name, type_ in rows),
        names="".join(f", {name}" for name, _ in rows),
    )


def _python_parameters(variant: Variant, taken: frozenset[str]) -> Iterator[tuple[str, str]]:
    for entry in variant.abi.parameters:
        if entry.type is None:
            continue
        kind = "Tensor" if entry.type.startswith("*") else _TYPES.get(entry.type, ("", "Any"))[1]
        yield _word(entry.name, taken), kind
