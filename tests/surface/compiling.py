"""Compiling a kernel or a text step by step, and which operations each step has."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.target import target_of
from triton.compiler.compiler import ASTSource, IRSource

from tests.surface.operation_kernels import Case


@dataclass(frozen=True)
class Compiled:
    """``source``: the text that upstream's printer made of the front end's module; ``written``: its operations;
    ``passed``: the module's operations after upstream's passes; ``spirv``: the resulting module."""

    source: str
    written: list[str]
    passed: list[str]
    spirv: bytes


def target(profile: str = "lavapipe") -> GPUTarget:
    """A profile as a target."""
    capabilities = PROFILES[profile]
    return target_of(capabilities)


def operation_names(module: Any) -> list[str]:
    """The operations of an upstream module, in the order of its text."""
    names: list[str] = []
    module.walk(lambda operation: names.append(operation.get_name()))
    return names


def _context(backend: SPIRVBackend) -> Any:
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def _stages(backend: SPIRVBackend, options: Any, module: Any, first: str) -> Compiled:
    source, written = str(module), operation_names(module)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    metadata: dict[str, Any] = {}
    passed: list[str] = []
    for stage in list(stages)[list(stages).index(first) :]:
        result = stages[stage](module, metadata)
        passed += operation_names(module)
        module = result
    return Compiled(source, written, passed, module)


def _front_end(case: Case) -> tuple[SPIRVBackend, Any, Any]:
    backend = SPIRVBackend(target())
    options = backend.parse_options(dict(case.options))
    signature = dict(zip(case.kernel.arg_names, case.signature.split(), strict=True))
    functions = backend.get_codegen_implementation(options)
    source = ASTSource(case.kernel, signature)
    module = source.make_ir(backend.target, options, functions, backend.get_module_map(), _context(backend))
    return backend, options, module


def compile_case(case: Case) -> Compiled:
    """A kernel, through every stage."""
    return _stages(*_front_end(case), "ttir")


def _parsed(text: str, stage: str) -> tuple[SPIRVBackend, Any, Any]:
    backend = SPIRVBackend(target())
    context = _context(backend)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"text.{stage}"
        path.write_text(text, encoding="utf-8")
        source = IRSource(str(path), context, backend)
        options = backend.parse_options({})
        return backend, options, source.make_ir(backend.target, options, {}, {}, context)


def read_text(text: str, stage: str) -> str:
    """A text of TTIR or TTGIR as upstream prints it."""
    return str(_parsed(text, stage)[2])


def compile_text(text: str, stage: str = "ttir") -> Compiled:
    """TTIR, through every stage, or TTGIR, through the last."""
    return _stages(*_parsed(text, stage), "ttir" if stage == "ttir" else "spv")
