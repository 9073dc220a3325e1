"""Everything of torch's compiler that torch keeps private and this backend touches, a hook a concern.

Written for torch 2.13 and tried with the versions of ``TORCH_VERSIONS``. A hook names the module, what it needs there,
and the change. Where torch has moved something, the hook is left out: ``BROKEN`` has it with what is missing,
torch.compile refuses the device with that text, and tests/unit/torch_compile/test_internals.py fails by its name.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from ..autoload import NAME
from .after_import import after_import
from .broken import BROKEN

#: Versions of torch that the tests were run with.
TORCH_VERSIONS = ("2.13",)

#: Most devices of one process: Dynamo looks interfaces up under "spirv:0" too.
_MOST_DEVICES = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hook:
    """A change to a module of torch's, made when torch imports it. ``needs``: dotted names that must be there."""

    name: str
    module: str
    needs: tuple[str, ...]
    change: Callable[[Any], None]

    def missing(self, module: ModuleType) -> list[str]:
        """Which of ``needs`` the module lacks."""
        absent = []
        for path in self.needs:
            value: Any = module
            for part in path.split("."):
                value = getattr(value, part, None)
            if value is None:
                absent.append(path)
        return absent

    def apply(self, module: ModuleType) -> None:
        """Makes the change, or notes what it lacks."""
        absent = self.missing(module)
        if not absent:
            self.change(module)
            return
        BROKEN[self.name] = (
            f"torch {torch.__version__} has no {', '.join(f'{self.module}.{path}' for path in absent)}; "
            f"this backend was written for torch {', '.join(TORCH_VERSIONS)}"
        )
        _log.warning("torch.compile for %s lacks the hook '%s': %s", NAME, self.name, BROKEN[self.name])


def _has_triton(module: Any) -> None:
    """Dynamo captures launches of @triton.jit functions, rather than trace into Triton, where Triton has a device."""
    original = module.has_triton

    @functools.cache
    def has_triton() -> bool:
        from .properties import driver_is_active

        return bool(original()) or driver_is_active()

    module.has_triton = has_triton


def _device_interface(module: Any) -> None:
    from .interface import SPIRVInterface

    bases = (SPIRVInterface, module.DeviceInterface)
    interface = type("SPIRVInterface", bases, {"__doc__": SPIRVInterface.__doc__})
    for name in (NAME, *(f"{NAME}:{index}" for index in range(_MOST_DEVICES))):
        module.register_interface_for_device(name, interface)


def _compile_target(module: Any) -> None:
    """Kernels are compiled for the Vulkan device wherever Triton launches there: for CPU tensors, too."""
    original = module.DeviceProperties.create

    def create(cls: Any, device: Any) -> Any:
        from .interface import properties_of
        from .properties import driver_is_active

        if device.type != NAME and not (device.type in ("cpu", "cuda") and driver_is_active()):
            return original(device)
        known = properties_of(device)
        return cls(
            type=NAME,
            index=(device.index or 0) if device.type == NAME else 0,
            multi_processor_count=known.multi_processor_count,
            cc=known.arch,
            max_threads_per_block=known.max_threads_per_block,
            warp_size=known.warp_size,
        )

    module.DeviceProperties.create = classmethod(create)


def _choice_of_driver(module: Any) -> None:
    """Inductor would activate the first driver with a device, even where another was asked for."""
    original = module.set_driver_to_gpu

    def set_driver_to_gpu() -> None:
        from ..driver import chosen

        if not chosen():
            original()

    module.set_driver_to_gpu = set_driver_to_gpu


def _gpu_types(module: Any) -> None:
    """Inductor treats the device as a GPU; it is the one that patterns are made for where torch has no other."""
    module.GPU_TYPES.append(NAME)
    others = tuple(kind for kind in module.GPU_TYPES if kind != NAME)

    @functools.cache
    def get_gpu_type() -> str:
        found = [kind for kind in others if getattr(torch, kind).is_available()]
        return found[0] if found else NAME if hasattr(torch, NAME) else "cuda"

    module.get_gpu_type = get_gpu_type
    original = module.is_big_gpu

    @functools.cache
    def is_big_gpu(index_or_device: Any = 0) -> bool:
        # choices.py takes the number of compute units into account; theirs asks for 68, whatever the device.
        device = index_or_device
        if not isinstance(device, torch.device):
            device = torch.device(module.get_gpu_type(), device)
        return device.type == NAME or bool(original(device))

    module.is_big_gpu = is_big_gpu


