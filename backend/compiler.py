"""SPIRVBackend: options, target and the stage table. Lowering itself is in ``lowering/``.

``import triton`` imports this file. The compiler itself is imported when the first kernel is compiled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from triton import knobs
from triton.backends.compiler import BaseBackend, GPUTarget, Language
from triton.runtime.errors import OutOfResources

if TYPE_CHECKING:
    from .equal_kernels import EqualKernel
    from .lowering.entry_point import LoweredKernel
    from .options import SPIRVOptions
    from .planning.kernel_plan import Planned
    from .stages import Chosen

#: What a kernel that needs no shared memory is said to need on a processor, in bytes.
_LEAST_SHARED = 16


@functools.lru_cache(maxsize=1)
def sources_digest() -> str:
    """A digest of this backend's Python sources and of the tables that they read: what decides the code that is
    emitted."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.txt"))):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _before_use(arg: Any, align: bool = False) -> str:
    """What specialises tensors until a backend is made: launching/specialization.py is not imported before."""
    from .launching.specialization import fast_tensor_specialization

    return fast_tensor_specialization()(arg, align)


class TooManyWarps(OutOfResources):
    """A workgroup of more invocations than the device's have. Autotuning leaves such a configuration out."""

    def __init__(self, kernel: str, num_warps: int, lanes: int, limit: int) -> None:
        super().__init__(num_warps * lanes, limit, "invocations")
        self._arguments = kernel, num_warps, lanes, limit

    def __str__(self) -> str:
        """What was asked for, and what to do."""
        kernel, num_warps, lanes, limit = self._arguments
        return (
            f"kernel '{kernel}': num_warps={num_warps} needs workgroups of {num_warps * lanes} invocations, and the "
            f"device's have at most {limit}: use num_warps={limit // lanes} or fewer"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments


def _listing(spirv: bytes) -> str:
    from .extension_points import given

    text: str = given("listing")(spirv)
    return text


@dataclasses.dataclass
class Door:
    """What goes from one stage of a compilation to a later one besides the module: how it was ``chosen`` to be laid
    out, so that the same module is not planned again; the ``outcome`` of an equal kernel, and the ``module`` that
    leads to it."""

    chosen: Chosen | None = None
    outcome: EqualKernel | None = None
    module: Any = None

    def planned(self, module: Any) -> Planned | None:
        """The plan of ``module``; None if another module was chosen, or none. It is given once: emitting changes it."""
        chosen, self.chosen = self.chosen, None
        return chosen.planned if chosen is not None and chosen.module is module else None


class SPIRVBackend(BaseBackend):
    """Triton to Vulkan SPIR-V."""

    binary_ext = "spv"
    #: ``kernel.asm["spvasm"]``, by the patch asm-views.
    asm_views = {"spvasm": _listing}
    #: What gives a NumPy array a data_ptr(), for errors of launches, by the patch launch-errors.
    numpy_wrapper = "triton.backends.spirv.runtime.array"
    supports_native_tensor_specialization = False

    def __init__(self, target: GPUTarget) -> None:
        from .capabilities import Capabilities
        from .runtime.files import trusted_cache
        from .stock_patches import ready

        super().__init__(target)
        ready()
        # Triton makes a backend before it looks into its cache.
        if (trusted := trusted_cache(knobs.cache.dir)) != knobs.cache.dir:
            knobs.cache.dir = trusted
        if type(self).get_tensor_specialization is _before_use:  # the native module is not loaded before
            from .launching.specialization import fast_tensor_specialization

            type(self).get_tensor_specialization = staticmethod(fast_tensor_specialization())
        self.capabilities = Capabilities.parse(str(target.arch))

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether ``target`` is this backend's."""
        from .target import BACKEND

        return target.backend == BACKEND

    def hash(self) -> str:
        """Identifies this backend in the cache key: its sources and its target."""
        return f"{self.target.backend}-{sources_digest()}-{self.capabilities.arch()}-{self.target.warp_size}"

    def parse_options(self, options: dict[str, Any]) -> SPIRVOptions:
        """The options of a launch, with other backends' options that mean nothing here. Raises ValueError for a value
        that cannot be honoured."""
        from .options import SPIRVOptions, own, with_foreign, with_settings
        from .planning.matrix_unit_choice import matrix_units
        from .planning.native_math import native_math
        from .upstream import fp_fusion_enabled

        known = with_settings(own(options))
        known["arch"] = str(self.target.arch)
        known["warp_size"] = self.capabilities.subgroup_size
        known["sanitize_overflow"] = known.get("sanitize_overflow", True) and bool(known.get("debug"))
        for name, check in (("matrix_units", matrix_units), ("native_math", native_math)):
            known[name] = str(known[name])
            check(known[name], self.capabilities)  # raises ValueError
        known["without"] = _left_out(known)
        known["enable_fp_fusion"] = fp_fusion_enabled(known.get("enable_fp_fusion"))
        return with_foreign(SPIRVOptions(**known), options)

    def _check_warps(self, module: Any, num_warps: int) -> None:
        lanes, limit = self.capabilities.subgroup_size, self.capabilities.max_workgroup_invocations
        if num_warps * lanes > limit:
            raise TooManyWarps(module.get_entry_func_name(), num_warps, lanes, limit)

    @contextlib.contextmanager
    def _compiling(self, kernel: str, part: str, options: SPIRVOptions) -> Iterator[None]:
        from .compile_time import TooLong, compiling, what_helps
        from .resources import CompilesTooLong

        most = self.capabilities.most_subgroups
        try:
            with compiling(kernel, part, lambda: what_helps(options.num_warps, most)):
                yield
        except TooLong as error:
            raise CompilesTooLong(error) from None

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """What every launch is given."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: SPIRVOptions) -> dict[str, Any]:
        """Functions that the front end calls: a dot on multiply-adds has no smallest size."""
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1), "convert_custom_types": _convert_custom_types}

    def get_module_map(self) -> dict[str, ModuleType]:
        """Device implementations of language modules."""
        from . import cuda_extras, libdevice
        from .gluon import ModuleMap

        return ModuleMap(
            {
                "triton.language.extra.libdevice": libdevice,
                "triton.language.extra.cuda": cuda_extras,
                "triton.language.extra.cuda.utils": cuda_extras,
            }
        )

    def get_target_name(self, options: SPIRVOptions) -> str:
        """``ttg.target`` of Gluon's modules."""
        from . import passes

        return passes.TARGET

    def load_dialects(self, context: Any) -> None:
        """No dialects beyond upstream's."""

    def add_stages(self, stages: dict[str, Any], options: SPIRVOptions, language: Language) -> None:
        """Fills the stage table: ttir → ttgir → spv; glir instead of ttir for Gluon. Upstream's front end runs next."""
        from .compile_time import begin

        begin(limited=not options.without)
        door = Door()
        if self.capabilities.processor and language != Language.GLUON:
            # A CPU's lanes are the elements of its vectors, and nothing is loaded ahead.
            options = dataclasses.replace(options, num_warps=1, num_stages=1)
        if language == Language.GLUON:
            stages["glir"] = lambda source, metadata: source
            stages["ttgir"] = lambda source, metadata: self.gluon_to_ttgir(source, metadata, options)
        else:
            stages["ttir"] = lambda source, metadata: self.make_ttir(source, options)
            stages["ttgir"] = lambda source, metadata: self.make_ttgir(source, metadata, options, door)
        stages["spv"] = lambda source, metadata: self.make_spirv(source, metadata, options, door)
        if knobs.runtime.add_stages_inspection_hook is not None:
            knobs.runtime.add_stages_inspection_hook(self, stages, options, language, self.capabilities)

    # -- argument properties: what a kernel is compiled for, and its cache key --------------------------------------
    # Called for every tensor of every launch. The first backend that is made puts the native one in its place.
    get_tensor_specialization: Callable[..., str] = staticmethod(_before_use)

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes of an argument with the properties of ``desc``."""
        from .abi.argument_properties import attributes_of

        return attributes_of(desc)

    # -- stages --------------------------------------------------------------------------------------------------
    def make_ttir(self, module: Any, options: SPIRVOptions) -> Any:
        """Front-end TTIR to optimised TTIR."""
        from . import passes

        passes.run(module, passes.TTIR, "make_ttir", passes.operation_names(module), options.without)
        return module

    def make_ttgir(self, module: Any, metadata: dict[str, Any], options: SPIRVOptions, door: Door) -> Any:
        """TTIR to TTGIR, laid out for this subgroup size by the fastest schedule by which the kernel fits in shared
        memory (planning/cost.py). The plan goes through the ``door``, and so does what became of an equal kernel, which
        configurations of autotuning lead to on a processor. Raises TooManyWarps, OutOfSharedMemory."""
        from . import passes
        from .equal_kernels import equal_kernel
        from .garbage_collection import paused_collector
        from .stages import choose

        self._check_warps(module, options.num_warps)
        if self.capabilities.processor and not knobs.compilation.always_compile:
            door.outcome = equal_kernel(module, options, self.hash(), knobs.cache.dir)
            if door.outcome.spirv:
                door.module = passes.parse(door.outcome.ttgir, module.context)
                return door.module
        kernel = module.get_entry_func_name()
        with paused_collector(), self._compiling(kernel, "this backend's compiler, from TTIR to TTGIR,", options):
            chosen = choose(module, f"{kernel}.ttgir", self.capabilities, options)
        metadata |= chosen.metadata()
        door.chosen, door.module = chosen, chosen.module
        return chosen.module

    def gluon_to_ttgir(self, module: Any, metadata: dict[str, Any], options: SPIRVOptions) -> Any:
        """A Gluon kernel to TTGIR, in the layouts that it names. Raises TooManyWarps."""
        from . import passes

        self._check_warps(module, options.num_warps)
        passes.run(module, passes.GLUON, "gluon_to_ttgir", passes.operation_names(module), options.without)
        return module

    def make_spirv(self, module: Any, metadata: dict[str, Any], options: SPIRVOptions, door: Door) -> bytes:
        """TTGIR to a SPIR-V module, with shared memory allocated and barriers inserted on the way. It is planned anew
        unless its plan came through the ``door``. Raises OutOfSharedMemory for user-written TTGIR that does not
        fit."""
        from .compile_time import end
        from .equal_kernels import EqualKernel
        from .garbage_collection import paused_collector
        from .lowering.entry_point import emit
        from .planning.cost import named_layouts
        from .runtime.modules.validate import validate_module
        from .source_files import digests
        from .stages import plan
        from .transforms.schedule import Schedule

        outcome = door.outcome if door.outcome is not None and door.module is module else EqualKernel()
        if outcome.spirv:
            metadata |= outcome.metadata
            end(metadata["name"])
            return outcome.spirv
        planned = door.planned(module)
        part = "this backend's compiler, from TTGIR to SPIR-V,"
        with paused_collector(), self._compiling(module.get_entry_func_name(), part, options):
            if planned is None:
                layout = metadata.setdefault("layout", None)
                schedule = Schedule(**layout) if layout is not None else named_layouts(options.num_stages)
                name = f"{metadata.get('name', 'kernel')}.ttgir"
                planned = plan(module, schedule, name, self.capabilities, options)
            # A processor's code has the lines of the source, by which a fault is told.
            kernel = emit(planned, lines=bool(self.capabilities.processor))
            self._make_machine_code(kernel)
        end(kernel.name)
        validate_module(kernel.spirv, kernel.name)
        # Upstream's second tutorial divides by it. On a processor no reduction needs any.
        least = _LEAST_SHARED if self.capabilities.processor else 0
        found = {
            "name": kernel.name,
            "shared": max(kernel.shared_bytes, least),
            "workgroup_size": kernel.workgroup_size,
            "argument_bytes": kernel.argument_bytes,
            "indirect_arguments": kernel.indirect_arguments,
            "reports": kernel.reports,
            "written_arguments": kernel.written,
            "global_scratch_size": kernel.global_scratch.size,
            "global_scratch_align": kernel.global_scratch.alignment,
            "profile_scratch_size": 0,
            "profile_scratch_align": 1,
            "tensordesc_meta": [],
            "sha256": {self.binary_ext: hashlib.sha256(kernel.spirv).hexdigest()},  # for the patch whole-loads
        }
        text = str(module)
        found["sources"] = digests(text)
        metadata |= found
        layout = {name: metadata[name] for name in ("layout", "tried") if name in metadata}
        outcome.ttgir, outcome.metadata, outcome.spirv = text, layout | found, kernel.spirv
        return kernel.spirv

    def _make_machine_code(self, kernel: LoweredKernel) -> None:
        """Puts a processor's code for a module into the cache. A module with lines has the same instructions as one
        without."""
        from .cpu.objects import WHEN_LOADED, machine_code, made_here

        processor = self.capabilities.processor
        if processor and made_here(processor) and not WHEN_LOADED.get():
            machine_code(kernel.spirv, self.capabilities.subgroup_size, processor, kernel.with_lines)


def _left_out(known: dict[str, Any]) -> tuple[str, ...]:
    """The option ``without``. Raises ValueError."""
    from .settings import WITHOUT

    without, reference = known.get("without", WITHOUT.get()), bool(known.get("reference"))
    if not without and not reference:
        return ()
    from .reference import left_out

    return left_out(without, reference)


def _convert_custom_types(*arguments: Any, **options: Any) -> Any:
    """fp8e4b15 to and from other floats, by the inline PTX of upstream's CUDA backend."""
    from triton.language.extra.cuda.utils import convert_custom_float8_sm80

    return convert_custom_float8_sm80(*arguments, **options)
