"""The same kernels through this backend and through upstream's CUDA backend, on one GPU, in one run.

Each backend runs in a process of its own, one after the other, with data in the GPU's memory: device buffers of the
SPIR-V backend's runtime, and CUDA tensors of torch. Every result is checked on the host in float64 before it is timed;
times are medians of triton.testing.do_bench, which takes the device's own timestamps and clears the cache before each
call. Where a kernel has several configurations, each backend's fastest counts; what does not fit a device is left out.
Launches are measured in several processes of each backend, turn about, and the median process counts.
Prints a table with the ratio of the rates (CUDA = 1), and writes JSON and a chart where asked to.

    python benchmarks/gpu.py [--only NAME[,NAME]] [--backends spirv,nvidia] [--json FILE] [--chart FILE] [--seconds N]
    python benchmarks/gpu.py --check [--only …] [--backends …]: no times, the error of every configuration
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
BACKENDS = {"spirv": "SPIR-V", "nvidia": "CUDA"}
#: Processes of each backend that measure launches, turn about: what a process has at its start, such as where its
#: memory lies, moves these figures more than anything within it.
LAUNCH_ROUNDS = 5


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(
        out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside), mask=inside
    )


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + offsets, mask=inside, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row + offsets, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, epsilon, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + offsets, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offsets, mask=inside)
    bias = tl.load(bias_ptr + offsets, mask=inside)
    tl.store(out_ptr + row + offsets, centred * scale * weight + bias, mask=inside)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    TOTAL: tl.constexpr = tl.float32,
):
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = program // (GROUP * tiles_n) * GROUP
    group = min(tiles_m - first_m, GROUP)
    tile_m = first_m + program % (GROUP * tiles_n) % group
    tile_n = program % (GROUP * tiles_n) // group
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + steps[None, :]
    b_ptrs = b_ptr + steps[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), TOTAL)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total, input_precision="ieee", out_dtype=TOTAL)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(c_ptr.dtype.element_ty))


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    DEPTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr = False,
):
    """One block of queries of one head against all keys, or those up to each query, with a running maximum and sum of
    each row."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    head = tl.program_id(1) * length * DEPTH
    depth = tl.arange(0, DEPTH)
    keys = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + head + rows[:, None] * DEPTH + depth[None, :])
    k_ptrs = k_ptr + head + keys[None, :] * DEPTH + depth[:, None]
    v_ptrs = v_ptr + head + keys[:, None] * DEPTH + depth[None, :]
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, DEPTH), tl.float32)
    end = (tl.program_id(0) + 1) * BLOCK_M if CAUSAL else length
    for start in range(0, end, BLOCK_N):
        scores = tl.dot(q, tl.load(k_ptrs)) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= start + keys[None, :], scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new_highest[:, None])
        shrink = tl.exp2(highest - new_highest)
        weight = weight * shrink + tl.sum(powers, axis=1)
        total = tl.dot(powers.to(tl.float16), tl.load(v_ptrs), total * shrink[:, None])
        highest = new_highest
        k_ptrs += BLOCK_N * DEPTH
        v_ptrs += BLOCK_N * DEPTH
    tl.store(out_ptr + head + rows[:, None] * DEPTH + depth[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def increment_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) + 1, mask=offsets < n)


class SpirvMemory:
    """Arrays in the memory of the Vulkan device."""

    def __init__(self) -> None:
        from triton.backends.spirv import runtime
        from triton.backends.spirv.runtime.context import current

        self._runtime = runtime
        self.device = current().device.name

    def put(self, array: np.ndarray) -> Any:
        """The array on the device."""
        return self._runtime.from_numpy(array)

    def get(self, tensor: Any) -> np.ndarray:
        """The tensor's values."""
        return tensor.to_numpy()