def _code_generation(module: Any) -> None:
    from .generated import DeviceCode, NoCppWrapper
    from .interface import why_unavailable

    overrides = type("SPIRVDeviceOpOverrides", (DeviceCode, module.DeviceOpOverrides), {})
    module.register_device_op_overrides(NAME, overrides())

    original = module.init_backend_registration

    @functools.cache
    def init_backend_registration() -> None:
        from torch._inductor.codegen.triton import TritonScheduling
        from torch._inductor.codegen.wrapper import PythonWrapperCodegen

        class SPIRVScheduling(TritonScheduling):
            def __init__(self, scheduler: Any) -> None:
                reason = why_unavailable()
                if reason is not None:
                    raise RuntimeError(reason)
                super().__init__(scheduler)

        module.register_backend_for_device(NAME, SPIRVScheduling, PythonWrapperCodegen, NoCppWrapper)
        original()

    module.init_backend_registration = init_backend_registration


def _benchmarker(module: Any) -> None:
    from .generated import bench

    module.register_benchmarker(NAME, bench, override=True)


def _templates(module: Any) -> None:
    """Block sizes of the templates of matrix products, convolutions and attention."""
    from . import choices
    from .interface import properties_of

    class SPIRVConfigHeuristic(module.BaseConfigHeuristic):  # type: ignore[misc]
        """The tables of choices.py."""

        def __init__(self) -> None:
            super().__init__()
            every = [module.GemmConfig(g.block_m, g.block_n, g.block_k, 1, g.num_warps) for g in choices.GEMMS]
            self.mm_configs = self.exhaustive_configs = self.extra_mm_configs = every
            self.int8_mm_configs = self.scaled_mm_configs = self.mixed_mm_configs = every
            self.mm_plus_mm_configs = every
            self.conv_configs = [
                module.ConvConfig(g.block_m, g.block_n, g.block_k, 1, g.num_warps) for g in choices.GEMMS
            ]

        def preprocess_mm_configs(self, m: Any, n: Any, k: Any, configs: Any, dtype_size: int = 0, **rest: Any) -> Any:
            device = properties_of()

            def gemm(config: Any) -> choices.Gemm:
                return choices.Gemm(config.block_m, config.block_n, config.block_k, config.num_warps)

            fitting = [config for config in configs if choices.fits(gemm(config), device, dtype_size or 4)]
            rows, columns = hint(m), hint(n)
            if rows is not None and columns is not None:
                fitting = choices.occupying(
                    fitting, lambda config: (config.block_m, config.block_n), rows, columns, device
                )
            return super().preprocess_mm_configs(m, n, k, fitting or configs[:1], dtype_size=dtype_size, **rest)

        def get_flex_attn_fwd_configs(self, head_dim: int, dtype: torch.dtype) -> list[Any]:
            rows = choices.flex_forward(properties_of(), head_dim, dtype.itemsize, autotune())
            return [module.FlexConfig(m, n, 1, warps) for m, n, warps in rows]

        def get_flex_attn_bwd_configs(self, head_dim: int, dtype: torch.dtype) -> list[Any]:
            rows = choices.flex_backward(properties_of(), head_dim, dtype.itemsize, autotune())
            return [module.FlexBwDConfig(*blocks, 1, warps) for blocks, warps in rows]

        def get_flex_decode_configs(self, head_dim: int, dtype: torch.dtype) -> list[Any]:
            rows = choices.flex_decode(properties_of(), head_dim, dtype.itemsize, autotune())
            return [module.FlexDecodeConfig(n, 1, warps) for n, warps in rows]

    def autotune() -> bool:
        from torch._inductor import config

        return bool(config.max_autotune)

    def hint(size: Any) -> int | None:
        try:
            return int(size)
        except (TypeError, ValueError):
            return None

    module.SPIRVConfigHeuristic = SPIRVConfigHeuristic
    register = module.register_template_heuristic
    plain = type("SPIRVMMHeuristic", (module.MMTemplateConfigMixin, SPIRVConfigHeuristic), {})
    added = type("SPIRVAddMMHeuristic", (module.AddMMConfigMixin, plain), {})
    twice = type("SPIRVMMPlusMMHeuristic", (module.MMPlusMMTemplateConfigMixin, SPIRVConfigHeuristic), {})
    int8 = type("SPIRVInt8MMHeuristic", (module.INT8MMTemplateConfigMixin, SPIRVConfigHeuristic), {})
    for template, names, heuristic in (
        (module.mm_template, (None,), plain),
        (module.bmm_template, (None,), plain),
        (module.mm_template, ("addmm",), added),
        (module.bmm_template, ("baddbmm",), added),
        (module.mm_template, ("int_mm",), int8),
        (module.mm_plus_mm_template, (None,), twice),
    ):
        for name in names:
            register(template.uid, NAME, op_name=name)(heuristic)


