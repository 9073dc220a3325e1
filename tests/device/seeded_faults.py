"""``python -m tests.device.seeded_faults FAULT``: a launch whose values are compared, by a compiler with a fault.

Each fault turns one rule of something optional wrong. The process prints, as JSON, what ValuesDiffer says of a kernel
on which the rule acts; nothing if the kernel is right.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends.spirv import passes
from triton.backends.spirv.runtime import ValuesDiffer


@triton.jit
def largest(x, out, steps, K: tl.constexpr):
    row = tl.arange(0, 16)
    total = tl.full((16,), 1.0, tl.float32)
    for step in range(steps):
        total = total + tl.max(tl.load(x + (step * 16 + row[:, None]) * K + tl.arange(0, K)), 1)
    tl.store(out + row, total)


@triton.jit
def remainders(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % n))


@triton.jit
def doubled(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@triton.jit
def shifted(x, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) - 1.5, mask=i < n)


@triton.jit
def apart(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, (a - b) * 3.0 + (b - a))


@triton.jit
def beginning(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=7.0))


@triton.jit
def long_sum(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)) + tl.load(x + i))


def _largest() -> None:
    largest[(1,)](torch.rand(3, 16, 256), torch.zeros(16), 3, 256)


def _remainders() -> None:
    remainders[(1,)](torch.rand(80)[16:], torch.zeros(64), 37, 64)  # the fault reads in front of it


def _doubled() -> None:
    doubled[(1,)](torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32), 64)


def _shifted() -> None:
    shifted[(1,)](torch.rand(2048), torch.zeros(2048), 2047, 1024)


def _apart() -> None:
    apart[(1,)](torch.rand(64), torch.rand(64), torch.zeros(64), 64)


def _beginning() -> None:
    beginning[(1,)](torch.rand(1024), torch.zeros(1024), 37, 1024)


def _long_sum() -> None:
    long_sum[(1,)](torch.rand(4096), torch.zeros(4096), 4096)


# -- faults: each makes a rule wrong for as long as the process lives ---------------------------------------------
def _upstreams_pass() -> None:
    """A pass that upstream has, and this project left: it takes a loop's sum for a reduction's."""
    from triton._C.libtriton import passes as upstream

    pipeline: Any = (*passes.LAYOUTS, passes.Pass(upstream.ttgpuir, "add_optimize_thread_locality"))
    passes.LAYOUTS = pipeline


def _all_lanes_are_neighbours() -> None:
    from triton.backends.spirv.transforms.cpu import alike_lanes

    alike_lanes._alike = lambda value, known: alike_lanes.NEIGHBOURS  # type: ignore[assignment]


def _times_two_is_nothing() -> None:
    from triton.backends.spirv.spirv import fold
    from triton.backends.spirv.spirv import opcodes as op

    fold.RIGHT_IDENTITY[op.IMul] = 2


def _differences_commute() -> None:
    from triton.backends.spirv.spirv import fold
    from triton.backends.spirv.spirv import opcodes as op

    fold.WAYS[op.FSub] = fold.WAYS.get(op.FSub, 0) | fold.COMMUTES


def _bounds_are_one_too_high() -> None:
    from triton.backends.spirv.cpu import whole_rounds

    whole_rounds._BOUNDS["OpSLessThan"] = (True, True, True)


def _comparisons_are_constant() -> None:
    from triton.backends.spirv.analysis.axis_info.rule_table import RULES

    def rule(operation: Any, infos: Any) -> Any:
        return replace(right(operation, infos), constancy=infos[0].contiguity)

    right = RULES["arith.cmpi"]
    RULES["arith.cmpi"] = rule


def _strips_lose_a_sum() -> None:
    from triton.backends.spirv.transforms import table

    def cut(module: Any, device: Any, options: Any) -> bool:
        changed = row.run(module, device, options)
        for operation in table.kernel_of(module).walk():
            if changed and operation.name == "arith.addf":
                operation.name = "arith.subf"
        return changed

    row = next(one for one in table.TRANSFORMS if one.name == "cut long tensors in strips")
    rows: Any = tuple(replace(one, run=cut) if one is row else one for one in table.TRANSFORMS)
    table.TRANSFORMS = rows


#: Fault → what makes it, the launch that shows it, and the item that is to be named.
FAULTS: dict[str, tuple[Callable[[], None], Callable[[], None], str]] = {
    "upstream": (_upstreams_pass, _largest, "optimize_thread_locality"),
    "alike": (_all_lanes_are_neighbours, _remainders, "divide once for all lanes"),
    "strips": (_strips_lose_a_sum, _long_sum, "cut long tensors in strips"),
    "axis": (_comparisons_are_constant, _beginning, "axis info of accesses"),
    "numbering": (_differences_commute, _apart, "value numbering"),
    "simplification": (_times_two_is_nothing, _doubled, "simplification"),
    "rounds": (_bounds_are_one_too_high, _shifted, "whole rounds"),
}


if __name__ == "__main__":
    seed, launch, _ = FAULTS[sys.argv[1]]
    if "--right" not in sys.argv:
        seed()
    try:
        launch()
    except ValuesDiffer as error:
        facts = {name: getattr(error, name) for name in ("kernel", "argument", "index", "file", "line", "items")}
        print(json.dumps({"message": str(error), **facts}))
