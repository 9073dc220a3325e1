"""The table of what this backend touches of torch's compiler that torch keeps private.

Tried with the versions of ``TORCH_VERSIONS``. A hook names the module, what it needs there, and the change, which is a
function of one of this package's files: roles.py, generation.py, convolutions.py, templates.py, replays.py,
tuned_kernels.py. Where torch has moved something, the hook is left out, tests/unit/torch_compile/test_internals.py
fails by its name, and what the row says does not work otherwise is told. Of a row that says nothing, ``BROKEN`` has
what is missing, and torch.compile refuses the device with that text.
"""

from __future__ import annotations

from ....autoload.after_import import after_import
from ..broken import BROKEN
from . import convolutions, generation, replays, roles, templates, tuned_kernels
from .hook import TORCH_VERSIONS, Hook

__all__ = ["BROKEN", "HOOKS", "TORCH_VERSIONS", "Hook", "install"]

HOOKS = (
    Hook("torch.utils._triton", ("has_triton",), roles.has_triton),
    Hook(
        "torch._dynamo.trace_rules",
        ("SKIP_DIRS", "_recompile_re"),
        roles.own_code,
        otherwise="functions of this package are compiled, too, where it does not lie in Triton's folder",
    ),
    Hook(
        "torch._dynamo.trace_rules",
        ("check_file", "SkipResult"),
        roles.traced_code,
        otherwise="functions are not compiled in torch.spirv.as_cuda()",
    ),
    Hook(
        "torch._dynamo.variables.ctx_manager",
        ("AcceleratorDeviceIndexVariable", "get_device_context_manager"),
        roles.device_blocks,
        since="2.13",
        otherwise="blocks of torch.spirv.device() are not compiled",
    ),
    Hook(
        "torch._dynamo.variables.tensor",
        ("TensorVariable.method_attr_is_cuda",),
        roles.tensors_of_cuda,
        otherwise="tensors have no is_cuda in functions that are compiled in torch.spirv.as_cuda()",
    ),
    Hook(
        "torch._inductor.fx_passes.joint_graph",
        ("lazy_init",),
        roles.pattern_inputs,
        otherwise="graphs without a tensor are not compiled in torch.spirv.as_cuda()",
    ),
    Hook(
        "torch._dynamo.device_interface", ("DeviceInterface", "register_interface_for_device"), roles.device_interface
    ),
    Hook(
        "torch._dynamo.device_interface",
        ("CpuInterface.raise_if_triton_unavailable",),
        roles.cpu_tensors,
        otherwise="@triton.jit kernels in compiled functions are refused CPU tensors",
    ),
    Hook(
        "torch._higher_order_ops.triton_kernel_wrap",
        ("generate_ttir",),
        generation.written_tensors,
        otherwise="a @triton.jit kernel in a compiled function may lose what it writes to a tensor that it gets twice",
    ),
    Hook("torch._inductor.runtime.hints", ("DeviceProperties.create",), roles.compile_target),
    Hook("torch._inductor.runtime.triton_helpers", ("set_driver_to_gpu",), roles.choice_of_driver),
    Hook("torch._inductor.utils", ("GPU_TYPES", "get_gpu_type", "is_big_gpu"), roles.gpu_types),
    Hook(
        "torch._inductor.codegen.common",
        (
            *("DeviceOpOverrides", "get_device_op_overrides", "register_device_op_overrides"),
            *("init_backend_registration", "register_backend_for_device"),
        ),
        generation.code_generation,
    ),
    Hook(
        "torch._inductor.runtime.benchmarking",
        ("Benchmarker.benchmark", "Benchmarker.infer_device"),
        generation.benchmarker,
    ),
    Hook(
        templates.MODULE,
        (
            "BaseConfigHeuristic.preprocess_mm_configs",
            *("GemmConfig", "ConvConfig", "FlexConfig", "FlexBwDConfig", "FlexDecodeConfig"),
            *("MMTemplateConfigMixin", "AddMMConfigMixin", "MMPlusMMTemplateConfigMixin", "INT8MMTemplateConfigMixin"),
            *("mm_template.uid", "bmm_template.uid", "mm_plus_mm_template.uid", "register_template_heuristic"),
        ),
        templates.templates,
        formerly=templates.FORMER_MODULE,
        otherwise='mode="max-autotune" and FlexAttention do not know what fits the device',
    ),
    Hook("torch._inductor.runtime.triton_heuristics", ("TritonCompileResult.make_launcher",), generation.launchers),
    Hook(
        "torch._inductor.runtime.triton_heuristics",
        ("CachingAutotuner.autotune_to_one_config", "HeuristicType.USER_AUTOTUNE", "user_autotune"),
        tuned_kernels.tuned,
        otherwise="TRITON_SPIRV_TUNED is for kernels outside of compiled functions",
    ),
    Hook(
        "torch._inductor.cudagraph_utils",
        ("check_multiple_devices_or_any_cpu_nodes", "format_default_skip_message"),
        replays.graphs,
        otherwise='mode="reduce-overhead" fails',
    ),
    Hook(
        "torch._inductor.output_code",
        ("CompiledFxGraph.post_compile",),
        replays.replay,
        otherwise='mode="reduce-overhead" changes nothing',
    ),
    Hook(
        "torch._inductor.choices",
        ("InductorChoices.get_config_heuristics",),
        templates.choices,
        otherwise='mode="max-autotune" and FlexAttention do not know what fits the device',
    ),
    Hook("torch._inductor.codecache", ("CacheBase.get_system", "clear_on_fresh_cache"), generation.caches),
    Hook("torch.utils._sympy.functions", ("Mod.eval",), generation.remainders),
    Hook("torch._inductor.ir", (), generation.remainders_of_sympy, until="2.12"),
    Hook(
        "torch._inductor.sizevars",
        ("SizeVarAllocator.guard_or_false",),
        generation.strides,
        otherwise="convolutions of images of any size (dynamic=True) may end in ValueRangeError",
    ),
    Hook("torch._subclasses.fake_impls", ("op_implementations_dict", "conv"), convolutions.predicted_strides),
    Hook(
        "torch._inductor.kernel.conv",
        ("aten_convolution_backward_fallback", "convolution_backward_lowering"),
        convolutions.gradients,
        since="2.13",  # before, they are an operation of eager torch on every device
        otherwise="gradients of convolutions are compiled again for each size of images",
    ),
    Hook(
        "torch._inductor.lowering",
        ("lowerings", "fallback_avg_pool2d_backward", "fallback_avg_pool3d_backward"),
        convolutions.pooled_gradients,
        otherwise="gradients of average pooling with ceil_mode may be wrong in compiled functions",
    ),
    Hook(
        "torch.nn.attention.flex_attention",
        ("_validate_device",),
        templates.flex_attention,
        otherwise="FlexAttention refuses the device",
    ),
    Hook(
        "torch._inductor.kernel.flex.flex_decoding",
        ("get_split_k",),
        templates.flex_decoding,
        otherwise="FlexAttention fails with few queries",
    ),
    Hook(
        "torch._inductor.kernel.flex.flex_decoding",
        ("_use_flex_decoding",),
        templates.block_pointers,
        until="2.13",
        otherwise="FlexAttention fails with few queries",
    ),
)

_installed: list[bool] = []


def install() -> None:
    """Has each hook made when torch imports its module. A second call does nothing."""
    if _installed:
        return
    _installed.append(True)
    for hook in HOOKS:
        if not hook.is_due:
            continue
        if hook.place:
            after_import(hook.place, hook.apply)
        else:
            hook.leave_out([hook.module])
