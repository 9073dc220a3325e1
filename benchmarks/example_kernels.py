"""The kernels of the examples and how the examples launch them, for what compiles them all."""

from __future__ import annotations

_SCALED = (
    "*u8:16, *u8:16, *u8:16, *u8:16, *fp32:16, i32, i32, i32:16, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, "
    "RUN=32, A_FORMAT='{}', B_FORMAT='{}'"
)
_MATMUL = (
    "*{0}:16, *{0}:16, *{0}:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, "
    "BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP=8, ACTIVATION='{1}'"
)
_GRADIENTS = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16"
_CAUSAL = "i32, fp32, HEAD=32, BLOCK_M=32, BLOCK_N=32, CAUSAL={}"

#: (example, kernel, signature): the types and constants that the example launches its kernel with, as
#: ``triton-spirv compile`` takes them.
KERNELS = [
    ("block_scaled_matmul", "scaled_kernel", _SCALED.format("e2m1", "e2m1")),
    ("block_scaled_matmul", "scaled_kernel", _SCALED.format("e4m3", "e5m2")),
    ("data_parallel", "error_kernel", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, fp32, 1024"),
    ("data_parallel", "descend_kernel", "*fp32:16, *fp32:16, i32:16, fp32, 1024"),
    ("extern_functions", "gelu_kernel", "*fp32:16, *fp32:16, i32, 1024"),
    ("extern_functions", "polar_kernel", "*fp32:16, *fp32:16, *fp32:16, *fp32, i32, 1024"),
    (
        "flash_attention",
        "forward_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, fp32, HEAD=64, BLOCK_M=32, BLOCK_N=32, CAUSAL=False",
    ),
    (
        "flash_attention",
        "forward_kernel",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, i32, fp32, HEAD=64, BLOCK_M=64, BLOCK_N=64, CAUSAL=True",
    ),
    ("flash_attention", "row_products_kernel", "*fp32:16, *fp32:16, *fp32:16, i32:16, HEAD=32, BLOCK=64"),
    ("flash_attention", "key_gradients_kernel", f"{_GRADIENTS}, *fp32:16, *fp32:16, {_CAUSAL.format(True)}"),
    ("flash_attention", "query_gradients_kernel", f"{_GRADIENTS}, *fp32:16, {_CAUSAL.format(False)}"),
    ("fused_softmax", "softmax_kernel", "*fp32:16, *fp32:16, i32, i32, 1024"),
    (
        "grouped_gemm",
        "grouped_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *i32:16, i32, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, FIELDS=6",
    ),
    (
        "layer_norm",
        "layer_norm_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, fp32, 1024",
    ),
    (
        "layer_norm_backward",
        "input_gradient_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, BLOCK=1024",
    ),
    ("layer_norm_backward", "sum_parts_kernel", "*fp32:16, *fp32:16, i32, i32, BLOCK_PARTS=32, BLOCK=128"),
    ("low_memory_dropout", "dropout_kernel", "*fp32:16, *fp32:16, i32, fp32, i32, 1024"),
    ("low_memory_dropout", "dropout_kernel", "*fp32:16, *fp32:16, i32, fp32, i64, 1024"),
    ("matmul", "matmul_kernel", _MATMUL.format("fp32", "")),
    ("matmul", "matmul_kernel", _MATMUL.format("fp16", "leaky_relu")),
    (
        "persistent_matmul",
        "persistent_kernel",
        "tensordesc<fp32[64, 32]>, tensordesc<fp32[32, 64]>, tensordesc<fp32[64, 64]>, i32, i32, i32",
    ),
    (
        "persistent_matmul",
        "device_descriptors_kernel",
        "*fp32:16, *fp32:16, *fp32:16, i32, i32, i32, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32",
    ),
    ("vector_add", "add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024"),
]
