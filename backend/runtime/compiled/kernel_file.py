"""The ABI of a kernel that was compiled ahead of time: the JSON next to its module (docs/internals/abi.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ...abi.block import REPORTS
from ...abi.scalars import SCALARS, argument_type
from ...capabilities import Capabilities

FORMAT = "triton-spirv-kernel"
#: It rises with every entry of the JSON that is added, renamed, left out or means something else: a runtime that knows
#: other entries would call the file damaged, or misread it.
VERSION = 2

#: Of how machine code is called: include/triton_spirv/processor.hpp.
LAUNCH_VERSION = 2

#: What a value or address may be said to be a multiple of.
DIVISORS = (1, 16)


class IncompatibleModule(ValueError):
    """A compiled module that is damaged, does not belong to its JSON, or does not suit the device."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel's source. ``type``: its Triton type, None if it was compiled in with ``value``.

    ``divisible_by``: what its value, or the address passed for it, is a multiple of.
    """

    name: str
    type: str | None = None
    value: Any = None
    divisible_by: int = 1


@dataclass(frozen=True)
class Argument:
    """An entry of the argument block, at ``offset`` bytes. ``parameter`` indexes Abi.parameters; it is None if
    ``role`` says that the launcher adds it (abi/block.py). ``written``: whether the kernel may write through it."""

    name: str
    type: str
    offset: int
    bytes: int
    parameter: int | None = None
    role: str | None = None
    written: bool = True


@dataclass(frozen=True)
class ObjectFacts:
    """The ELF object of a kernel that was compiled for a processor. ``launch``: the version of how it is called;
    ``processor``: Capabilities.processor; ``scratch_bytes``: memory that each thread has for it; ``sha256``: of the
    object."""

    launch: int
    processor: str
    scratch_bytes: int
    sha256: str


@dataclass(frozen=True)
class Abi:
    """Everything that launching a module needs. docs/internals/abi.md describes each entry. ``machine_code``: None of a
    kernel for a Vulkan device."""

    kernel: str
    sha256: str
    target: str
    required_features: tuple[str, ...]
    subgroup_size: int
    workgroup_size: tuple[int, int, int]
    shared_bytes: int
    parameters: tuple[Parameter, ...]
    arguments: tuple[Argument, ...]
    block_bytes: int
    indirect_arguments: bool
    reports: tuple[dict[str, Any], ...]
    options: dict[str, Any]
    machine_code: ObjectFacts | None = None

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(entries_of(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def entries_of(abi: Abi) -> dict[str, Any]:
    """An ABI as JSON holds it."""
    entries = {"format": FORMAT, "version": VERSION, **asdict(abi)}
    for parameter in entries["parameters"]:
        if parameter["type"] is not None:
            del parameter["value"]
    if abi.machine_code is None:
        del entries["machine_code"]
    return sealed(entries)


def sealed(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries with the hash of all others, as sorted JSON without spaces."""
    others = json.loads(json.dumps({name: value for name, value in entries.items() if name != "checksum"}))
    text = json.dumps(others, sort_keys=True, separators=(",", ":"))
    return {**others, "checksum": hashlib.sha256(text.encode()).hexdigest()}


#: What the names of ELF objects end in.
OBJECT_SUFFIX = ".o"


def json_path(module: Path) -> Path:
    """Where the ABI of a module lies."""
    return module.with_suffix(".json")


def object_path(module: Path) -> Path:
    """Where the machine code of a module lies."""
    return module.with_suffix(OBJECT_SUFFIX)


def read_abi(module: Path, spirv: bytes) -> Abi:
    """The ABI of the module ``spirv``, or of the object, that was read from ``module``.

    Raises FileNotFoundError if the JSON is missing, IncompatibleModule if it is damaged, of another version, or
    of another module.
    """
    path = json_path(module)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: it describes the arguments of {module}; `triton-spirv compile` writes both"
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # the latter of text that is nested deeply
        raise IncompatibleModule(f"{path} is damaged: {error}") from None
    abi = parse_abi(data, path)
    check_digest(abi, module, spirv)
    return abi


def check_digest(abi: Abi, module: Path, data: bytes) -> None:
    """Raises IncompatibleModule if the file of a module, or of an object, is not the one that the ABI describes."""
    wanted = abi.sha256
    if module.suffix == OBJECT_SUFFIX:
        if abi.machine_code is None:
            raise IncompatibleModule(f"{json_path(module)} describes a kernel without machine code, unlike {module}")
        wanted = abi.machine_code.sha256
    found = hashlib.sha256(data).hexdigest()
    if wanted != found:
        raise IncompatibleModule(
            f"{json_path(module)} describes another module: {module} has sha256 {found[:16]}…, not "
            f"{wanted[:16]}…; compile the kernel again"
        )