class CudaMemory:
    """CUDA tensors of torch."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.device = torch.cuda.get_device_name()

    def put(self, array: np.ndarray) -> Any:
        """The array on the device."""
        if array.dtype == BFLOAT16:
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16).cuda()
        return self._torch.from_numpy(array).cuda()

    def get(self, tensor: Any) -> np.ndarray:
        """The tensor's values."""
        if tensor.dtype == self._torch.bfloat16:
            return tensor.view(self._torch.int16).cpu().numpy().view(BFLOAT16)
        return tensor.cpu().numpy()


@dataclass
class Case:
    """A kernel to measure. ``run(config)`` launches it; ``error(values)`` is its result's relative error.

    ``amount``: bytes moved or operations of one call; ``unit``: what the rate is given in, and the divisor.
    """

    name: str
    unit: tuple[str, float]
    amount: float
    out: Any
    run: Callable[[dict[str, Any]], Any]
    error: Callable[[np.ndarray], float]
    tolerance: float
    configs: list[dict[str, Any]] = field(default_factory=list)


GIGABYTES, TERAFLOPS = ("GB/s", 1e9), ("TFLOP/s", 1e12)
_RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Random numbers of the standard normal distribution."""
    return _RNG.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)


def relative_error(values: np.ndarray, expected: np.ndarray) -> float:
    """‖values − expected‖ / ‖expected‖, NaN where any value is."""
    return float(np.linalg.norm((values.astype(np.float64) - expected).ravel()) / np.linalg.norm(expected.ravel()))


def poisoned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """What an output holds before the first run: NaN, which no comparison passes."""
    return np.full(shape, np.nan, dtype)


def vector_add(memory: Any) -> Case:
    n = 1 << 27
    x, y = normal(n), normal(n)
    device_x, device_y, out = memory.put(x), memory.put(y), memory.put(poisoned((n,)))

    def run(config: dict[str, Any]) -> Any:
        return add_kernel[(triton.cdiv(n, config["BLOCK"]),)](device_x, device_y, out, n, **config)

    return Case(
        "vector add 2^27 fp32",
        GIGABYTES,
        3 * x.nbytes,
        out,
        run,
        lambda values: relative_error(values, x.astype(np.float64) + y),
        1e-6,
        [{"BLOCK": block, "num_warps": warps} for block, warps in ((1024, 4), (1024, 8), (2048, 8), (512, 4))],
    )


def _rows(memory: Any, name: str, launch: Callable[..., Any], reference: Callable[[np.ndarray], np.ndarray]) -> Case:
    """A kernel that maps each row of an 8192×4096 matrix."""
    rows, columns = 8192, 4096
    x = normal(rows, columns)
    device_x, out = memory.put(x), memory.put(poisoned((rows, columns)))
    sample = np.arange(0, rows, 97)
    return Case(
        f"{name} 8192×4096 fp32",
        GIGABYTES,
        2 * x.nbytes,
        out,
        lambda config: launch((rows,), device_x, out, columns, config),
        lambda values: relative_error(values[sample], reference(x[sample].astype(np.float64))),
        1e-5,
        [{"BLOCK": columns, "num_warps": warps} for warps in (4, 8, 16)],
    )


def softmax(memory: Any) -> Case:
    def reference(x: np.ndarray) -> np.ndarray:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return _rows(
        memory,
        "softmax",
        lambda grid, x, out, columns, config: softmax_kernel[grid](x, out, columns, **config),
        reference,
    )


def layer_norm(memory: Any) -> Case:
    weight, bias = normal(4096), normal(4096)
    device_weight, device_bias = memory.put(weight), memory.put(bias)

    def reference(x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias

    def launch(grid: Any, x: Any, out: Any, columns: int, config: dict[str, Any]) -> Any:
        return layer_norm_kernel[grid](x, device_weight, device_bias, out, columns, 1e-5, **config)

    return _rows(memory, "layer norm", launch, reference)


def _matmul(memory: Any, dtype: Any, tolerance: float, blocks: Iterable[tuple[int, ...]], size: int = 4096) -> Case:
    whole = dtype == np.int8
    a, b = (
        _RNG.integers(-128, 128, (size, size), np.int8) if whole else normal(size, size, dtype=dtype) for _ in range(2)
    )
    out_type = np.int32 if whole else dtype
    device_a, device_b = memory.put(a), memory.put(b)
    out = memory.put(np.full((size, size), -1, np.int32) if whole else poisoned((size, size), out_type))
    sample = np.arange(0, size, 101)

    def run(config: dict[str, Any]) -> Any:
        grid = (size // config["BLOCK_M"] * (size // config["BLOCK_N"]),)
        total = tl.int32 if whole else tl.float32
        return matmul_kernel[grid](device_a, device_b, out, size, size, size, TOTAL=total, **config)

    keys = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
    names = {"float32": "fp32 ieee", "float16": "fp16", "bfloat16": "bf16"}
    return Case(
        f"matmul {size}³ {names.get(np.dtype(dtype).name, np.dtype(dtype).name)}",
        TERAFLOPS,
        2 * size**3,
        out,
        run,
        lambda values: relative_error(values[sample], a[sample].astype(np.float64) @ b.astype(np.float64)),
        tolerance,
        [{**dict(zip(keys, block, strict=True)), "GROUP": 8} for block in blocks],
    )


#: Tiles of products on matrix units: BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages.
TILES = (
    (128, 128, 32, 4, 3),
    (128, 256, 64, 8, 3),
    (128, 128, 64, 8, 3),
    (64, 64, 32, 4, 3),
    (128, 128, 32, 8, 2),
    (128, 256, 32, 8, 3),
    (128, 128, 64, 4, 3),
)


def matmul_fp32(memory: Any) -> Case:
    return _matmul(
        memory,
        np.float32,
        1e-5,
        [
            (128, 128, 16, 8, 3),
            (64, 64, 16, 4, 3),
            (128, 64, 16, 4, 3),
            (128, 128, 32, 8, 2),
            (64, 64, 32, 4, 2),
            (128, 128, 8, 8, 3),
        ],
    )


def matmul_fp16(memory: Any) -> Case:
    return _matmul(memory, np.float16, 1e-3, TILES)


def matmul_fp16_8192(memory: Any) -> Case:
    return _matmul(memory, np.float16, 1e-3, TILES, 8192)


def matmul_bf16(memory: Any) -> Case:
    return _matmul(memory, BFLOAT16, 8e-3, TILES)


def matmul_int8(memory: Any) -> Case:
    return _matmul(memory, np.int8, 0.0, ((128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (64, 64, 64, 4, 3)))


def attention(memory: Any) -> Case:
    return _attention(memory, 64, False)


def attention_128(memory: Any) -> Case:
    return _attention(memory, 128, False)


def attention_causal(memory: Any) -> Case:
    return _attention(memory, 64, True)


def attention_128_causal(memory: Any) -> Case:
    return _attention(memory, 128, True)


def _attention(memory: Any, depth: int, causal: bool) -> Case:
    heads, length = 32, 4096
    q, k, v = (normal(heads, length, depth, dtype=np.float16) for _ in range(3))
    device = [memory.put(array) for array in (q, k, v)]
    out = memory.put(poisoned((heads, length, depth), np.float16))
    scale = depth**-0.5

    def run(config: dict[str, Any]) -> Any:
        return attention_kernel[(length // config["BLOCK_M"], heads)](
            *device, out, length, scale * 1.4426950408889634, DEPTH=depth, CAUSAL=causal, **config
        )

    def error(values: np.ndarray) -> float:
        rows = np.arange(0, length, 129)
        worst = 0.0
        for head in (0, heads - 1):
            scores = q[head, rows].astype(np.float64) @ k[head].astype(np.float64).T * scale
            if causal:
                scores = np.where(rows[:, None] >= np.arange(length)[None, :], scores, -np.inf)
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            expected = powers / powers.sum(axis=1, keepdims=True) @ v[head].astype(np.float64)
            worst = max(worst, relative_error(values[head, rows], expected))
        return worst

    return Case(
        f"attention 32×4096×{depth}{' causal' if causal else ''}",
        TERAFLOPS,
        4 * heads * length * length * depth / (2 if causal else 1),
        out,
        run,
        error,
        2e-3,
        [
            {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps, "num_stages": stages}
            for m, n, warps, stages in ((128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 2), (64, 32, 4, 2))
        ],
    )


CASES: dict[str, Callable[[Any], Case]] = {
    "add": vector_add,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "matmul_fp32": matmul_fp32,
    "matmul_fp16": matmul_fp16,
    "matmul_fp16_8192": matmul_fp16_8192,
    "matmul_bf16": matmul_bf16,
    "matmul_int8": matmul_int8,
    "attention": attention,
    "attention_128": attention_128,
    "attention_causal": attention_causal,
    "attention_128_causal": attention_128_causal,
}


def _warm_up(run: Callable[[], Any], seconds: float = 0.5) -> None:
    """Runs until the device's clocks are up: they fall while the host prepares data, and take their time to rise."""
    synchronize = triton.runtime.driver.active.get_device_interface().synchronize
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(10):
            run()
        synchronize()


