"""One kernel launched in many ways computes the same values: no reference is needed.

Kernels read matrices by rows and columns, with masks, sums over blocks of columns, atomic counters, and stores. Ways:
another number of warps, blocks twice as large in either direction, programs in another order, arguments one element
behind an aligned address, rows that are further apart, strides that are constants, all of them at once, and the
reference pipeline. Numbers are small integers, so that sums are exact in any order.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import triton
from triton import knobs

from tests.fuzz.metamorphic import REFUSALS
from tests.fuzz.running import Found
from tests.written import written

#: What lies around each output.
GUARD, FILL = 7, 77.0

HEADER = '''"""Generated."""
import triton
import triton.language as tl


@triton.jit
def kernel({arguments}, m, n, count, R: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    if ORDER == 1:
        program = programs - 1 - program
    elif ORDER == 2:
        program = (program + programs // 2) % programs
    i, j = program * R + tl.arange(0, R), tl.arange(0, C)
    rows = i < m
    most, total, last = tl.full((R,), -9.0, tl.float32), tl.zeros((R,), tl.float32), tl.zeros((R,), tl.float32)
    found = tl.zeros((R, C), tl.int32)
    for first in range(0, n, C):
        column = first + j
        inside = rows[:, None] & (column < n)[None, :]
'''

FOOTER = """    tl.store(sums + i, total + most * 3 + last * 5, mask=rows)
    counted = tl.sum(found, 1)
    tl.store(numbers + i, counted, mask=rows)
    tl.atomic_add(count + i % 3, counted, mask=rows)