def _choices(module: Any) -> None:
    original = module.InductorChoices.get_config_heuristics

    def get_config_heuristics(self: Any, device_type: str | None = "cuda") -> Any:
        if device_type != NAME:
            return original(self, device_type)
        from torch._inductor.template_heuristics import triton

        return getattr(triton, "SPIRVConfigHeuristic")()  # noqa: B009 (put there by _templates)

    module.InductorChoices.get_config_heuristics = get_config_heuristics


def _launchers(module: Any) -> None:
    """Inductor's kernels do not wait to learn that the driver cut a loop short: copies to the host say so. The number
    of spilled registers, which Inductor compares with a limit, is none where Vulkan does not tell it."""
    original = module.TritonCompileResult.make_launcher

    def make_launcher(self: Any) -> Any:
        from ..launching.launcher import reports_later

        with reports_later():
            launcher = original(self)
        if launcher.n_spills is None:
            launcher.n_spills = 0
        return launcher

    module.TritonCompileResult.make_launcher = make_launcher


def _graphs(module: Any) -> None:
    """Inductor leaves graphs to _replay(): its own are CUDA's."""
    original = module.check_multiple_devices_or_any_cpu_nodes

    def check(device_node_mapping: Any) -> Any:
        if any(device.type == NAME for device in device_node_mapping):
            return module.format_default_skip_message(
                f"the device '{NAME}': Inductor's graphs are CUDA's; its launches are captured by "
                "triton.backends.spirv.runtime.Graph instead"
            )
        return original(device_node_mapping)

    module.check_multiple_devices_or_any_cpu_nodes = check