def _measure(case: Case, memory: Any, seconds: float, timed: bool = True) -> dict[str, Any]:
    """The fastest right configuration of a case, and each configuration's figure or failure. Where it is not ``timed``,
    each is run once, and the figure is its relative error."""
    tried: list[dict[str, Any]] = []
    start = time.perf_counter()
    for config in case.configs:
        if tried and time.perf_counter() - start > seconds:
            tried.append({"config": config, "failure": f"not tried: the {seconds:.0f} s of this kernel are spent"})
            continue
        entry: dict[str, Any] = {"config": config}
        tried.append(entry)
        try:
            compiling = time.perf_counter()
            case.run(config)
            values = memory.get(case.out)
            entry["first_call_s"] = time.perf_counter() - compiling
            entry["error"] = case.error(values)
            if not entry["error"] <= case.tolerance:
                entry["failure"] = f"wrong: relative error {entry['error']:.3g}, allowed {case.tolerance:g}"
                continue
            if not timed:
                entry["rate"] = entry["error"]
                continue
            bench = triton.runtime.driver.active.get_benchmarker()
            _warm_up(lambda config=config: case.run(config))
            entry["ms"] = bench(lambda config=config: case.run(config), quantiles=(0.5, 0.2, 0.8))[0]
            entry["rate"] = case.amount / case.unit[1] / (entry["ms"] * 1e-3)
        except Exception as error:
            entry["failure"] = f"{type(error).__name__}: {str(error).strip()[:300]}"
        print(f"  {case.name} {entry}", file=sys.stderr, flush=True)
    right = [entry for entry in tried if "rate" in entry]
    best = max(right, key=lambda entry: entry["rate"]) if right else {"failure": tried[0].get("failure", "?")}
    return {"name": case.name, "unit": case.unit[0] if timed else "error", **best, "tried": tried}


