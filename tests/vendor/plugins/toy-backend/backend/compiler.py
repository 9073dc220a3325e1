"""A backend whose only stage names the kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from triton.backends.compiler import BaseBackend, GPUTarget, Language


@dataclass(frozen=True)
class ToyOptions:
    """What the front end reads of a backend's options."""

    num_warps: int = 1
    num_ctas: int = 1
    num_stages: int = 1
    debug: bool = False
    sanitize_overflow: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    enable_fp_fusion: bool = False
    launch_cooperative_grid: bool = False
    extern_libs: tuple[tuple[str, str], ...] = ()
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee",)
    max_num_imprecise_acc_default: int = 0
    backend_name: str = "toy"

    def hash(self) -> str:
        return repr(self)


class ToyBackend(BaseBackend):
    binary_ext = "toy"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "toy"

    def hash(self) -> str:
        return f"toy-{self.target}"

    def parse_options(self, options: dict[str, Any]) -> ToyOptions:
        return ToyOptions()

    def add_stages(self, stages: dict[str, Any], options: object, language: Language) -> None:
        stages["ttir"] = self._ttir
        stages["toy"] = self._toy

    @staticmethod
    def _ttir(module: Any, metadata: dict[str, Any]) -> Any:
        metadata.update(name=module.get_entry_func_name(), shared=0)
        return module

    @staticmethod
    def _toy(module: Any, metadata: dict[str, Any]) -> bytes:
        names = re.findall(r"tt\.func public @(\w+)", str(module))
        return f"toy code of {' '.join(names)}".encode()

    def load_dialects(self, context: Any) -> None:
        pass

    def pack_metadata(self, metadata: Any) -> tuple[Any, ...]:
        return ()

    def get_codegen_implementation(self, options: object) -> dict[str, Any]:
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        return {}
