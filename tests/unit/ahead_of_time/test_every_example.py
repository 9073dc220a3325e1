"""Every kernel of every example compiles ahead of time for every profile that comes with the backend, and validates."""
from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.runtime.abi import json_path, read_abi

EXAMPLES = Path(__file__).parents[3] / "examples"

_SCALED = ("*u8:16, *u8:16, *u8:16, *u8:16, *fp32:16, i32, i32, i32:16, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, "
           "RUN=32, A_FORMAT='{}', B_FORMAT='{}'")
_MATMUL = ("*{0}:16, *{0}:16, *{0}:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, "
           "BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP=8, ACTIVATION='{1}'")
_GRADIENTS = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16"
_CAUSAL = "i32, fp32, HEAD=32, BLOCK_M=32, BLOCK_N=32, CAUSAL={}"

#: (example, kernel, signature): the types and constants that the example launches its kernel with.
KERNELS = [
    ("block_scaled_matmul", "scaled_kernel", _SCALED.format("e2m1", "e2m1")),
    ("block_scaled_matmul", "scaled_kernel", _SCALED.format("e4m3", "e5m2")),
    ("data_parallel", "error_kernel", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, fp32, 1024"),
    ("data_parallel", "descend_kernel", "*fp32:16, *fp32:16, i32:16, fp32, 1024"),
    ("extern_functions", "gelu_kernel", "*fp32:16, *fp32:16, i32, 1024"),
    ("extern_functions", "polar_kernel", "*fp32:16, *fp32:16, *fp32:16, *fp32, i32, 1024"),
    ("flash_attention", "forward_kernel",
     "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, fp32, HEAD=64, BLOCK_M=32, BLOCK_N=32, CAUSAL=False"),
    ("flash_attention", "forward_kernel",
     "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, i32, fp32, HEAD=64, BLOCK_M=64, BLOCK_N=64, CAUSAL=True"),
    ("flash_attention", "row_products_kernel", "*fp32:16, *fp32:16, *fp32:16, i32:16, HEAD=32, BLOCK=64"),
    ("flash_attention", "key_gradients_kernel", f"{_GRADIENTS}, *fp32:16, *fp32:16, {_CAUSAL.format(True)}"),
    ("flash_attention", "query_gradients_kernel", f"{_GRADIENTS}, *fp32:16, {_CAUSAL.format(False)}"),
    ("fused_softmax", "softmax_kernel", "*fp32:16, *fp32:16, i32, i32, 1024"),
    ("grouped_gemm", "grouped_kernel",
     "*fp32:16, *fp32:16, *fp32:16, *i32:16, i32, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, FIELDS=6"),
    ("layer_norm", "layer_norm_kernel",
     "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, fp32, 1024"),
    ("layer_norm_backward", "input_gradient_kernel",
     "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, BLOCK=1024"),
    ("layer_norm_backward", "sum_parts_kernel", "*fp32:16, *fp32:16, i32, i32, BLOCK_PARTS=32, BLOCK=128"),
    ("low_memory_dropout", "dropout_kernel", "*fp32:16, *fp32:16, i32, fp32, i32, 1024"),
    ("low_memory_dropout", "dropout_kernel", "*fp32:16, *fp32:16, i32, fp32, i64, 1024"),
    ("matmul", "matmul_kernel", _MATMUL.format("fp32", "")),
    ("matmul", "matmul_kernel", _MATMUL.format("fp16", "leaky_relu")),
    ("persistent_matmul", "persistent_kernel",
     "tensordesc<fp32[64, 32]>, tensordesc<fp32[32, 64]>, tensordesc<fp32[64, 64]>, i32, i32, i32"),
    ("persistent_matmul", "device_descriptors_kernel",
     "*fp32:16, *fp32:16, *fp32:16, i32, i32, i32, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32"),
    ("vector_add", "add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024"),
]


def _kernels_of(path: Path) -> set[tuple[str, str]]:
    """The @triton.jit functions of an example that are kernels: those that return nothing."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return {(path.stem, node.name) for node in functions
            if any(ast.unparse(decorator).startswith("triton.jit") for decorator in node.decorator_list)
            and not any(isinstance(inner, ast.Return) and inner.value for inner in ast.walk(node))}


def test_no_kernel_is_left_out() -> None:
    there = {kernel for path in EXAMPLES.glob("*.py") for kernel in _kernels_of(path)}
    assert there == {(example, kernel) for example, kernel, _ in KERNELS}


def test_the_profiles_that_are_promised_are_there() -> None:
    assert {"generic", "lavapipe", "nvidia-hopper", "amd-rdna3", "intel-xe"} <= PROFILES.keys()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("example", "kernel", "signature"), KERNELS)
def test_compiles_and_validates(example: str, kernel: str, signature: str, profile: str, tmp_path: Path,
                                capfd: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / f"{kernel}.spv"
    status = cli.main(["compile", f"{EXAMPLES / example}.py:{kernel}", "--signature", signature, "--target", profile,
                       "-o", str(module)])
    assert status == 0, capfd.readouterr().err
    tool = shutil.which("spirv-val")
    assert tool is not None, "apt-get install spirv-tools"
    checked = subprocess.run([tool, "--target-env", "vulkan1.3", str(module)], capture_output=True, text=True,
                             check=False)
    assert checked.returncode == 0, checked.stderr
    capabilities = PROFILES[profile]
    abi = read_abi(module, module.read_bytes())
    assert json_path(module).is_file() and abi.kernel == kernel and abi.target == capabilities.arch()
    assert set(abi.required_features) <= capabilities.features
    assert abi.shared_bytes <= capabilities.shared_bytes
    assert abi.subgroup_size == capabilities.subgroup_size
    size, *others = abi.workgroup_size
    # Four warps, of up to 32 lanes where subgroups have fewer (backend/workgroup.py).
    assert others == [1, 1] and 4 * capabilities.subgroup_size <= size <= 4 * max(32, capabilities.subgroup_size)
