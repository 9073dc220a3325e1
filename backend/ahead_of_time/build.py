"""From a kernel, a signature and a target to a module and its ABI."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..abi.argument_properties import divisible_by
from ..abi.block import REPORTS, lay_out
from ..abi.scalars import POINTEES, SCALARS, argument_type
from ..capabilities import Capabilities
from ..options import CHOICES
from ..runtime.compiled.kernel_file import LAUNCH_VERSION, Abi, Argument, ObjectFacts, Parameter
from ..runtime.modules.module_info import read_module
from ..target import target_of
from . import signature
from .errors import RequestError
from .features import required_features

#: What the JSON tells of how the kernel was compiled.
OPTIONS = (*(name for name, entry in CHOICES.items() if entry.recorded), "triton_version")
_ELEMENT = f"(?:{'|'.join((*SCALARS, *POINTEES))})"
_POINTER = re.compile(rf"\*k?{_ELEMENT}")
_DESCRIPTOR = re.compile(rf"tensordesc<{_ELEMENT}\[\s*\d+\s*(?:,\s*\d+\s*)*\]>")


def is_type(text: str) -> bool:
    """Whether a kernel can be passed what ``text`` names."""
    import triton.language as tl

    if text in SCALARS or _POINTER.fullmatch(text):
        return True
    if not _DESCRIPTOR.fullmatch(text):
        return False
    try:
        tl.str_to_ty(text, None)  # refuses blocks of other sizes than powers of two
    except ValueError:
        return False
    return True


def _dtypes() -> dict[str, Any]:
    """Triton's types by their names in triton.language."""
    import triton.language as tl

    return {name: value for name, value in vars(tl).items() if type(value) is tl.dtype and name != "void"}


@dataclass(frozen=True)
class Compiled:
    """What a kernel became for a target. ``machine_code``: the ELF object of a kernel for a processor; None if there is
    none, or if ``lacks_code`` says why it could not be made."""

    spirv: bytes
    abi: Abi
    machine_code: bytes | None = None
    lacks_code: str = ""


def compile_kernel(kernel: Any, text: str, capabilities: Capabilities, options: Mapping[str, Any]) -> Compiled:
    """What a JITFunction with a signature (see signature.py) becomes for a target.

    ``options``: of SPIRVOptions. Raises RequestError on a signature that does not fit or a kernel that does not fit the
    target, and what the compiler raises.
    """
    compiled, entries = compiled_kernel(kernel, text, capabilities, options)
    spirv = compiled.asm["spv"]
    abi = describe(
        spirv,
        compiled.metadata,
        capabilities,
        [
            Parameter(parameter.name, None, _plain(entry.value))
            if entry.type == signature.CONSTEXPR
            else Parameter(parameter.name, entry.type, divisible_by=entry.divisible_by)
            for parameter, entry in zip(kernel.params, entries, strict=True)
        ],
    )
    return _with_machine_code(spirv, abi, capabilities) if capabilities.processor else Compiled(spirv, abi)


def _with_machine_code(spirv: bytes, abi: Abi, capabilities: Capabilities) -> Compiled:
    """Compiles a kernel for a processor. The compiler has made its code, if it is of this machine's architecture.
    A kernel that is watched for races between programs stays SPIR-V: this project's CPU device alone can look."""
    from ..cpu.machine import NoHostTarget
    from ..cpu.objects import machine_code

    if read_module(spirv).watch is not None:
        return Compiled(spirv, abi)
    try:
        made = machine_code(spirv, capabilities.subgroup_size, capabilities.processor)
    except NoHostTarget as error:
        return Compiled(spirv, abi, lacks_code=str(error))
    digest = hashlib.sha256(made.code).hexdigest()
    code = ObjectFacts(LAUNCH_VERSION, capabilities.processor, made.scratch, digest)
    return Compiled(spirv, replace(abi, machine_code=code), made.code)


