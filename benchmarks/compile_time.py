"""Compile time: from ``@triton.jit`` source to a .spv, against upstream's CUDA path to a cubin.

Both run in this process, in turn, with the cache off: ``python -m benchmarks.compile_time [--runs N]``. No GPU is
needed: the CUDA target is sm_80, compiled by upstream's own backend.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

from examples.fused_softmax import softmax_kernel
from examples.matmul import matmul_kernel
from examples.vector_add import add_kernel

ALIGNED = [["tt.divisibility", 16]]
CUDA = GPUTarget("cuda", 80, 32)


@dataclass(frozen=True)
class Source:
    """A kernel with its signature; the names in ``aligned`` are divisible by 16."""

    name: str
    kernel: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    aligned: tuple[str, ...]

    def make(self) -> ASTSource:
        """What triton.compile takes."""
        names = self.kernel.arg_names
        signature = {name: self.signature.get(name, "constexpr") for name in names}
        attributes = {(names.index(name),): ALIGNED for name in self.aligned}
        return ASTSource(self.kernel, signature, self.constants, attributes)


def integers(*names: str) -> dict[str, str]:
    """A signature of 32-bit integers."""
    return dict.fromkeys(names, "i32")


SOURCES = (
    Source(
        "vector add",
        add_kernel,
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "size": "i32"},
        {"BLOCK": 1024},
        ("x_ptr", "y_ptr", "out_ptr", "size"),
    ),
    Source(
        "softmax",
        softmax_kernel,
        {"out_ptr": "*fp32", "x_ptr": "*fp32", **integers("row_stride", "columns")},
        {"BLOCK": 1024},
        ("out_ptr", "x_ptr"),
    ),
    Source(
        "matmul 64×64×32 fp16",
        matmul_kernel,
        {
            "a_ptr": "*fp16",
            "b_ptr": "*fp16",
            "c_ptr": "*fp16",
            **integers("M", "N", "K", "stride_am", "stride_bk", "stride_cm"),
        },
        {
            "stride_ak": 1,
            "stride_bn": 1,
            "stride_cn": 1,
            "BLOCK_M": 64,
            "BLOCK_N": 64,
            "BLOCK_K": 32,
            "GROUP": 8,
            "ACTIVATION": "",
        },
        ("a_ptr", "b_ptr", "c_ptr", "M", "N", "K", "stride_am", "stride_bk", "stride_cm"),
    ),
)


def seconds(source: Source, target: GPUTarget) -> float:
    """One compilation."""
    start = time.perf_counter()
    triton.compile(source.make(), target=target, options={"num_warps": 4})
    return time.perf_counter() - start


def main() -> None:
    """Prints a line a kernel: both medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--target", default="lavapipe", help="device profile to compile for")
    arguments = parser.parse_args()
    from triton.backends.spirv.capabilities import Capabilities

    spirv = GPUTarget("spirv", arguments.target, Capabilities.parse(arguments.target).subgroup_size)
    knobs.compilation.always_compile = True
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        print(f"{'kernel':24} {'to .spv':>10} {'to cubin':>10} {'ratio':>7}")
        for source in SOURCES:
            times: dict[str, list[float]] = {"spirv": [], "cuda": []}
            for run in range(arguments.runs + 1):
                for target in (spirv, CUDA):
                    elapsed = seconds(source, target)
                    if run:
                        times[target.backend].append(elapsed)
            ours, theirs = (statistics.median(times[name]) for name in ("spirv", "cuda"))
            print(f"{source.name:24} {1e3 * ours:7.1f} ms {1e3 * theirs:7.1f} ms {ours / theirs:7.2f}")


if __name__ == "__main__":
    main()
