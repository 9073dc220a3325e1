"""Machine code of kernels: made once for a module and a processor, then kept in Triton's cache.

A file of the cache holds a digest of all that follows and of its key, then in 8 bytes how much scratch memory a thread
needs for the kernel, and then the ELF object. A file whose digest does not fit is not executed: the code is made again.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..system import machine
from .codegen_level import LEVEL
from .emulation import Emulation, key_of
from .host import host_of

_SUFFIX = "kernel.o"
_HEADER = struct.Struct("<Q")
_DIGEST = hashlib.sha256

_log = logging.getLogger(__name__)

#: Set while kernels are compiled that may never run: they get code, without lines, when they are loaded.
WHEN_LOADED: ContextVar[bool] = ContextVar("machine code is made of a kernel that is loaded", default=False)


@dataclass(frozen=True, slots=True)
class MachineCode:
    """``code``: an ELF object with one function, the kernel's. ``scratch``: bytes of memory that each thread has for
    it."""

    code: bytes
    scratch: int


@cache
def _sources() -> str:
    """A digest of what decides the code: this package, and what is linked to it."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(
        (
            *root.glob("*.py"),
            *(root.parent / "spirv").glob("*.py"),
            root.parent / "spirv" / "grammar.txt",
            root.parent / "abi" / "tile_products.py",
            root.parent / "abi" / "watch_note.py",
            root.parent / "optional.py",
        )
    ):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def machine_code(
    spirv: bytes, subgroup: int, processor: str, with_lines: bytes | None = None, emulation: Emulation | None = None
) -> MachineCode:
    """The code of a module whose subgroups have so many lanes, for Capabilities.processor. ``with_lines``: the
    module with the lines of its source, which the code gets if it is made now. Raises Untranslatable, InvalidCode."""
    from triton.runtime.cache import get_cache_manager

    parts = (str(subgroup), processor, _sources(), key_of(emulation), LEVEL.asked)
    key = hashlib.sha256(spirv + "".join(f"\0{part}" for part in parts).encode()).hexdigest()
    manager = get_cache_manager(key)
    found = manager.get_file(_SUFFIX)
    if found is not None:
        try:
            return _unpack(Path(found).read_bytes(), key)
        except (OSError, ValueError) as error:
            _log.debug("the machine code %s is made again: %s", found, error)
    made = make(with_lines or spirv, subgroup, processor, emulation)
    manager.put(_pack(made, key), _SUFFIX, binary=True)
    return made


def _digest(key: str, rest: bytes | memoryview) -> bytes:
    digest = _DIGEST(key.encode())
    digest.update(rest)
    return digest.digest()


def _pack(made: MachineCode, key: str) -> bytes:
    """The bytes of a file of the cache."""
    rest = _HEADER.pack(made.scratch) + made.code
    return _digest(key, rest) + rest


def _unpack(file: bytes, key: str) -> MachineCode:
    """What a file of the cache holds. Raises ValueError if it is damaged, or the file of another key."""
    start = _DIGEST().digest_size
    if file[:start] != _digest(key, memoryview(file)[start:]):
        raise ValueError("its digest does not fit")
    return MachineCode(file[start + _HEADER.size :], *_HEADER.unpack_from(file, start))


def made_here(processor: str) -> bool:
    """Whether the LLVM of libtriton makes code for the processor: for those of this machine's architecture."""
    return host_of(processor).arch == machine()


def make(spirv: bytes, subgroup: int, processor: str, emulation: Emulation | None = None) -> MachineCode:
    """Makes the object without the cache."""
    from .machine import assemble
    from .module_translation import translate

    host = host_of(processor)
    kernel = translate(spirv, host, subgroup, emulation)
    return MachineCode(assemble(kernel.text, host, kernel.quick), kernel.scratch)
