"""A backend that a program registers while it runs: `python examples/plugins/registered.py`.

It compiles to a list of operation names and "launches" by printing them: every part of the way from `kernel[grid]` to
a launcher. It needs no device.
"""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import triton
import triton.language as tl
from triton._C.libtriton import ir, passes
from triton.backends import get_backend, register_backend
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase


class Options(SimpleNamespace):  # what upstream reads of it: see ttir-only/backend/compiler.py
    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()


class OpListBackend(BaseBackend):
    binary_ext = "ops"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "oplist"

    def hash(self) -> str:
        return "oplist-1"  # covers make_ttir and make_ops: raise the number when they change

    def parse_options(self, options: dict[str, Any]) -> Options:
        # jit.run sets all but num_warps itself; what is no field of the result is refused as an unknown option.
        names = ("num_warps", "debug", "instrumentation_mode", "fpsan_homomorphic_casts")
        return Options(sanitize_overflow=False, **{"num_warps": 1} | {k: options[k] for k in names if k in options})

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        stages |= {"ttir": make_ttir, "ops": make_ops}

    def _nothing(self, *args: Any) -> dict[str, Any]:
        return {}

    load_dialects = pack_metadata = get_codegen_implementation = get_module_map = _nothing


def make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
    pm = ir.pass_manager(module.context)
    passes.common.add_inliner(pm)
    pm.run(module, "make_ttir")
    metadata.update(name=module.get_entry_func_name(), shared=0, warp_size=1)
    return module


def make_ops(module: Any, metadata: dict[str, Any]) -> bytes:
    names: list[str] = []
    module.walk(lambda op: names.append(op.get_name()))
    return " ".join(names).encode()


class OpListDriver(DriverBase):
    def __init__(self) -> None:
        self.get_current_device = self.get_current_stream = lambda *device: 0
        # load_binary gives (module, function, registers, spills, most invocations in a workgroup).
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 0},
            load_binary=lambda name, binary, shared, device: (1, binary.decode(), 0, 0, 1),
            unload_module=lambda module: None,
        )

    @classmethod
    def is_active(cls) -> bool:
        return False  # taken by set_active only

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        def launch(
            x: int,
            y: int,
            z: int,
            stream: int,
            function: str,
            packed_metadata: Any,
            launch_metadata: Any,
            enter_hook: Any,
            exit_hook: Any,
            *args: Any,
        ) -> None:
            print(f"{metadata.name} on {x}x{y}x{z} programs with {len(args)} arguments: {function}")

        return launch

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("oplist", "any", 1)

    def _unused(self, ty: str = "") -> Any:
        raise NotImplementedError("oplist has no tensors, no C++ launcher and nothing to time")

    get_active_torch_device = map_python_to_cpp_type = get_benchmarker = _unused


@triton.jit
def double_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets))


if __name__ == "__main__":
    register_backend("oplist", OpListBackend, OpListDriver)
    triton.runtime.driver.set_active(get_backend("oplist").driver())
    double_kernel[(4,)](triton.MockTensor(tl.float32), BLOCK=256)
