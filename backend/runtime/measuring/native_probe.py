"""How exact a device's own Exp2 is: a kernel that computes it for many arguments, and the verdict on its results.

Vulkan lets Exp2 of GLSL.std.450 be 3 + 2 |x| units in the last place off (Vulkan specification, "Precision and
Operation of SPIR-V Instructions"). GPUs do far better, and some CPU drivers do worse: so it is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...spirv import opcodes as op
from ...spirv.float_modes import float_modes
from ...spirv.function import FunctionBuilder
from ...spirv.module import ModuleBuilder
from ...spirv.opcodes import ExecutionMode_, Glsl, MemoryAccess, StorageClass
from .probing import read_inputs

#: Units in the last place that a function may be off.
BOUND = 2.5
SAMPLES = 1 << 15
_MANTISSA, _SMALLEST_NORMAL, _SMALLEST = 23, 2.0**-126, 2.0**-149


def probe_module(lanes: int, has: Callable[[str], bool]) -> bytes:
    """The module, with the float controls that kernels have (``has``: float_modes()). Its argument is the address of
    ``probe_data``."""
    module = ModuleBuilder()
    f = FunctionBuilder(module, module.void)
    scalar, uint = module.float(32), module.uint
    address, lane = read_inputs(module, f)
    pointer = module.pointer(StorageClass.PhysicalStorageBuffer, scalar)

    def at(index: int) -> int:
        return f.emit(op.ConvertUToPtr, pointer, f.add(address, f.zero_extend(f.shl(index, 2), 64)))

    def body(carried: list[int]) -> list[int]:
        (index,) = carried
        value = f.glsl(Glsl.Exp2, scalar, f.load(scalar, at(index), MemoryAccess.Aligned, 4))
        f.store(at(f.add(index, uint(SAMPLES))), value, MemoryAccess.Aligned, 4)
        return [f.add(index, uint(lanes))]

    f.loop([lane], lambda carried: f.compare(op.ULessThan, carried[0], uint(SAMPLES)), body)
    f.return_()
    function = f.finish()
    module.set_entry(f.id, "probe", [[ExecutionMode_.LocalSize, lanes, 1, 1], *float_modes(module, has)])
    return module.finish(function)


def probe_data() -> Any:
    """The array whose address the kernel gets: the arguments, and room for the results."""
    import numpy as np

    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 128.0, -150.5, -126.0, -149.0]
    near_zero = [sign * 2.0**power for power in range(-149, 1) for sign in (1, -1)]
    whole = [float(number) for number in range(-149, 128)]
    chosen = np.array([*special, *near_zero, *whole])
    spread = rng.uniform(-150.5, 128, SAMPLES - chosen.size)
    return np.concatenate([chosen, spread, np.full(SAMPLES, np.nan)]).astype(np.float32)


def judged(data: Any) -> frozenset[str]:
    """What the results say: keys of NATIVE_MATH."""
    import numpy as np

    x, found = data[:SAMPLES].astype(np.float64), data[SAMPLES:].astype(np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.exp2(x)
        unit = np.maximum(2.0 ** (np.floor(np.log2(np.maximum(exact, _SMALLEST))) - _MANTISSA), _SMALLEST)
        close = np.abs(found - exact) <= BOUND * unit
    infinite = exact >= 2.0**128
    right = np.where(np.isnan(x), np.isnan(found), np.where(infinite, found == np.inf, close))
    subnormal = exact < _SMALLEST_NORMAL
    flushed = subnormal & (found >= 0) & (found <= _SMALLEST_NORMAL)
    if not (right | flushed).all():
        return frozenset()
    return frozenset({"exp2", "exp2_subnormal"} if right.all() else {"exp2"})
