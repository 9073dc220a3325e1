"""What a driver computes otherwise than driver_quirks.py says: a kernel that asks, and the verdict on its answers.

Each probe is a pair of operations that some driver folds into a wrong one, or an operation that Vulkan lets be inexact
(Vulkan specification, "Precision and Operation of SPIR-V Instructions"), on numbers whose results tell. A driver that
gets a probe wrong has the fault, whatever its name; one that gets all right may have it elsewhere, so that what
driver_quirks.py says of faults stays. Only ``fused`` is decided both ways: what rounds twice does not give these
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...driver_quirks import Driver, fact_of
from ...spirv import opcodes as op
from ...spirv.float_modes import float_modes
from ...spirv.function import FunctionBuilder
from ...spirv.module import ModuleBuilder
from ...spirv.opcodes import Capability_, ExecutionMode_, Glsl, MemoryAccess, StorageClass
from .probing import read_inputs

_ALIGNMENT = 8
_STORAGE = {8: Capability_.StorageBuffer8BitAccess, 16: Capability_.StorageBuffer16BitAccess}


@dataclass(frozen=True)
class Probe:
    """A question to a driver.

    ``fact``: the field of Driver or Faults that it is about. ``needs``: the features of a device that can be asked.
    ``inputs``: NumPy arrays of one length. ``emit(f, *values)``: the id of the answer of 32 or 64 bits. ``right``: the
    array of right answers. ``wrong_is``: what the fact is if an answer is wrong. ``right_is``: what it is if none is;
    None if that says nothing.
    """

    fact: str
    needs: tuple[str, ...]
    inputs: tuple[Any, ...]
    emit: Callable[..., int]
    right: Any
    wrong_is: bool = True
    right_is: bool | None = None


def _float(f: FunctionBuilder, width: int = 32) -> int:
    return f.module.float(width)


def _emits(opcode: int, *constants: float) -> Callable[..., int]:
    """A float instruction of f32 on the values, and behind them these constants."""
    return lambda f, *values: f.emit(opcode, _float(f), *values, *(f.module.real(one, 32) for one in constants))


def _calls(number: int, width: int = 32) -> Callable[..., int]:
    """A function of GLSL.std.450."""
    return lambda f, *values: f.glsl(number, _float(f, width), *values)


def _truth(f: FunctionBuilder, condition: int) -> int:
    return f.select(condition, f.module.uint(1), f.module.uint(0))


def _wide(f: FunctionBuilder, value: int, width: int) -> int:
    """The number sign-extended, without what the builder knows of that."""
    return f.emit(op.SConvert, f.module.int(width), value)


def _constant(f: FunctionBuilder, value: int, width: int) -> int:
    return f.module.uint(value & ((1 << width) - 1), width)


def _asks_sign(opcode: int, constant: int) -> Callable[..., int]:
    """Compares a number of 32 bits that was extended to 64 with a constant."""
    return lambda f, x: _truth(f, f.emit(opcode, f.module.bool, _wide(f, x, 64), _constant(f, constant, 64)))


def _highest_bit(f: FunctionBuilder, x: int) -> int:
    shifted = f.emit(op.ShiftRightArithmetic, f.module.int(64), _wide(f, x, 64), _constant(f, 63, 64))
    return _truth(f, f.emit(op.INotEqual, f.module.bool, shifted, _constant(f, 0, 64)))


def _sum_outside(f: FunctionBuilder, x: int, y: int) -> int:
    """Whether the sum of two numbers of 8 bits, extended to 64, is outside of the range of 8 bits."""
    total = f.emit(op.IAdd, f.module.int(64), _wide(f, x, 64), _wide(f, y, 64))
    below = f.emit(op.SLessThan, f.module.bool, total, _constant(f, -128, 64))
    above = f.emit(op.SGreaterThan, f.module.bool, total, _constant(f, 127, 64))
    return _truth(f, f.emit(op.LogicalOr, f.module.bool, below, above))


def _negative(width: int, half: bool) -> Callable[..., int]:
    """0 - x of 8 or 16 bits extended to 32, or half of it."""

    def emit(f: FunctionBuilder, x: int) -> int:
        result = f.emit(op.ISub, f.module.int(width), _constant(f, 0, width), x)
        if half:
            result = f.emit(op.ShiftRightArithmetic, f.module.int(width), result, _constant(f, 1, width))
        return _wide(f, result, 32)

    return emit


def _unsigned(opcode: int) -> Callable[..., int]:
    """Divides the unsigned number of 32 bits that x of 8 bits is extended to."""
    return lambda f, x, y: f.emit(opcode, f.module.int(32), _wide(f, x, 32), _wide(f, y, 32))


def _as_double(f: FunctionBuilder, x: int) -> int:
    return f.emit(op.ConvertUToF, _float(f, 64), _wide(f, x, 32))


def _saturated(f: FunctionBuilder, x: int, y: int) -> int:
    """The low word of ``max(x, y) - y`` of unsigned numbers of 64 bits."""
    larger = f.emit(op.UGreaterThan, f.module.bool, x, y)
    most = f.emit(op.Select, f.module.int(64), larger, x, y)
    return f.emit(op.UConvert, f.module.u32, f.emit(op.ISub, f.module.int(64), most, y))


def _to_half_and_back(f: FunctionBuilder, x: int) -> int:
    return f.emit(op.FConvert, _float(f), f.emit(op.FConvert, _float(f, 16), x))


@cache
def probes() -> tuple[Probe, ...]:
    """All of them."""
    import numpy as np

    rng = np.random.default_rng(0)
    f32, f64 = np.float32, np.float64

    def spread(count: int) -> Any:
        return (rng.uniform(1, 2, count) * 2.0 ** rng.integers(-30, 30, count)).astype(f32)

    def fused() -> Probe:
        x, y = spread(2048), spread(2048)
        product = x.astype(f64) * y
        near = (product * rng.choice([-1.0, 1.0], 2048) * 2.0 ** rng.integers(-3, 3, 2048)).astype(f32)
        z = np.where(np.arange(2048) % 2, -product.astype(f32), near).astype(f32)
        return Probe("fused", (), (x, y, z), _calls(Glsl.Fma), (product + z).astype(f32), False, True)  # exact in f64

    a, b = spread(4096), spread(4096)
    special = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-30], f32)
    halves = np.concatenate([spread(512) * f32(2.0**-8), 1 + np.arange(512) * f32(2.0**-12)]).astype(f32)
    doubles = np.array([-0.3, 0.3, 0.5, 1.5, 2.5, -0.5, -1.5, -0.0, 1e15 + 0.5, -7.9, 123456789.5, -2.5], f64)
    numbers = np.array([-(2**31), 1 - 2**31, -100, -2, -1, 0, 1, 2, 50, 2**31 - 1], np.int32)
    bytes_ = np.arange(-128, 128).astype(np.int8)
    left, right = (part.reshape(-1) for part in np.meshgrid(bytes_[::5], bytes_[::3]))
    small = (np.arange(256) % 8 + 1).astype(np.int8)
    unsigned = bytes_.astype(np.int32).view(np.uint32)
    shorts = np.array([-32768, -32767, -129, -1, 0, 1, 32767], np.int16)
    high = np.array([1 << 32, (3 << 40) + 7, 5, 0, (1 << 63) + 1], np.uint64)
    low = np.array([5, 9, 7, 1, 2], np.uint64)
    with np.errstate(all="ignore"):
        outside = np.abs(left.astype(np.int32) + right + 0.5) > 128
        found = [
            fused(),
            Probe("exact_division", (), (a, b), _emits(op.FDiv), a / b, False),
            Probe("exact_division", (), (a,), _calls(Glsl.Sqrt), np.sqrt(a), False),
            Probe("rounds_doubles", ("float64",), (doubles,), _calls(Glsl.RoundEven, 64), np.rint(doubles), False),
            Probe("rounds_doubles", ("float64",), (doubles,), _calls(Glsl.Trunc, 64), np.trunc(doubles), False),
            Probe("folds_zeros", (), (special,), _emits(op.FAdd, 0.0), special + f32(0)),
            Probe("folds_zeros", (), (special,), _emits(op.FMul, 0.0), special * f32(0)),
            Probe(
                *("widens_unrounded", ("float16", "round_to_nearest_even16"), (halves,), _to_half_and_back),
                halves.astype(np.float16).astype(f32),
            ),
            Probe("narrows_comparisons", (), (numbers,), _highest_bit, numbers < 0),
            Probe("narrows_comparisons", (), (numbers,), _asks_sign(op.SLessThan, 0), numbers < 0),
            Probe("narrows_comparisons", (), (numbers,), _asks_sign(op.SLessThan, -(2**31)), numbers < -(2**31)),
            Probe("narrows_sums", _BYTES, (left, right), _sum_outside, outside),
            *(
                Probe("widens_negations", needs, (x,), _negative(8 * x.itemsize, half), ((-x) >> half).astype(np.int32))
                for x, needs in ((bytes_, _BYTES), (shorts, _SHORTS))
                for half in (False, True)
            ),
            Probe("takes_for_small", _BYTES, (bytes_, small), _unsigned(op.UMod), unsigned % small.astype(np.uint32)),
            Probe("takes_for_small", _BYTES, (bytes_, small), _unsigned(op.UDiv), unsigned // small.astype(np.uint32)),
            Probe("takes_for_small", (*_BYTES, "float64"), (bytes_,), _as_double, unsigned.astype(f64)),
            Probe("narrows_saturation", (), (high, low), _saturated, (np.maximum(high, low) - low).astype(np.uint32)),
        ]
    return tuple(found)


_BYTES, _SHORTS = ("int8", "storage8"), ("int16", "storage16")


def _asked(has: Callable[[str], bool]) -> list[Probe]:
    """The probes for a device with these features."""
    return [probe for probe in probes() if all(map(has, probe.needs))]


def _answer_type(probe: Probe) -> Any:
    import numpy as np

    return np.dtype(np.uint32) if probe.right.dtype == bool else probe.right.dtype


def _places(asked: Iterable[Probe]) -> tuple[list[tuple[list[int], int]], int]:
    """Where in the data the inputs of each probe begin, and its answers; and how long the data are."""
    places, end = [], 0
    for probe in asked:
        starts = []
        for size in (*(one.itemsize for one in probe.inputs), _answer_type(probe).itemsize):
            starts.append(end)
            end += -(-size * len(probe.right) // _ALIGNMENT) * _ALIGNMENT
        places.append((starts[:-1], starts[-1]))
    return places, end


def probe_data(has: Callable[[str], bool]) -> Any:
    """The array whose address the kernel gets: each probe's inputs, and room for its answers."""
    import numpy as np

    asked = _asked(has)
    places, size = _places(asked)
    data = np.zeros(size, np.uint8)
    for probe, (starts, _) in zip(asked, places, strict=True):
        for values, start in zip(probe.inputs, starts, strict=True):
            data[start : start + values.nbytes] = values.view(np.uint8)
    return data