"""


@dataclass(frozen=True)
class Way:
    """How a kernel is launched. ``shift``: elements in front of each argument; ``apart``: further elements between
    rows; ``constant``: strides are constants of the kernel; ``order``: of programs; ``reference``: compiled so."""

    name: str
    warps: int = 4
    rows: int = 4
    columns: int = 32
    order: int = 0
    shift: int = 0
    apart: int = 0
    constant: bool = False
    reference: bool = False


def ways(rng: random.Random) -> Iterator[Way]:
    """The usual one first."""
    usual = Way("usual", rng.choice((1, 2, 4)), rng.choice((1, 2, 8)), rng.choice((16, 32, 64)))
    yield usual
    changes: list[tuple[str, dict[str, object]]] = [
        ("other warps", {"warps": 8 if usual.warps < 4 else 1}),
        ("twice as many rows", {"rows": 2 * usual.rows}),
        ("twice as many columns", {"columns": 2 * usual.columns}),
        ("programs from the last to the first", {"order": 1}),
        ("programs from the middle", {"order": 2}),
        ("arguments one element further", {"shift": 1}),
        ("rows further apart", {"apart": rng.choice((1, 3, 16))}),
        ("constant strides", {"constant": True}),
    ]
    for name, change in changes:
        yield replace(usual, name=name, **change)  # type: ignore[arg-type]
    together = {key: value for _, change in changes for key, value in change.items()}
    yield replace(usual, name="all at once", **together)  # type: ignore[arg-type]
    yield replace(usual, name="by the reference", reference=True)


def _body(rng: random.Random) -> str:
    """Statements for one block of columns, each of which says the same of an element in any block."""
    lines, names = [], []

    def name(text: str) -> None:
        names.append(f"v{len(names)}")
        lines.append(f"{names[-1]} = {text}")

    def value() -> str:
        return rng.choice(names[-3:])

    places = (
        "i[:, None] * sx + column[None, :]",
        "(i[:, None] % 5) * sx + (column // 2 * 2)[None, :] % n",
        "(m - 1 - i)[:, None] * sx + column[None, :]",
        "i[:, None] * sx + (n - 1 - column)[None, :]",
        "(i // 2)[:, None] * sx + (column % 7)[None, :]",
    )
    turned = "column[None, :] * sy + i[:, None]"
    name(f"tl.load(x + {places[0]}, mask=inside, other=0.0)")
    for _ in range(rng.randint(3, 7)):
        kind = rng.randrange(7)
        if kind == 0:
            name(f"tl.load(x + {rng.choice(places)}, mask=inside, other=0.0)")
        elif kind == 1:
            name(f"tl.load(y + {turned}, mask=inside, other=0.0)")
        elif kind == 2:
            operation = rng.choice(("{} + {}", "{} - {}", "tl.maximum({}, {})", "tl.where({} > {}, 1.0, 2.0)"))
            name(operation.format(value(), value()))
        elif kind == 3:
            name(f"({value()}.to(tl.int32) // {rng.randint(2, 4)} ^ {rng.randint(1, 5)}).to(tl.float32)")
        elif kind == 4:
            name(f"{value()} + (column % {rng.choice((3, 8, 16))})[None, :] - (i // {rng.choice((2, 3))})[:, None]")
        elif kind == 5:
            name(f"tl.minimum(tl.maximum({value()}, -4.0), 4.0) * {value()}")
        else:
            name(
                f"tl.where((column >= {rng.randint(1, 30)})[None, :] & rows[:, None], {value()}, {rng.randint(0, 3)}.0)"
            )
        lines.append(f"{names[-1]} = tl.minimum(tl.maximum({names[-1]}, -64.0), 64.0)")
    lines += [
        f"total += tl.sum(tl.where(inside, {value()}, 0.0), 1)",
        f"most = tl.maximum(most, tl.max(tl.where(inside, {value()}, -9.0), 1))",
        f"last = last + tl.max(tl.where(inside, {value()}, -9.0) * (column == n // 2)[None, :].to(tl.float32), 1)",
        f"found += (inside & ({value()} > {rng.randint(-2, 3)})).to(tl.int32)",
    ]
    stored = rng.choice(("i[:, None] * so + column[None, :]", "i[:, None] * so + (n - 1 - column)[None, :]"))
    lines.append(f"tl.store(out + {stored}, {value()}, mask=inside)")
    return "".join(f"        {line}\n" for line in lines)


def _matrix(rows: int, columns: int, way: Way, values: torch.Tensor | None) -> torch.Tensor:
    """A matrix with elements around it: of these values, or filled."""
    stride = columns + way.apart
    memory = torch.full((GUARD + way.shift + rows * stride + GUARD,), FILL)
    matrix = memory[GUARD + 1 + way.shift :][: rows * stride]  # GUARD + 1 elements are aligned
    matrix = matrix.as_strided((rows, columns), (stride, 1))
    if values is not None:
        matrix.copy_(values)
    return matrix


def run(seed: int, folder: Path) -> Found:
    """A random kernel in all ways."""
    rng, start = random.Random(f"launches {seed}"), time.process_time()
    m, n, body = rng.choice((1, 5, 16, 33)), rng.choice((7, 32, 50, 129)), _body(rng)
    plain, constant = "x, y, out, sums, numbers, sx, sy, so", "x, y, out, sums, numbers, sx: tl.constexpr, "
    constant += "sy: tl.constexpr, so: tl.constexpr"
    numbers = torch.Generator().manual_seed(seed)
    x, y = (torch.randint(-4, 5, shape, generator=numbers).float() for shape in ((m, n), (n, m)))
    expected: list[torch.Tensor] = []
    fault, source = "", HEADER.format(arguments=plain) + body + FOOTER
    with knobs.cache.scope():
        knobs.cache.dir = str(folder)
        modules = {}
        for kind, arguments in (("plain", plain), ("constant", constant)):
            text = HEADER.format(arguments=arguments) + body + FOOTER
            modules[kind] = written(folder / f"{kind}.py", text, f"launches_{seed}_{kind}")
        for way in ways(rng):
            kernel = modules["constant" if way.constant else "plain"].kernel
            try:
                found = _launched(kernel, way, x, y)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                fault = fault or ("" if why.startswith(REFUSALS) else f"{way}: {why}")
                continue
            expected = expected or found
            for name, one, other in zip(("out", "around", "sums", "numbers", "count"), expected, found, strict=True):
                if not torch.equal(one, other):
                    fault = fault or f"{way}: {name}: {int((one != other).sum())} of {one.numel()} values differ"
    heading = f'"""m={m}, n={n}; {fault.partition(chr(10))[0] or "right"}"""'
    return Found(fault, source.replace('"""Generated."""', heading), time.process_time() - start)


def _launched(kernel: triton.JITFunction, way: Way, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """What a kernel computes in a way, and whether all around its output is as before."""
    m, n = x.shape
    a, b, out = _matrix(m, n, way, x), _matrix(n, m, way, y), _matrix(m, n, way, None)
    sums = _matrix(1, m, way, None)
    counted, count = (torch.zeros(size + 2, dtype=torch.int32)[1 - way.shift :] for size in (m, 3))
    strides = (a.stride(0), b.stride(0), out.stride(0))
    blocks = (way.rows, way.columns, way.order)
    options = {"num_warps": way.warps, "reference": way.reference}
    kernel[(triton.cdiv(m, way.rows),)](a, b, out, sums, counted, *strides, m, n, count, *blocks, **options)
    around = torch.tensor(out.untyped_storage().size() // 4, dtype=torch.int64) - m * n
    memory = out.as_strided((out.untyped_storage().size() // 4,), (1,), 0)
    untouched = (memory == FILL).sum() - (out == FILL).sum() == around
    return [out.clone(), untouched.reshape(1), sums.clone(), counted[:m].clone(), count[:3].clone()]
