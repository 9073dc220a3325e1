"""Mistakes of stock Triton that the plugin mends, or refuses.

Its wheel holds functions of upstream as the patches leave them, in ``stock/`` (written by
``tools/packaging/plugin_patches.py``; the patched wheel has no such folder).

They take the place of upstream's own when a module of Triton has been imported, where all lines that a patch replaces
have the digest that it was made for. A patch that does not fit is left out: one line says so when a kernel is
first compiled here, and names those without which values may be wrong. ``_GUARDS`` refuses what can be told.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import linecache
import logging
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

_log = logging.getLogger(__name__)
#: Patches of wrong values that no guard refuses: nothing tells where a loop is made that it is one of those.
_UNGUARDED = frozenset({"loop-carries", "unsigned-loops"})
_FOLDER = Path(__file__).with_name("stock")
#: Modules that were looked at.
_done: set[str] = set()


def wait(after_import: Callable[[str, Callable[[ModuleType], None]], None]) -> None:
    """Called by the plugin's package, which ``import triton`` imports half-way, with autoload's function."""
    for module in _modules():
        after_import(f"triton.{module}", functools.partial(_apply_to, module))


@functools.cache
def ready() -> None:
    """Called before a kernel is compiled: the patches are in place, and those that are left out were told of."""
    if not _FOLDER.is_dir():
        return
    for module in _modules():
        importlib.import_module(f"triton.{module}")
        apply(module)
    if _unfit():
        _log.warning(
            "this is not stock Triton %s, so fixes of it are left out: %s.%s docs/windows.md has what each mends",
            _table().VERSION,
            ", ".join(sorted(_unfit())),
            "".join(f" Values may be wrong without {name}." for name in sorted(_unfit() & _UNGUARDED)),
        )


def _apply_to(module: str, _: ModuleType) -> None:
    apply(module)


def apply(module: str) -> None:
    """Put the functions of each patch that fits into a module, and the guards in place of others. Once in a process."""
    if module in _done:
        return
    _done.add(module)
    table = _table()
    rows = [row for row in _rows() if row[0] == module]
    for name in table.MODULES:
        _add_module(name)
    if wanted := {row[1] for row in rows if row[2] not in _unfit()}:
        _replace(sys.modules[f"triton.{module}"], _FOLDER / f"{module.replace('.', '/')}.py", wanted)
    for patch in _unfit():
        if guard := _GUARDS.get((patch, module)):
            guard(table.VERSION)


def _rows() -> list[tuple[str, str, str, int, str | None]]:
    rows: list[tuple[str, str, str, int, str | None]] = _table().ROWS
    return rows


def _modules() -> list[str]:
    return list(dict.fromkeys(row[0] for row in _rows()))


def _table() -> Any:
    return importlib.import_module(f"{__package__}.stock")


def _find(module: str, name: str) -> Any:
    """What has that qualified name, None if there is nothing."""
    found: Any = importlib.import_module(f"triton.{module}")
    for part in name.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    return found


@functools.cache
def _unfit() -> frozenset[str]:
    """Patches that this Triton's files have other source for. What a patch adds fits if the rest does."""
    folder = Path(sys.modules["triton"].__path__[0])
    return frozenset(
        patch
        for module, name, patch, count, digest in _rows()
        if digest is not None and not _has(folder / f"{module.replace('.', '/')}.py", name, count, digest)
    )


def _has(file: Path, name: str, count: int, digest: str) -> bool:
    """Whether so many lines with that digest are a function of a file, decorators included."""
    lines, start = linecache.getlines(str(file)), f"def {name.rpartition('.')[2]}("
    found = (at - back for at, line in enumerate(lines) if line.lstrip().startswith(start) for back in range(4))
    return any(
        hashlib.sha256("".join(lines[at : at + count]).encode()).hexdigest() == digest for at in found if at >= 0
    )


def _add_module(name: str) -> None:
    """Import a module of the overlay under the name that it has in a patched Triton."""
    full = f"triton.{name}"
    if full in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(full, _FOLDER / f"{name.replace('.', '/')}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[full] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _replace(module: ModuleType, file: Path, wanted: set[str]) -> None:
    """Run ``file`` beside ``module``, and move the functions and fields that are ``wanted``."""
    code = compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True)
    globals_, made = vars(module), _Names(vars(module))
    exec(code, globals_, made)  # functions look names up in the module itself
    for name, value in made.items():
        if isinstance(value, type) and value.__module__ == module.__name__ and name in globals_:
            for field, member in vars(value).items():
                if f"{name}.{field}" in wanted:
                    setattr(globals_[name], field, member)
        elif name in wanted:
            # Other modules hold the function itself.
            own = globals_[name]
            own.__code__, own.__defaults__, own.__kwdefaults__ = (
                value.__code__,
                value.__defaults__,
                value.__kwdefaults__,
            )