def _launches(memory: Any) -> list[dict[str, Any]]:
    """Microseconds of a launch of a tiny kernel: submitted back to back, and waited for one by one."""
    tensor = memory.put(np.zeros(64, np.float32))
    synchronize = triton.runtime.driver.active.get_device_interface().synchronize
    warps = 2
    launched = 0

    def launch() -> None:
        nonlocal launched
        launched += 1
        increment_kernel[(1,)](tensor, 64, BLOCK=64, num_warps=warps)

    def back_to_back(count: int = 1000) -> float:
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            launch()
        spent = time.perf_counter() - start
        synchronize()
        return spent / count * 1e6

    def one_by_one(count: int = 500) -> float:
        start = time.perf_counter()
        for _ in range(count):
            launch()
            synchronize()
        return (time.perf_counter() - start) / count * 1e6

    _warm_up(launch)
    asynchronous, synchronous = zip(*((back_to_back(), one_by_one()) for _ in range(9)), strict=True)
    figures = [
        ("asynchronous launch", statistics.median(asynchronous)),
        ("synchronous launch", statistics.median(synchronous)),
    ]
    synchronize()
    if not (memory.get(tensor) == launched).all():
        lost = {"unit": "µs", "failure": "wrong: launches were lost", "tried": []}
        return [{"name": name, **lost} for name, _ in figures]
    return [{"name": name, "unit": "µs", "rate": value, "tried": []} for name, value in figures]