def parse_abi(data: Any, path: Path) -> Abi:
    """The ABI that a JSON document of ``path`` holds. Raises IncompatibleModule."""
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise IncompatibleModule(f"{path} does not describe a kernel: its format is not '{FORMAT}'")
    version = data.pop("version", None)
    if version != VERSION:
        raise IncompatibleModule(
            f"{path} has version {version} of the format, this runtime reads version {VERSION}: "
            "compile the kernel with the same version of triton-spirv"
        )
    whole = {"format": FORMAT, "version": version, **data}
    code, checksum = data.pop("machine_code", None), data.pop("checksum", None)
    wrong = sorted(data.keys() ^ ({entry.name for entry in fields(Abi)} - {"machine_code"}))
    if wrong:
        raise IncompatibleModule(f"{path} is damaged: see its entries {', '.join(wrong)}")
    try:
        abi: Abi = _read(Abi, data | {"machine_code": None}, "")
        if code is not None:
            abi = replace(abi, machine_code=_read(ObjectFacts, code, "machine_code"))
        _check(abi)
    except ValueError as error:
        raise IncompatibleModule(f"{path} is damaged: {error}") from None
    if sealed(whole)["checksum"] != checksum:
        raise IncompatibleModule(
            f"{path} is damaged, or was changed by hand: its checksum is not that of its other entries; "
            "compile the kernel again"
        )
    return abi


def _read(kind: Any, value: Any, place: str) -> Any:
    """An entry of the JSON as a ``kind``: a dataclass, a tuple, or what it is already. Raises ValueError."""
    inner = get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or value.keys() | {"value"} != hints.keys() | {"value"}:
            raise ValueError(f"{place} lacks one of the entries {', '.join(hints)}, or has an extra one")
        return kind(**{name: _read(hints[name], entry, f"{place}.{name}".lstrip(".")) for name, entry in value.items()})
    if get_origin(kind) is tuple:
        if isinstance(value, list) and (inner[-1] is ... or len(inner) == len(value)):
            return tuple(_read(inner[0], entry, f"{place}[{index}]") for index, entry in enumerate(value))
    elif kind is Any or type(value) in (inner if isinstance(kind, UnionType) else (get_origin(kind) or kind,)):
        return value
    raise ValueError(f"{place} is {value!r}")


def _check(abi: Abi) -> None:
    """Whether its entries fit each other. Raises ValueError."""
    Capabilities.parse(abi.target)
    names = [parameter.name for parameter in abi.parameters]
    if len(set(names)) < len(names):
        raise ValueError(f"two parameters have one name: {', '.join(names)}")
    passed: list[tuple[int | None, str | None]] = []
    for index, parameter in enumerate(abi.parameters):
        if parameter.divisible_by not in DIVISORS:
            raise ValueError(f"parameters[{index}].divisible_by is {parameter.divisible_by}")
        if parameter.type is not None:
            parts = [argument.type for argument in abi.arguments if argument.parameter == index]
            if parts != _parts(parameter.type):
                raise ValueError(
                    f"parameter '{parameter.name}' of type {parameter.type} is passed as ({', '.join(parts)})"
                )
            passed += [(index, None)] * len(parts)
    if [(argument.parameter, argument.role) for argument in abi.arguments] != [
        *passed,
        *[(None, REPORTS.role)] * bool(abi.reports),
    ]:
        raise ValueError("its arguments do not match its parameters, in their order")
    for argument in abi.arguments:
        if not argument.type.startswith("*") and argument.type not in SCALARS:
            raise ValueError(f"argument '{argument.name}' has the unknown type {argument.type!r}")
        if argument.bytes != argument_type(argument.type).bytes:
            raise ValueError(f"argument '{argument.name}' of type {argument.type} has {argument.bytes} bytes")


def _parts(type_: str) -> list[str]:
    """The types of what a parameter is passed as; a descriptor has four for each dimension, and three."""
    head, bracket, shape = type_.removeprefix("tensordesc<").partition("[")
    if not bracket:
        return [type_]
    rank = shape.count(",") + 1
    return [f"*{head}", *["i64"] * 2 * rank, "i1", "i1", *["i32"] * rank, *["i64"] * rank]
