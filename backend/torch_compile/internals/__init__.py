"""Everything of torch's compiler that torch keeps private and this backend touches: ``HOOKS`` names each, and nothing
outside of this package touches more.

Written for torch 2.13 and tried with the versions of ``TORCH_VERSIONS``. A hook names the module, what it needs there,
and the change, which is a function of one of this package's files: devices.py, generation.py, convolutions.py,
templates.py, replays.py. Where torch has moved something, the hook is left out: ``BROKEN`` has it with what is missing,
torch.compile refuses the device with that text, and tests/unit/torch_compile/test_internals.py fails by its name.
"""

from __future__ import annotations

from ..after_import import after_import
from ..broken import BROKEN
from . import convolutions, devices, generation, replays, templates
from .hook import TORCH_VERSIONS, Hook

__all__ = ["BROKEN", "HOOKS", "TORCH_VERSIONS", "Hook", "install"]

HOOKS = (
    Hook("has_triton", "torch.utils._triton", ("has_triton",), devices.has_triton),
    Hook(
        "device_interface",
        "torch._dynamo.device_interface",
        ("DeviceInterface", "register_interface_for_device"),
        devices.device_interface,
    ),
    Hook(
        "cpu_tensors",
        "torch._dynamo.device_interface",
        ("CpuInterface.raise_if_triton_unavailable",),
        devices.cpu_tensors,
    ),
    Hook("compile_target", "torch._inductor.runtime.hints", ("DeviceProperties.create",), devices.compile_target),
    Hook(
        "choice_of_driver", "torch._inductor.runtime.triton_helpers", ("set_driver_to_gpu",), devices.choice_of_driver
    ),
    Hook("gpu_types", "torch._inductor.utils", ("GPU_TYPES", "get_gpu_type", "is_big_gpu"), devices.gpu_types),
    Hook(
        "code_generation",
        "torch._inductor.codegen.common",
        (
            *("DeviceOpOverrides", "register_device_op_overrides"),
            *("init_backend_registration", "register_backend_for_device"),
        ),
        generation.code_generation,
    ),
    Hook("benchmarker", "torch._inductor.runtime.benchmarking", ("register_benchmarker",), generation.benchmarker),
    Hook(
        "templates",
        templates.MODULE,
        (
            "BaseConfigHeuristic.preprocess_mm_configs",
            *("GemmConfig", "ConvConfig", "FlexConfig", "FlexBwDConfig", "FlexDecodeConfig"),
            *("MMTemplateConfigMixin", "AddMMConfigMixin", "MMPlusMMTemplateConfigMixin", "INT8MMTemplateConfigMixin"),
            *("mm_template.uid", "bmm_template.uid", "mm_plus_mm_template.uid", "register_template_heuristic"),
        ),
        templates.templates,
        formerly=templates.FORMER_MODULE,
    ),
    Hook(
        "launchers",
        "torch._inductor.runtime.triton_heuristics",
        ("TritonCompileResult.make_launcher",),
        generation.launchers,
    ),
    Hook(
        "graphs",
        "torch._inductor.cudagraph_utils",
        ("check_multiple_devices_or_any_cpu_nodes", "format_default_skip_message"),
        replays.graphs,
    ),
    Hook("replay", "torch._inductor.output_code", ("CompiledFxGraph.post_compile",), replays.replay),
    Hook("choices", "torch._inductor.choices", ("InductorChoices.get_config_heuristics",), templates.choices),
    Hook("caches", "torch._inductor.codecache", ("CacheBase.get_system", "clear_on_fresh_cache"), generation.caches),
    Hook("remainders", "torch.utils._sympy.functions", ("Mod.eval",), generation.remainders),
    Hook("strides", "torch._inductor.sizevars", ("SizeVarAllocator.guard_or_false",), generation.strides),
    Hook(
        "predicted_strides",
        "torch._subclasses.fake_impls",
        ("op_implementations_dict", "conv"),
        convolutions.predicted_strides,
    ),
    Hook(
        "gradients",
        "torch._inductor.kernel.conv",
        ("aten_convolution_backward_fallback", "convolution_backward_lowering"),
        convolutions.gradients,
    ),
    Hook("flex_attention", "torch.nn.attention.flex_attention", ("_validate_device",), templates.flex_attention),
    Hook("flex_decoding", "torch._inductor.kernel.flex.flex_decoding", ("get_split_k",), templates.flex_decoding),
)

_installed: list[bool] = []


def install() -> None:
    """Has each hook made when torch imports its module. A second call does nothing."""
    if _installed:
        return
    _installed.append(True)
    for hook in HOOKS:
        if hook.place:
            after_import(hook.place, hook.apply)
        else:
            hook.leave_out([hook.module])