class _Names(dict[str, Any]):
    """The names that a file makes. What it imports belongs to the module, too, where its functions look."""

    def __init__(self, module: dict[str, Any]) -> None:
        super().__init__()
        self._module = module

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._module.setdefault(name, value)


# -- what is refused where a patch does not fit --------------------------------------------------------------------


def _around(module: str, name: str, guard: Callable[[Any], Any]) -> None:
    """Put a guard around a function of upstream. Raises ImportError where it is gone: then nothing is known."""
    function = _find(module, name)
    if function is None:
        raise ImportError(f"triton-spirv knows no Triton without {module}.{name}: install the version that it requires")
    owner = _find(module, name.rpartition(".")[0]) if "." in name else importlib.import_module(f"triton.{module}")
    setattr(owner, name.rpartition(".")[2], functools.wraps(function)(guard(function)))


def _refuse_equal_constants(version: str) -> None:
    def keys(original: Any) -> Any:
        def compute_cache_key(known: dict[Any, str], specialization: Any, options: Any) -> str:
            # A dictionary finds 0.0 by -0.0, and keeps the key that it has: the first launch's text is beside it.
            same = ("triton-spirv", tuple(specialization), str(options))
            text = str(specialization)
            if known.setdefault(same, text) != text:
                raise ValueError(
                    f"this Triton takes constants that compare equal for one, and a launch before had others: {text}, "
                    f"then {known[same]}. Use another kernel for them, Triton {version}, or the patched wheel"
                )
            return str(original(known, specialization, options))

        return compute_cache_key

    _around("runtime.jit", "compute_cache_key", keys)


def _tell_constants_apart(version: str) -> None:
    def digests(original: Any) -> Any:
        def hash(source: Any) -> str:
            # Nothing tells what a digest of upstream's was made of, so it is made finer.
            constants = repr([value for value in source.constants.values() if not hasattr(value, "cache_key")])
            return hashlib.sha256(f"{original(source)}-{constants}".encode()).hexdigest()

        return hash

    _around("compiler.compiler", "ASTSource.hash", digests)


def _as_bfloat16(value: float) -> int:
    """The bits of the nearest bfloat16, ties to even; an infinity where float32 ends."""
    try:
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0x7F80
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _refuse_bf16_constants(version: str) -> None:
    def constants(original: Any) -> Any:
        def scalar_constant(semantic: Any, value: Any, dtype: Any) -> Any:
            if dtype is not None and dtype.is_bf16() and _as_bfloat16(value) != _as_bfloat16(float(f"{value:.6f}")):
                raise ValueError(
                    f"this Triton keeps six decimal places of {value} in bfloat16, which makes it {value:.6f}: write "
                    f"tl.full((), {value}, tl.float32).to(tl.bfloat16), or use Triton {version} or the patched wheel"
                )
            return original(semantic, value, dtype)

        return scalar_constant

    _around("language.semantic", "TritonSemantic.scalar_constant", constants)


def _refuse_damaged_files(version: str) -> None:
    def loading(original: Any) -> Any:
        def __init__(kernel: Any, src: Any, metadata_group: dict[str, str], hash: str) -> None:
            original(kernel, src, metadata_group, hash)
            for extension, digest in getattr(kernel.metadata, "sha256", {}).items():
                found = kernel.asm[extension]
                if hashlib.sha256(found if isinstance(found, bytes) else found.encode()).hexdigest() != digest:
                    folder = Path(next(iter(metadata_group.values()), "Triton's cache/.")).parent
                    raise RuntimeError(f"the .{extension} of kernel '{kernel.name}' is damaged: remove {folder}")

        return __init__

    _around("compiler.compiler", "CompiledKernel.__init__", loading)


#: (patch, module) → what refuses the kernels that it would change. The others are _UNGUARDED, or mend
#: failures, which stay failures.
_GUARDS: dict[tuple[str, str], Callable[[str], None]] = {
    ("equal-constants", "runtime.jit"): _refuse_equal_constants,
    ("equal-constants", "compiler.compiler"): _tell_constants_apart,
    ("bf16-constants", "language.semantic"): _refuse_bf16_constants,
    ("damaged-metadata", "compiler.compiler"): _refuse_damaged_files,
}
