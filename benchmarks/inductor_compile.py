"""Compile time of torch.compile on ``spirv``, compared with Inductor's C++ for the CPU and with Triton for CUDA.

Each graph is compiled by Inductor in this process with all caches off: for ``spirv`` tensors, then as C++ for CPU
tensors. The first call is timed, of which Triton's part, and the rest: Dynamo, Inductor and the driver, or the C++
compiler. The kernels that Inductor generated for ``spirv`` are then compiled in turn to SPIR-V and, by upstream's own
backend, to a cubin for sm_90, for which no GPU is needed. Takes 80 seconds of processor time on two cores.

    python -m benchmarks.inductor_compile [--runs N] [GRAPH …]
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import nn
from torch.nn import functional
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

from examples.train_gpt import Block

CUDA = GPUTarget("cuda", 90, 32)


def _pointwise(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * 2 + 1) * torch.sigmoid(x) - functional.gelu(x)


#: What makes the function that is compiled, and the shape of its input.
Graph = tuple[Callable[[], Callable[..., torch.Tensor]], tuple[int, ...]]

GRAPHS: dict[str, Graph] = {
    "pointwise chain": (lambda: _pointwise, (64, 1000)),
    "softmax": (lambda: lambda x: torch.softmax(x, -1), (64, 1000)),
    "layer norm": (lambda: nn.LayerNorm(768), (64, 768)),
    "MLP": (lambda: nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64)), (32, 64)),
    "GPT block": (lambda: Block(64, 4), (2, 32, 64)),
}


@dataclass(frozen=True)
class Kernel:
    """A kernel that Inductor compiled: Triton's source, target and options."""

    source: ASTSource
    target: GPUTarget
    options: dict[str, Any]

    def seconds(self, target: GPUTarget) -> float:
        """One compilation for a target."""
        source = ASTSource(self.source.fn, self.source.signature, self.source.constants, self.source.attrs)
        options = {name: self.options[name] for name in ("num_warps", "num_stages") if name in self.options}
        start = time.perf_counter()
        triton.compile(source, target=target, options=options)
        return time.perf_counter() - start


@dataclass
class Recorder:
    """Stands for triton.compile: ``kernels`` are those that were compiled, in ``seconds``."""

    compile: Any
    kernels: list[Kernel]
    seconds: float = 0.0

    def __call__(self, src: Any, target: Any = None, options: Any = None, **rest: Any) -> Any:
        start = time.perf_counter()
        try:
            return self.compile(src, target=target, options=options, **rest)
        finally:
            self.seconds += time.perf_counter() - start
            self.kernels.append(Kernel(src, target, dict(options or {})))


def first_call(graph: Graph, device: str) -> tuple[float, Recorder]:
    """Seconds until a graph's first result, and what Triton compiled for it."""
    make, shape = graph
    torch.manual_seed(0)
    function, x = make(), torch.randn(shape)
    if isinstance(function, nn.Module):
        function = function.to(device)
    x = x.to(device)
    torch._dynamo.reset()
    recorder = Recorder(triton.compile, [])
    triton.compile = recorder
    try:
        start = time.perf_counter()
        with torch.no_grad():
            torch.compile(function)(x).cpu()
        return time.perf_counter() - start, recorder
    finally:
        triton.compile = recorder.compile


def main() -> None:
    """Prints a line a graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="compilations of each kernel for each target")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"of {', '.join(GRAPHS)}; all without one")
    arguments = parser.parse_args()
    unknown = set(arguments.graphs) - GRAPHS.keys()
    if unknown:
        parser.error(f"there is no graph {', '.join(sorted(unknown))}")
    folder = tempfile.mkdtemp()
    # Called after the device is closed, which saves what it compiled.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder  # the driver's cache, too
    import torch._inductor.config as inductor

    inductor.force_disable_caches, inductor.compile_threads = True, 1
    knobs.compilation.always_compile = True
    for device in ("spirv", "cpu"):  # what is imported and started once
        first_call((lambda: torch.cos, (8, 8)), device)
    print(f"{'graph':16} {'kernels':>7} {'spirv':>8} {'of it Triton':>12} {'C++':>8} {'ratio':>6}", end="")
    print(f" {'to SPIR-V':>10} {'to cubin':>10} {'ratio':>6}")
    for name in arguments.graphs or GRAPHS:
        spirv, compiled = first_call(GRAPHS[name], "spirv")
        cpu, _ = first_call(GRAPHS[name], "cpu")
        ours = theirs = 0.0
        for kernel in compiled.kernels:
            times = [(kernel.seconds(kernel.target), kernel.seconds(CUDA)) for _ in range(arguments.runs + 1)][1:]
            ours += statistics.median(one for one, _ in times)
            theirs += statistics.median(other for _, other in times)
        print(
            f"{name:16} {len(compiled.kernels):7} {spirv:6.2f} s {compiled.seconds:10.2f} s {cpu:6.2f} s"
            f" {spirv / cpu:6.2f} {1e3 * ours:7.0f} ms {1e3 * theirs:7.0f} ms {ours / theirs:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