def work(backend: str, names: list[str], seconds: float, target: Path, timed: bool = True) -> None:
    """Measure one backend in this process, or only check its results, and write the figures."""
    memory = SpirvMemory() if backend == "spirv" else CudaMemory()
    results = []
    for name in names:
        if name == "launches":
            results += _launches(memory)
            continue
        try:
            results.append(_measure(CASES[name](memory), memory, seconds, timed))
        except Exception as error:
            results.append({"name": name, "unit": "", "failure": f"{type(error).__name__}: {error}", "tried": []})
    target.write_text(json.dumps({"backend": backend, "device": memory.device, "results": results}))


def _spawn(backend: str, names: list[str], seconds: float, timed: bool = True) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figures.json"
        environment = {**os.environ, "TRITON_DEFAULT_BACKEND": backend}
        command = [
            sys.executable,
            __file__,
            "--worker",
            backend,
            "--only",
            ",".join(names),
            "--json",
            str(target),
            "--seconds",
            str(seconds),
            *([] if timed else ["--check"]),
        ]
        done = subprocess.run(command, env=environment, check=False)
        if not target.exists():
            return {
                "backend": backend,
                "device": "",
                "results": [],
                "failure": f"its process ended with {done.returncode}",
            }
        found: dict[str, Any] = json.loads(target.read_text())
        return found


def _failed(result: dict[str, Any]) -> bool:
    return "failure" in result or any("failure" in entry for entry in result["results"])


def _alternate(backends: list[str], seconds: float) -> dict[str, dict[str, Any]]:
    """Launches in LAUNCH_ROUNDS processes of each backend, turn about: the median of each figure, and all of them."""
    found: dict[str, dict[str, Any]] = {}
    figures: dict[tuple[str, str], list[float]] = {}
    for _ in range(LAUNCH_ROUNDS):
        for backend in backends:
            result = _spawn(backend, ["launches"], seconds)
            for entry in result["results"]:
                if "rate" in entry:
                    figures.setdefault((backend, entry["name"]), []).append(entry["rate"])
            # A failure of any of the processes is what is told.
            if not _failed(found.get(backend, {"results": []})):
                found[backend] = result
    for (backend, name), values in figures.items():
        for entry in found[backend]["results"]:
            if entry["name"] == name and "rate" in entry:
                entry["rate"], entry["rounds"] = statistics.median(values), values
    return found