def _replay(module: Any) -> None:
    """mode="reduce-overhead" captures the launches of compiled functions."""
    original = module.CompiledFxGraph.post_compile

    def post_compile(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        from torch._inductor import config

        if config.triton.cudagraphs and set(self.device_types) == {NAME}:
            from .graphs import Replayed

            static, mutated = self.fx_kwargs["static_input_idxs"] or (), self.mutated_input_idxs
            self.current_callable = Replayed(self.current_callable, static, mutated, self.fx_kwargs["is_backward"])

    module.CompiledFxGraph.post_compile = post_compile


def _flex_attention(module: Any) -> None:
    original = module._validate_device

    def validate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != NAME:
            original(query, key, value)

    module._validate_device = validate


def _strides(module: Any) -> None:
    """Whether strides are in order may be unknown: torch 2.13 raises ValueRangeError over divisions by sizes, which
    convolutions of dynamic images have."""
    original = module.SizeVarAllocator.guard_or_false

    def guard_or_false(self: Any, left: Any) -> Any:
        from torch.utils._sympy.value_ranges import ValueRangeError

        try:
            return original(self, left)
        except ValueRangeError:
            return False

    module.SizeVarAllocator.guard_or_false = guard_or_false


def _caches(module: Any) -> None:
    """What Inductor keeps on disk was generated for the devices here, by this version: without CUDA its key says
    nothing of either."""
    original = module.CacheBase.get_system

    @module.clear_on_fresh_cache
    @functools.cache
    def get_system() -> Any:
        from .properties import cache_key, driver_is_active

        found = original()
        return {**found, "hash": cache_key(found["hash"])} if driver_is_active() else found

    module.CacheBase.get_system = staticmethod(get_system)


def _flex_decoding(module: Any) -> None:
    """Few queries with many keys: torch asks CUDA into how many parts the keys are split."""
    original = module.get_split_k

    def get_split_k(batch: Any, heads: Any, keys: Any) -> Any:
        if torch.cuda.is_available() or torch.xpu.is_available():
            return original(batch, heads, keys)
        from . import choices
        from .interface import properties_of

        return choices.flex_splits(properties_of(), int(batch * heads))

    module.get_split_k = get_split_k


HOOKS = (
    Hook("has_triton", "torch.utils._triton", ("has_triton",), _has_triton),
    Hook(
        "device_interface",
        "torch._dynamo.device_interface",
        ("DeviceInterface", "register_interface_for_device"),
        _device_interface,
    ),
    Hook("compile_target", "torch._inductor.runtime.hints", ("DeviceProperties.create",), _compile_target),
    Hook("choice_of_driver", "torch._inductor.runtime.triton_helpers", ("set_driver_to_gpu",), _choice_of_driver),
    Hook("gpu_types", "torch._inductor.utils", ("GPU_TYPES", "get_gpu_type", "is_big_gpu"), _gpu_types),
    Hook(
        "code_generation",
        "torch._inductor.codegen.common",
        (
            *("DeviceOpOverrides", "register_device_op_overrides"),
            *("init_backend_registration", "register_backend_for_device"),
        ),
        _code_generation,
    ),
    Hook("benchmarker", "torch._inductor.runtime.benchmarking", ("register_benchmarker",), _benchmarker),
    Hook(
        "templates",
        "torch._inductor.template_heuristics.triton",
        (
            "BaseConfigHeuristic.preprocess_mm_configs",
            *("GemmConfig", "ConvConfig", "FlexConfig", "FlexBwDConfig", "FlexDecodeConfig"),
            *("MMTemplateConfigMixin", "AddMMConfigMixin", "MMPlusMMTemplateConfigMixin", "INT8MMTemplateConfigMixin"),
            *("mm_template.uid", "bmm_template.uid", "mm_plus_mm_template.uid", "register_template_heuristic"),
        ),
        _templates,
    ),
    Hook("launchers", "torch._inductor.runtime.triton_heuristics", ("TritonCompileResult.make_launcher",), _launchers),
    Hook(
        "graphs",
        "torch._inductor.cudagraph_utils",
        ("check_multiple_devices_or_any_cpu_nodes", "format_default_skip_message"),
        _graphs,
    ),
    Hook("replay", "torch._inductor.output_code", ("CompiledFxGraph.post_compile",), _replay),
    Hook("choices", "torch._inductor.choices", ("InductorChoices.get_config_heuristics",), _choices),
    Hook("caches", "torch._inductor.codecache", ("CacheBase.get_system", "clear_on_fresh_cache"), _caches),
    Hook("strides", "torch._inductor.sizevars", ("SizeVarAllocator.guard_or_false",), _strides),
    Hook("flex_attention", "torch.nn.attention.flex_attention", ("_validate_device",), _flex_attention),
    Hook("flex_decoding", "torch._inductor.kernel.flex.flex_decoding", ("get_split_k",), _flex_decoding),
)

_installed: list[bool] = []


def install() -> None:
    """Has each hook made when torch imports its module. A second call does nothing."""
    if _installed:
        return
    _installed.append(True)
    for hook in HOOKS:
        after_import(hook.module, hook.apply)
