"""Shared memory that kernels with dots take, against what upstream's layouts for sm_80 take and what devices have."""

from dataclasses import replace
from typing import Any

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.target import target_of
from triton.compiler.compiler import ASTSource
from triton.runtime.errors import OutOfResources

from examples.flash_attention import forward_kernel
from examples.matmul import matmul_kernel

KIB = 1024


def _source(kernel: Any, types: dict[str, str], constants: dict[str, Any]) -> ASTSource:
    names = kernel.arg_names
    signature = {name: types.get(name, "constexpr") for name in names}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in types if types[name] != "fp32"}
    return ASTSource(kernel, signature, constants, aligned)


def matmul(element: str, m: int, n: int, k: int) -> ASTSource:
    types = {
        **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), f"*{element}"),
        **dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32"),
    }
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8, "ACTIVATION": ""}
    return _source(matmul_kernel, types, {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1, **blocks})


def attention(element: str, m: int, n: int, head: int) -> ASTSource:
    types = {
        **dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), f"*{element}"),
        "log_sum_ptr": "*fp32",
        "length": "i32",
        "scale": "fp32",
    }
    return _source(forward_kernel, types, {"HEAD": head, "BLOCK_M": m, "BLOCK_N": n, "CAUSAL": False})


#: Name → source, num_warps, bytes that upstream 3.9.0 takes for sm_80 with num_stages=1, at most so many here.
KERNELS = {
    "fp16 attention 128×128×64": (attention("fp16", 128, 128, 64), 4, 49152, 49152),
    "fp16 attention 128×64×128": (attention("fp16", 128, 64, 128), 4, 65536, 49152),
    "fp32 attention 64×64×64": (attention("fp32", 64, 64, 64), 4, 49152, 49152),
    "fp32 attention 128×128×64": (attention("fp32", 128, 128, 64), 8, 131584, 98304),
    "fp32 product 128×128×64": (matmul("fp32", 128, 128, 64), 8, 65536, 32768),
    "fp32 product 128×256×64": (matmul("fp32", 128, 256, 64), 8, 98304, 49152),
    "fp16 product 128×256×64": (matmul("fp16", 128, 256, 64), 8, 49152, 49152),
}


def shared_bytes(source: ASTSource, capabilities: Capabilities, units: str, warps: int, stages: int = 1) -> int:
    target = target_of(capabilities)
    options = {"num_warps": warps, "num_stages": stages, "matrix_units": units}
    try:
        return int(triton.compile(source, target=target, options=options).metadata.shared)
    except OutOfResources as error:
        return int(error.required)


@pytest.mark.parametrize("units", ["0", "auto"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_more_than_upstream_takes(name: str, units: str) -> None:
    source, warps, upstream, most = KERNELS[name]
    found = shared_bytes(source, PROFILES["nvidia-hopper"], units, warps)
    assert found <= most <= upstream


def test_more_stages_take_no_more_than_there_is() -> None:
    source, warps, _, most = KERNELS["fp32 product 128×128×64"]
    assert shared_bytes(source, PROFILES["nvidia-hopper"], "auto", warps, stages=4) <= most


#: (kernel, profile) → bytes at most, where a device with subgroups like those had 48 KiB. Upstream allocates 49,152 for
#: the attention with 8 lanes. Without VK_KHR_workgroup_memory_explicit_layout each type of element has an array of its
#: own: next to that of the halves there is one for f32, of 512 bytes for the conversion of a value a row (generic), or
#: of 1,024 for a reduction over subgroups (lavapipe). The product for intel-xe has buffers of 65,536 bytes at least,
#: with every number of subgroups and any pieces; Intel's GPUs have 64 KiB.
OTHERS = {
    ("fp16 attention 128×64×128", "lavapipe"): 50176,
    ("fp16 attention 128×64×128", "generic"): 49664,
    ("fp32 product 128×256×64", "lavapipe"): 49152,
    ("fp32 product 128×256×64", "generic"): 49152,
    ("fp16 attention 128×64×128", "intel-xe"): 49152,
    ("fp32 product 128×256×64", "intel-xe"): 65536,
}


@pytest.mark.parametrize(("name", "profile"), OTHERS)
def test_other_subgroups_take_little_more(name: str, profile: str) -> None:
    source, warps, upstream, _ = KERNELS[name]
    capabilities = replace(PROFILES[profile], shared_bytes=48 * KIB)
    assert shared_bytes(source, capabilities, "auto", warps) <= OTHERS[name, profile] <= upstream


def test_upstreams_figure_is_upstreams() -> None:
    source, warps, upstream, _ = KERNELS["fp16 product 128×256×64"]
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps, "num_stages": 1})
    assert compiled.metadata.shared == upstream
