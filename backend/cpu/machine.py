"""LLVM IR to machine code, by the LLVM that is inside libtriton.

On Linux libtriton registers the targets of GPUs alone, and exports what registers the host's. What LLVM would end the
process for is found before: the text is parsed, and verified, by entry points that report. On Windows libtriton exports
nothing of LLVM, and registers all targets that it was built with.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from ..system import WINDOWS, machine
from .codegen_level import LEVEL
from .errors import InvalidCode
from .host import Host

_PARTS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")
_TARGETS = {"x86_64": "X86", "aarch64": "AArch64"}


class NoHostTarget(RuntimeError):
    """This libtriton makes no machine code for the host."""


@functools.cache
def _library() -> ctypes.CDLL:
    import triton._C.libtriton as libtriton

    return ctypes.CDLL(str(libtriton.__file__))


@functools.cache
def initialize() -> None:
    """Registers the host's target, once. Raises NoHostTarget."""
    from triton._C.libtriton import llvm

    here = machine()
    target = _TARGETS.get(here)
    try:
        if target is None:
            raise AttributeError(here)
        for part in () if WINDOWS else _PARTS:
            getattr(_library(), f"LLVMInitialize{target}{part}")()
    except AttributeError as error:
        raise NoHostTarget(f"this libtriton cannot make machine code for {here}: it lacks {error}") from None
    llvm.init_targets()


@functools.cache
def _has_target(triple: str) -> bool:
    """Whether libtriton was built with a target, which initialize() has registered on Linux. To have it make code for
    one that it lacks would end the process."""
    if not WINDOWS:
        return True
    from triton._C.libtriton import ir, llvm

    context = ir.context()
    ir.load_dialects(context)
    module = llvm.to_module(ir.builder(context).create_module(), llvm.context())
    try:
        llvm.attach_datalayout(module, triple, "", "")
    except RuntimeError:
        return False
    return True


class _Reference(ctypes.Structure):
    """llvm::StringRef."""

    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t))


def assemble(text: str, host: Host, quick: bool = False) -> bytes:
    """The ELF object of a module; ``quick``: of one whose code is not worth optimising. Raises InvalidCode for one that
    LLVM does not take."""
    return bytes(_translated(text, host, True, quick))


def assembly(text: str, host: Host, quick: bool = False) -> str:
    """The module's assembly, for people. Raises InvalidCode."""
    return str(_translated(text, host, False, quick))


def _translated(text: str, host: Host, is_object: bool, quick: bool) -> Any:
    if host.arch != machine():
        return _by_llvmlite(text, host, is_object, quick)
    from triton._C.libtriton import llvm

    initialize()
    if not _has_target(host.triple):
        return _by_llvmlite(text, host, is_object, quick)
    _checked(text)
    with LEVEL.quick(quick):
        # llvm_ir, triple, proc, features, flags, enable_fp_fusion, is_object, canonicalize_gep
        return llvm.translate_to_asm(text, host.triple, host.name, "", [], False, is_object, False)


def _by_llvmlite(text: str, host: Host, is_object: bool, quick: bool) -> Any:
    """Makes machine code for a processor whose target libtriton does not have, such as one of another architecture."""
    try:
        import llvmlite.binding as binding
    except ImportError:
        raise NoHostTarget(
            f"machine code for {host.arch} is not made on {machine()} by the LLVM of libtriton: "
            "pip install llvmlite, whose LLVM makes it"
        ) from None
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InvalidCode(
            f"the code that was made for a kernel is not valid, a fault of this compiler: {error}"
        ) from None
    target = binding.Target.from_triple(host.triple)
    generator = target.create_target_machine(cpu=host.name, opt=0 if quick else 3, reloc="pic", codemodel="default")
    return generator.emit_object(module) if is_object else generator.emit_assembly(module)


class _Checker:
    """LLVM's parser and verifier, which report what they find instead of ending the process (llvm-c/IRReader.h)."""

    def __init__(self, library: ctypes.CDLL) -> None:
        pointer = ctypes.c_void_p
        self._construct = _function(library, "_ZN4llvm11LLVMContextC1Ev", None, pointer)
        self._destruct = _function(library, "_ZN4llvm11LLVMContextD1Ev", None, pointer)
        # A unique_ptr is returned at a place that the caller passes.
        self._buffer = _function(
            library,
            "_ZN4llvm12MemoryBuffer12getMemBufferENS_9StringRefES1_b",
            None,
            pointer,
            _Reference,
            _Reference,
            ctypes.c_bool,
        )
        self._parse = _function(library, "LLVMParseIRInContext", ctypes.c_int, pointer, pointer, pointer, pointer)
        self._verify = _function(
            library,
            "_ZN4llvm12verifyModuleERKNS_6ModuleEPNS_11raw_ostreamEPb",
            ctypes.c_bool,
            pointer,
            pointer,
            pointer,
        )
        self._errors = _function(library, "_ZN4llvm4errsEv", pointer)
        self._discard = _function(library, "_ZN4llvm6ModuleD1Ev", None, pointer)
        self._free = _function(library, "_ZdlPv", None, pointer) if hasattr(library, "_ZdlPv") else None

    def fault(self, text: bytes) -> str | None:
        """What is wrong with a module; None for one that LLVM takes."""
        context = ctypes.create_string_buffer(64)  # it holds one pointer
        self._construct(context)
        try:
            buffer, module, message = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_char_p()
            reference = _Reference(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text))
            name = _Reference(ctypes.cast(ctypes.c_char_p(b"kernel"), ctypes.c_void_p), 6)
            self._buffer(ctypes.byref(buffer), reference, name, True)
            if self._parse(context, buffer, ctypes.byref(module), ctypes.byref(message)):
                return (message.value or b"it cannot be parsed").decode("utf-8", "replace").strip()
            broken = self._verify(module, self._errors(), None)
            self._discard(module)
            if self._free is not None:
                self._free(module)
            return "LLVM's verifier rejects it, for what is printed above" if broken else None
        finally:
            self._destruct(context)


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = library[name]
    function.restype, function.argtypes = result, list(arguments)
    return function


@functools.cache
def _checker() -> _Checker | None:
    """None for a libtriton that does not export them: then LLVM itself ends the process for a wrong module."""
    try:
        return _Checker(_library())
    except AttributeError:
        return None


def _checked(text: str) -> None:
    """Raises InvalidCode for a module that LLVM does not take."""
    checker = _checker()
    fault = checker.fault(text.encode()) if checker is not None else None
    if fault is not None:
        raise InvalidCode(f"the code that was made for a kernel is not valid, a fault of this compiler: {fault}")