def compiled_kernel(
    kernel: Any, text: str, capabilities: Capabilities, options: Mapping[str, Any]
) -> tuple[Any, list[signature.Entry]]:
    """Triton's CompiledKernel, with the text of every stage, and the entries of the signature. Raises as
    compile_kernel."""
    import triton
    from triton.compiler import ASTSource
    from triton.runtime.errors import OutOfResources

    parameters = [
        signature.SourceParameter(parameter.name, parameter.is_constexpr, parameter.has_default, parameter.default)
        for parameter in kernel.params
    ]
    entries = signature.read_signature(text, parameters, is_type, tuple(SCALARS), _dtypes())
    constants = {(index,): entry.value for index, entry in enumerate(entries) if entry.type == signature.CONSTEXPR}
    attributes = {
        (index,): [divisible_by(entry.divisible_by)] for index, entry in enumerate(entries) if entry.divisible_by > 1
    }
    types = {parameter.name: entry.type for parameter, entry in zip(parameters, entries, strict=True)}
    source = ASTSource(kernel, types, constants, attributes)
    try:
        return triton.compile(source, target=target_of(capabilities), options=dict(options)), entries
    except OutOfResources as error:
        if error.name != "shared memory":
            raise
        raise RequestError(
            f"kernel '{kernel.__name__}' takes {error.required} bytes of shared memory, the target has "
            f"{capabilities.shared_bytes}; use smaller blocks or fewer stages"
        ) from None


def _plain(value: Any) -> Any:
    """A constant as the JSON holds it: what JSON has no word for, such as infinity or a type, goes as text."""
    value = getattr(value, "value", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def describe(spirv: bytes, metadata: Any, capabilities: Capabilities, parameters: list[Parameter]) -> Abi:
    """The ABI of a module, from the compiler's metadata. Raises RequestError for one that needs an allocator."""
    if metadata.global_scratch_size:
        raise RequestError(
            f"kernel '{metadata.name}' needs global scratch memory, which comes from the allocator of "
            "triton.set_allocator: it cannot be compiled ahead of time"
        )
    arguments, block = _arguments(metadata, parameters)
    if metadata.written_arguments is not None:
        arguments = [
            replace(entry, written=index in metadata.written_arguments) for index, entry in enumerate(arguments)
        ]
    if block != metadata.argument_bytes:
        raise ValueError(
            f"kernel '{metadata.name}': its arguments take {block} bytes, the compiler says {metadata.argument_bytes}"
        )
    return Abi(
        kernel=metadata.name,
        sha256=hashlib.sha256(spirv).hexdigest(),
        target=capabilities.arch(),
        required_features=tuple(sorted(required_features(spirv))),
        subgroup_size=capabilities.subgroup_size,
        workgroup_size=(metadata.workgroup_size, 1, 1),
        shared_bytes=metadata.shared,
        parameters=tuple(parameters),
        arguments=tuple(arguments),
        block_bytes=block,
        indirect_arguments=metadata.indirect_arguments,
        reports=tuple(metadata.reports),
        options={name: getattr(metadata, name) for name in OPTIONS},
    )


def _arguments(metadata: Any, parameters: list[Parameter]) -> tuple[list[Argument], int]:
    """The argument block of a kernel, as block_of gives it."""
    from ..launching.signatures import flat_signature

    leaves: list[tuple[str, str, int | None, str | None]] = []
    for index, parameter in enumerate(parameters):
        if parameter.type is None:
            continue
        parts = flat_signature([parameter.name], [parameter.type], None)
        names = _descriptor_names(parameter.name, len(parts)) if len(parts) > 1 else [parameter.name]
        leaves += [(name, type_, index, None) for name, (_, _, type_) in zip(names, parts, strict=True)]
    if metadata.reports:
        leaves.append((REPORTS.name, REPORTS.type, None, REPORTS.role))
    return block_of(leaves)


def block_of(leaves: Sequence[tuple[str, str, int | None, str | None]]) -> tuple[list[Argument], int]:
    """Where the entries (name, type, parameter, role) of an argument block lie, and its bytes."""
    sizes = [argument_type(type_).bytes for _, type_, _, _ in leaves]
    block = lay_out(sizes)
    return [
        Argument(name, type_, offset, size, owner, role)
        for (name, type_, owner, role), offset, size in zip(leaves, block.offsets, sizes, strict=True)
    ], block.bytes


def _descriptor_names(name: str, parts: int) -> list[str]:
    """What a tensor descriptor is passed as: base, shape, strides, two flags, shape and strides again."""
    rank = (parts - 3) // 4
    layout = [f"{name}.{what}[{axis}]" for what in ("shape", "strides") for axis in range(rank)]
    return [f"{name}.base", *layout, f"{name}.padding_nan", f"{name}.round_f32_to_tf32", *layout]
