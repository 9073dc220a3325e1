"""Bundles: kernels in one file, each in variants for several devices, of which the one that fits is loaded.

docs/internals/abi.md describes the file. `triton-spirv compile --bundle` writes one; this and triton_spirv.hpp read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...cpu.host import FEATURES, LEVELS, level_of
from ..context import Context, current
from .ahead_of_time import ANY_DRIVER, LoadedKernel, refusal
from .kernel_file import Abi, IncompatibleModule, entries_of, parse_abi

MAGIC = b"TSPIRVB\0"
VERSION = 1
_HEAD = struct.Struct("<8sII")


@dataclass(frozen=True)
class Variant:
    """A kernel for one target. ``name``: of the kernel in the bundle. ``code``: SPIR-V, or a
    processor's object."""

    name: str
    abi: Abi
    code: bytes

    @property
    def sha256(self) -> str:
        """The hash of its code, as the ABI says."""
        return self.abi.sha256 if self.abi.machine_code is None else self.abi.machine_code.sha256


def pack(variants: Iterable[Variant]) -> bytes:
    """The bytes of a bundle. Variants are tried in the order of ``sort_key``. Raises ValueError if the variants of
    one kernel are not passed the same arguments."""
    ordered = sorted(variants, key=sort_key)
    passed: dict[str, list[tuple[str, str]]] = {}
    entries, modules, offset = [], [], 0
    for variant in ordered:
        own = [(entry.name, entry.type) for entry in variant.abi.parameters if entry.type is not None]
        if passed.setdefault(variant.name, own) != own:
            raise ValueError(
                f"the variants of kernel '{variant.name}' take other arguments: {_shown(passed[variant.name])} and "
                f"{_shown(own)}; give one another name"
            )
        size = len(variant.code)
        entries.append({"name": variant.name, "offset": offset, "bytes": size, "abi": entries_of(variant.abi)})
        modules.append(variant.code)
        offset += size
    text = json.dumps({"variants": entries}, ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)  # modules are 32-bit words
    return b"".join((_HEAD.pack(MAGIC, VERSION, len(text)), text, *modules))


def sort_key(variant: Variant) -> tuple[str, bool, bool, int, int, str]:
    """What is made for one driver goes before what suits all, what uses matrix units before what does not, and code for
    more instructions before code for fewer."""
    general = f";driver={ANY_DRIVER};" in variant.abi.target
    code = variant.abi.machine_code
    level, feature = level_of(code.processor) if code is not None else ("", "")
    order = (list(LEVELS).index(level), [*FEATURES, ""].index(feature)) if level else (-1, 0)
    return variant.name, general, "matrices" not in variant.abi.required_features, *order, variant.abi.target


def _shown(passed: list[tuple[str, str]]) -> str:
    return f"({', '.join(f'{name}: {type_}' for name, type_ in passed)})"


def unpack(data: bytes, path: Path) -> list[Variant]:
    """The variants of a bundle that was read from ``path``, in the order in which they are tried. Raises
    IncompatibleModule where it is damaged or of another version."""
    if len(data) < _HEAD.size or not data.startswith(MAGIC):
        raise IncompatibleModule(f"{path} is no bundle of kernels; `triton-spirv compile --bundle` writes one")
    _, version, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise IncompatibleModule(f"{path} has version {version}, this runtime reads bundles of version {VERSION}")
    start = _HEAD.size + length
    try:
        entries = json.loads(data[_HEAD.size : start])["variants"]
        places = [(entry["name"], entry["offset"], entry["bytes"], entry["abi"]) for entry in entries]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise IncompatibleModule(f"{path} is damaged: {error!r}") from None
    found = []
    for name, offset, size, abi in places:
        if not all(type(number) is int and number >= 0 for number in (offset, size)) or type(name) is not str:
            raise IncompatibleModule(f"{path} is damaged: its entry {name!r}")
        variant = Variant(name, parse_abi(abi, path), data[start + offset : start + offset + size])
        if hashlib.sha256(variant.code).hexdigest() != variant.sha256:
            raise IncompatibleModule(f"{path} is damaged: the module of kernel '{name}' is not the one it describes")
        found.append(variant)
    return found


class Bundle:
    """The kernels of a bundle on a device: ``bundle["add"]`` is loaded at its first use.

    ``variants``: all that there are, in the order in which they are tried.
    """

    def __init__(self, variants: list[Variant], path: Path, context: Context | None = None) -> None:
        self.variants = variants
        self._path = path
        self._context = context
        self._loaded: dict[str, LoadedKernel] = {}

    @property
    def names(self) -> list[str]:
        """The kernels' names."""
        return list(dict.fromkeys(variant.name for variant in self.variants))

    def __getitem__(self, name: str) -> LoadedKernel:
        """The variant of a kernel that fits the device. Raises KeyError, and IncompatibleModule if none does."""
        if name not in self._loaded:
            context = self._context or current()
            variant = self._pick(name, context)
            machine = variant.abi.machine_code is not None
            self._loaded[name] = LoadedKernel(variant.code, variant.abi, context, machine)
        return self._loaded[name]

    def _pick(self, name: str, context: Context) -> Variant:
        refused = []
        for variant in self.variants:
            if variant.name != name:
                continue
            if not (why := refusal(variant.abi, context)):
                return variant
            refused.append(f"for {variant.abi.target.split(';')[1].removeprefix('driver=')}: {why}")
        if not refused:
            raise KeyError(f"{self._path} has no kernel '{name}'; it has {', '.join(self.names)}")
        raise IncompatibleModule(
            f"no variant of kernel '{name}' in {self._path} runs on {context.device.name}: {'; '.join(refused)}"
        )


def load_bundle(path: str | os.PathLike[str], context: Context | None = None) -> Bundle:
    """The bundle in a file that `triton-spirv compile` wrote with `--bundle`.

    ``context``: of the device that its kernels are to run on; None: the current one at the first use of each. Raises
    FileNotFoundError, and IncompatibleModule if the file is damaged.
    """
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no bundle {place}; `triton-spirv compile --bundle` writes one")
    return Bundle(unpack(place.read_bytes(), place), place, context)