def rows(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A line of the table for each kernel: its rates, and SPIR-V's as a multiple of CUDA's (of times: inverted)."""
    lines: dict[str, dict[str, Any]] = {}
    for backend, result in found.items():
        for entry in result["results"]:
            line = lines.setdefault(entry["name"], {"name": entry["name"], "unit": entry["unit"]})
            line[backend] = entry.get("rate")
            line[f"{backend}_note"] = entry.get("failure") or entry.get("config")
    for line in lines.values():
        ours, theirs = line.get("spirv"), line.get("nvidia")
        if ours and theirs:
            line["ratio"] = theirs / ours if line["unit"] == "µs" else ours / theirs
    return list(lines.values())


def table(lines: list[dict[str, Any]], found: dict[str, dict[str, Any]]) -> str:
    """The figures as text."""
    text = [
        "; ".join(f"{BACKENDS[name]}: {result['device'] or result.get('failure')}" for name, result in found.items()),
        f"{'':28}{'unit':>8}{'SPIR-V':>10}{'CUDA':>10}{'ratio':>8}",
    ]
    for line in lines:
        figures = "".join(f"{line[name]:>10.1f}" if line.get(name) else f"{'—':>10}" for name in BACKENDS)
        ratio = f"{line['ratio']:>8.2f}" if "ratio" in line else f"{'—':>8}"
        text.append(f"{line['name']:28}{line['unit']:>8}{figures}{ratio}")
        text += [f"    {BACKENDS[name]}: {line[f'{name}_note']}" for name in BACKENDS if line.get(f"{name}_note")]
    return "\n".join(text)


def chart(lines: list[dict[str, Any]]) -> str:
    """An SVG: the ratio to CUDA of each kernel as a bar; CUDA is the line at 1."""
    drawn = [line for line in lines if "ratio" in line]
    scale, left, height = 320, 220, 28
    right = max([1.2, *(line["ratio"] for line in drawn)]) * scale + left + 60
    bottom = height * len(drawn) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right:.0f}" height="{bottom}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{right:.0f}" height="{bottom}" fill="white"/>',
    ]
    for index, line in enumerate(drawn):
        top = index * height + 8
        width = line["ratio"] * scale
        parts.append(
            f'<text x="{left - 8}" y="{top + 14}" text-anchor="end">{line["name"]}</text>'
            f'<rect x="{left}" y="{top}" width="{width:.1f}" height="18" fill="#4878a8"/>'
            f'<text x="{left + width + 6:.1f}" y="{top + 14}">{line["ratio"]:.2f}</text>'
        )
    parts.append(
        f'<line x1="{left + scale}" x2="{left + scale}" y1="0" y2="{bottom - 20}" stroke="black" '
        f'stroke-dasharray="4 3"/><text x="{left + scale}" y="{bottom - 6}" text-anchor="middle">CUDA</text>'
        "</svg>\n"
    )
    return "\n".join(parts)


def _check(names: list[str], backends: list[str], seconds: float) -> int:
    """Prints the error of each configuration of each kernel. 1 where one is wrong or fails."""
    wrong = False
    for backend in backends:
        result = _spawn(backend, names, seconds, timed=False)
        wrong |= "failure" in result
        print(f"{BACKENDS[backend]}: {result['device'] or result.get('failure')}")
        for case in result["results"]:
            for entry in case["tried"] or [case]:
                failure = entry.get("failure")
                wrong |= failure is not None
                print(f"  {case['name']:32} {failure or format(entry['error'], '.2e'):>10}  {entry.get('config', '')}")
    return int(wrong)


def main() -> int:
    """Measure, print, write. 1 where a backend gave no figures at all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    every = [*CASES, "launches"]
    parser.add_argument("--only", default=",".join(every), help=f"some of {', '.join(every)}")
    parser.add_argument("--backends", default="spirv,nvidia", help="some of spirv, nvidia")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--chart", type=Path, help="write an SVG there")
    parser.add_argument("--seconds", type=float, default=60, help="after which no further configuration is tried")
    parser.add_argument("--check", action="store_true", help="only compare every configuration's result with float64")
    parser.add_argument("--worker", choices=list(BACKENDS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only.split(",")
    backends = options.backends.split(",")
    unknown = [name for name in names if name not in every] + [name for name in backends if name not in BACKENDS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    if options.worker:
        work(options.worker, names, options.seconds, options.json, not options.check)
        return 0
    if options.check:
        return _check([name for name in names if name != "launches"], backends, options.seconds)
    kernels = [name for name in names if name != "launches"]
    found = {backend: _spawn(backend, kernels, options.seconds) for backend in backends} if kernels else {}
    if "launches" in names:
        for backend, result in _alternate(backends, options.seconds).items():
            known = found.setdefault(backend, {**result, "results": []})
            known["results"] += result["results"]
            if "failure" in result:
                known["failure"] = result["failure"]
    lines = rows(found)
    print(table(lines, found))
    if options.json:
        options.json.write_text(json.dumps({"figures": lines, "backends": found}, indent=1, ensure_ascii=False) + "\n")
    if options.chart:
        options.chart.write_text(chart(lines))
    return int(any("failure" in result for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
