"""The compiler half of the plugin: from the front end's TTIR to a clean TTIR, and no further."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget, Language


@dataclass(frozen=True)
class TTIROnlyOptions:
    """What a launch may set (`kernel[grid](..., num_warps=8)`). Upstream reads each of these fields somewhere."""

    # jit.run shows these to hooks and puts them in the cache key.
    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 1
    enable_fp_fusion: bool = False
    launch_cooperative_grid: bool = False
    extern_libs: tuple[tuple[str, str], ...] = ()
    debug: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    # The front end reads these while it builds TTIR (triton/language/semantic.py).
    sanitize_overflow: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee",)
    max_num_imprecise_acc_default: int = 0

    def hash(self) -> str:
        """Two launches share a cached kernel only if this is equal."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


@functools.cache
def _source_hash() -> str:
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()


class TTIROnlyBackend(BaseBackend):
    # The last stage's name: CompiledKernel loads <kernel>.<binary_ext> from the cache as bytes.
    binary_ext = "ttir"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        # Exactly one installed backend may say yes to a target.
        return target.backend == "ttir_only"

    def hash(self) -> str:
        # Part of each cache key. A change in this file must change it: else stale kernels are served.
        return f"{_source_hash()}-{self.target}"

    def parse_options(self, options: dict[str, Any]) -> TTIROnlyOptions:
        # `options` holds the kernel's own keyword arguments too: take the known names, leave the rest.
        known = TTIROnlyOptions.__dataclass_fields__
        return TTIROnlyOptions(**{k: v for k, v in options.items() if k in known and v is not None})

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language) -> None:
        # Run in this order; a stage is a function of (module, metadata). A backend for a GPU goes on with "ttgir", …
        if language is not Language.TRITON:
            raise NotImplementedError("ttir_only compiles Triton kernels, not Gluon ones: they start at TTGIR")
        stages["ttir"] = self.make_ttir

    @staticmethod
    def make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
        pm = ir.pass_manager(module.context)
        passes.common.add_inliner(pm)
        passes.ttir.add_combine(pm)
        passes.common.add_canonicalizer(pm)
        passes.common.add_cse(pm)
        passes.common.add_symbol_dce(pm)
        pm.run(module, "make_ttir")
        # What CompiledKernel and launchers expect to find; saved as <kernel>.json beside the stages.
        metadata.update(name=module.get_entry_func_name(), shared=0)
        return module

    def load_dialects(self, context: Any) -> None:
        pass  # TTIR's own dialects are loaded already

    def pack_metadata(self, metadata: Any) -> tuple[Any, ...]:
        return ()  # handed to each launch

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        # The smallest tl.dot this target takes: (m, n, k).
        return {"min_dot_size": lambda lhs_type, rhs_type: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        return {}  # for example {"triton.language.extra.libdevice": own_libdevice}
