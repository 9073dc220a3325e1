"""flag-gems on CPU tensors: each operator that it registers, on samples of torch's operator database, against torch.

    pip install --no-deps flag-gems PyYAML sqlalchemy
    python -m benchmarks.flag_gems [--each SECONDS] [NAME …]

flag-gems knows devices by a list of vendors. ``prepare`` makes it count CPU tensors as tensors of one vendor's device,
and keeps its generator of elementwise kernels from block pointers, which Triton 3.9 no longer has. One operator at a
time takes the place of torch's on the CPU, so that what it calls itself is torch's. An operator is right where every
result is within 1e-4 of the largest number of torch's (equal, where they are integers). The exit status is 1 if one
is wrong for no reason that REASONS has. Autotuned kernels run in the first configuration that fits.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.libraries import take_first_configurations
from benchmarks.outcomes import FAILED, KNOWN, NOT_ENDED, OUTCOMES, PASSED, SKIPPED, WRONG, ending_after, of_error

TOLERANCE, SAMPLES = 1e-4, 2
#: Operators whose results are random, or uninitialised.
NOT_COMPARED = frozenset(
    "bernoulli_ dropout exponential_ multinomial normal normal_ rand rand_like randn randn_like randperm uniform_ "
    "native_dropout empty_like poisson log_normal_ cauchy_ geometric_ randint randint_like random_".split()
)

#: Operators that give other results than torch's, by the library's code.
REASONS = {
    "native_group_norm": "it adds an element of the next group where groups have 3 channels",
    "native_layer_norm": "its statistics have another shape",
    "native_batch_norm": "its statistics have another shape",
}


def prepare() -> Any:
    """flag_gems, imported for CPU tensors."""
    found = importlib.util.find_spec("flag_gems")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("flag-gems is not installed: pip install --no-deps flag-gems PyYAML sqlalchemy")
    os.environ["FLAGGEMS_CACHE_DIR"] = tempfile.mkdtemp()  # else it would remember what was not tuned
    sys.path.append(str(Path(found.submodule_search_locations[0]) / "runtime" / "backend"))
    vendor = importlib.import_module("_nvidia")
    vendor.vendor_info = dataclasses.replace(  # type: ignore[attr-defined]
        vendor.vendor_info, device_name="spirv", dispatch_key="CPU", triton_extra_name="cuda"
    )
    del vendor.ARCH_MAP  # type: ignore[attr-defined]
    os.environ["GEMS_VENDOR"] = "nvidia"
    torch.empty(1, device="spirv")  # torch.spirv, which plays torch.cuda
    sys.modules["torch.backends.spirv"] = types.ModuleType("torch.backends.spirv")
    flag_gems = importlib.import_module("flag_gems")
    codegen = importlib.import_module("flag_gems.utils.codegen_config_utils")
    for config in codegen.CODEGEN_COFIGS.values():
        if config is not None:
            config.prefer_block_pointer = False
    return flag_gems


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [leaf for part in result for leaf in _leaves(part)] if isinstance(result, list | tuple) else [result]


def _error(actual: Any, expected: Any) -> float:
    """The largest difference of two results, relative to the largest number; of other things than floats 0 or inf."""
    if not isinstance(expected, torch.Tensor):
        return 0.0 if actual == expected else float("inf")
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    if not expected.dtype.is_floating_point:
        return 0.0 if torch.equal(actual, expected) else float("inf")
    one, other = actual.detach().double(), expected.detach().double()
    same = (one == other) | (one.isnan() & other.isnan())
    largest = other[other.isfinite()].abs().max() if other.isfinite().any() else torch.tensor(1.0)
    return (
        float(torch.where(same, 0.0, (one - other).abs() / largest.clamp(min=1.0)).nan_to_num(float("inf")).max())
        if (one.numel())
        else 0.0
    )


def _samples(name: str) -> Iterator[tuple[Any, Any]]:
    """Operations of the database whose aten name that is, each with a sample."""
    from torch.testing._internal.common_methods_invocations import op_db

    plain = name.partition(".")[0]
    for info in op_db:
        names = {info.name, info.aten_name, info.name.rpartition(".")[2], *(info.aliases and map(str, info.aliases))}
        operation = info.inplace_variant if plain.endswith("_") and not plain.startswith("_") else info.op
        if plain.rstrip("_") in names or plain.strip("_") in names or plain in names:
            if operation is None:
                continue
            dtype = next((one for one in (torch.float32, torch.int32, torch.bool) if one in info.dtypes), None)
            if dtype is None:
                continue
            count = 0
            for sample in info.sample_inputs("cpu", dtype):
                if (
                    isinstance(sample.input, torch.Tensor)
                    and sample.input.dim()
                    and sample.input.numel()
                    and not sample.input.is_sparse
                ):
                    yield operation, sample
                    count += 1
                if count == SAMPLES:
                    break


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    return value


def _run(operation: Any, sample: Any) -> list[Any]:
    keywords = {name: _copied(value) for name, value in sample.kwargs.items()}
    return _leaves(operation(_copied(sample.input), *map(_copied, sample.args), **keywords))


def verdict(name: str, function: Any) -> tuple[str, str]:
    """One of OUTCOMES, and what is to be said of it. What is skipped is an operator to which no sample comes."""
    calls, compared, worst = 0, 0, 0.0
    failure = ("", "")

    def counted(*args: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        return function(*args, **keywords)

    for operation, sample in _samples(name):
        try:
            expected = _run(operation, sample)
        except Exception:
            continue
        library, before = torch.library.Library("aten", "IMPL"), calls
        try:
            library.impl(name, counted, "CPU")
            actual = _run(operation, sample)
        except Exception as error:
            if calls > before and not failure[0]:
                failure = of_error(error)
            continue
        finally:
            library._destroy()
        if calls > before:
            compared += 1
            worst = max([worst, *map(_error, actual, expected)])
    if worst > TOLERANCE and name.partition(".")[0] not in NOT_COMPARED:
        return (KNOWN, REASONS[name]) if name in REASONS else (WRONG, f"by {worst:.1e}")
    if failure[0]:
        return failure[0], f"another sample is right: {failure[1]}" if compared else failure[1]
    return (PASSED, "") if compared else (SKIPPED, "no sample comes to it")


def _here(names: list[str], seconds: float) -> None:
    """A row for each operator; a process that does one for longer ends."""
    flag_gems = prepare()
    take_first_configurations()
    for name, function, *_ in flag_gems._FULL_CONFIG:
        if name in names:
            start = time.process_time()
            with ending_after(seconds):
                outcome, said = verdict(name, function)
            print(f"{name:40} {outcome:10} {said}  ({time.process_time() - start:.1f} s of processor time)", flush=True)


def main() -> int:
    """Prints a row for each operator, and counts; 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flag_gems", description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=float, default=120, metavar="S", help="seconds of processor time (default: 120)")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators as aten has them; all where none is named")
    options = parser.parse_args()
    if options.here:
        _here(options.names, options.each)
        return 0
    left = options.names or [name for name, *_ in prepare()._FULL_CONFIG]
    counts: collections.Counter[str] = collections.Counter()
    while left:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.flag_gems", "--here", "--each", str(options.each)]
        with subprocess.Popen([*command, *left], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                name, _, said = line.partition(" ")
                if name not in left:
                    continue
                left.remove(name)
                print(line, end="", flush=True)
                counts[next((one for one in OUTCOMES if said.strip().startswith(one)), FAILED)] += 1
        if left:
            print(f"{left[0]:40} {NOT_ENDED} in {options.each:g} s, or ended its process", flush=True)
            counts[NOT_ENDED] += 1
            del left[0]
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    return int(counts[WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
