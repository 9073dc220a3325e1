"""The ABI of a kernel that was compiled ahead of time: the JSON beside its module (docs/abi.md)."""
from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

FORMAT = "triton-spirv-kernel"
VERSION = 1

#: The role of the argument that the launcher passes of its own accord, after the kernel's own.
REPORTS = "reports"


class IncompatibleModule(ValueError):
    """A compiled module that is damaged, does not belong to its JSON, or does not suit the device."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel's source. ``type``: its Triton type, None where it was compiled in with ``value``.

    ``divisible_by``: what its value, or the address passed for it, is a multiple of.
    """

    name: str
    type: str | None = None
    value: Any = None
    divisible_by: int = 1


@dataclass(frozen=True)
class Argument:
    """An entry of the argument block, at ``offset`` bytes. ``parameter`` indexes Abi.parameters; it is None where
    ``role`` (REPORTS) says that the launcher passes it. ``written``: whether the kernel may write through a pointer."""

    name: str
    type: str
    offset: int
    bytes: int
    parameter: int | None = None
    role: str | None = None
    written: bool = True


@dataclass(frozen=True)
class Abi:
    """Everything that launching a module needs. docs/abi.md describes each entry."""

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

    def to_json(self) -> str:
        """The text of the file."""
        entries = {"format": FORMAT, "version": VERSION, **asdict(self)}
        for parameter in entries["parameters"]:
            if parameter["type"] is not None:
                del parameter["value"]
        return json.dumps(entries, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def json_path(module: Path) -> Path:
    """Where the ABI of a module lies."""
    return module.with_suffix(".json")


def read_abi(module: Path, spirv: bytes) -> Abi:
    """The ABI of the module ``spirv`` that was read from ``module``.

    Raises FileNotFoundError where the JSON is missing, IncompatibleModule where it is damaged, of another version, or
    of another module.
    """
    path = json_path(module)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: it describes the arguments of {module}; `triton-spirv compile` "
                                "writes both")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise IncompatibleModule(f"{path} is damaged: {error}") from None
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise IncompatibleModule(f"{path} does not describe a kernel: its format is not '{FORMAT}'")
    version = data.pop("version", None)
    if version != VERSION:
        raise IncompatibleModule(f"{path} has version {version} of the format, this runtime reads version {VERSION}: "
                                 "compile the kernel with the same version of triton-spirv")
    wrong = sorted(data.keys() ^ {entry.name for entry in fields(Abi)})
    if wrong:
        raise IncompatibleModule(f"{path} is damaged: see its entries {', '.join(wrong)}")
    try:
        data["parameters"] = tuple(Parameter(**entry) for entry in data["parameters"])
        data["arguments"] = tuple(Argument(**entry) for entry in data["arguments"])
        for name in ("required_features", "workgroup_size", "reports"):
            data[name] = tuple(data[name])
    except TypeError as error:
        raise IncompatibleModule(f"{path} is damaged: {error}") from None
    abi = Abi(**data)
    found = hashlib.sha256(spirv).hexdigest()
    if abi.sha256 != found:
        raise IncompatibleModule(f"{path} describes another module: {module} has sha256 {found[:16]}…, not "
                                 f"{abi.sha256[:16]}…; compile the kernel again")
    return abi