def probe_module(lanes: int, has: Callable[[str], bool]) -> bytes:
    """The module, with the float controls that kernels have. Its argument is the address of ``probe_data``."""
    module = ModuleBuilder()
    f = FunctionBuilder(module, module.void)
    address, lane = read_inputs(module, f)
    asked = _asked(has)

    def pointer(type_id: int, size: int, start: int, index: int) -> int:
        offset = f.add(f.mul(index, module.uint(size)), module.uint(start))
        place = f.add(address, f.zero_extend(offset, 64))
        return f.emit(op.ConvertUToPtr, module.pointer(StorageClass.PhysicalStorageBuffer, type_id), place)

    for probe, (starts, answers) in zip(asked, _places(asked)[0], strict=True):

        def body(carried: list[int], probe: Probe = probe, starts: list[int] = starts, at: int = answers) -> list[int]:
            (index,) = carried
            values = []
            for array, start in zip(probe.inputs, starts, strict=True):
                bits = 8 * array.itemsize
                if bits in _STORAGE:
                    module.capability(_STORAGE[bits])
                type_id = module.float(bits) if array.dtype.kind == "f" else module.int(bits)
                place = pointer(type_id, array.itemsize, start, index)
                values.append(f.load(type_id, place, MemoryAccess.Aligned, array.itemsize))
            answer = probe.emit(f, *values)
            size = _answer_type(probe).itemsize
            f.store(pointer(f.type_of(answer), size, at, index), answer, MemoryAccess.Aligned, size)
            return [f.add(index, module.uint(lanes))]

        def more(carried: list[int], count: int = len(probe.right)) -> int:
            return f.compare(op.ULessThan, carried[0], module.uint(count))

        f.loop([lane], more, body)
    f.return_()
    function = f.finish()
    module.set_entry(f.id, "probe", [[ExecutionMode_.LocalSize, lanes, 1, 1], *float_modes(module, has)])
    return module.finish(function)


def judged(data: Any, has: Callable[[str], bool], driver: Driver) -> frozenset[str]:
    """The corrections (driver_quirks.corrected()) of what is known of a ``driver``."""
    import numpy as np

    asked = _asked(has)
    found: dict[str, bool] = {}
    for probe, (_, start) in zip(asked, _places(asked)[0], strict=True):
        type_ = _answer_type(probe)
        right = np.ascontiguousarray(probe.right.astype(type_))
        answers = data[start : start + right.nbytes].view(type_)
        same = answers.view(np.uint8).reshape(len(right), -1) == right.view(np.uint8).reshape(len(right), -1)
        every = same.all(axis=1)
        if type_.kind == "f":
            every |= np.isnan(answers) & np.isnan(right)
        if not every.all():
            found[probe.fact] = probe.wrong_is
        elif probe.right_is is not None:
            found.setdefault(probe.fact, probe.right_is)
    wrong = {name: value for name, value in found.items() if value != fact_of(driver, name)}
    return frozenset(name if value else f"-{name}" for name, value in wrong.items())
