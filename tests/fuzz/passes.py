"""Random kernels in which an optional upstream pass changes something, with it and without it: the values are equal.

A seed is for one pass (``of_seed``). Its kernels have mostly what the pass works on (``AIMS``). A kernel whose module
is the same without the pass says nothing of it, and another one is tried, up to ``TRIES`` times. Numbers are small
integers, so that sums are exact in any order.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from triton import knobs
from triton.backends.spirv.reference import ITEMS

from tests.fuzz.metamorphic import REFUSALS
from tests.fuzz.running import Found
from tests.written import written

#: The passes, by the names that the option ``without`` has for them.
PASSES = tuple(item.name for item in ITEMS if item.kind == "upstream's pass")
TRIES = 4
#: Tiles of an input: loops take one after the other.
TILES = 8

HEADER = '''"""Generated."""
import triton
import triton.language as tl


@triton.jit
def helper(a, b):
    if tl.max(tl.max(a, 1), 0) > 5:
        a = a + b
    return tl.maximum(a, b)


@triton.jit
def kernel(x, y, q, out, rows_out, n, m, R: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, R)
    at = i[:, None] * R + j[None, :]
    turned = j[None, :] * R + i[:, None]
    t0, t1, r0, s0 = tl.load(x + at), tl.load(y + turned), tl.load(y + i), n + m
'''


@dataclass
class _Writer:
    """Statements of a kernel on tiles of R × R, rows of R, and numbers, each by its kind's letter."""

    rng: random.Random
    weights: Mapping[str, float]
    lines: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=lambda: {"t": ["t0", "t1"], "r": ["r0"], "s": ["s0", "n"]})
    indent: str = "    "
    named: int = 1
    counter: str = ""

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def name(self, kind: str, text: str) -> str:
        """A new name for what the expression gives."""
        self.named += 1
        found = f"{kind}{self.named}"
        self.line(f"{found} = {text}")
        self.names[kind].append(found)
        return found

    def pick(self, kind: str) -> str:
        """One of the names, rather a late one."""
        names = self.names[kind]
        return self.rng.choice(names[-3:] if self.rng.random() < 0.7 else names)

    def choose(self, ways: Mapping[str, Callable[[], str]]) -> str:
        weights = [self.weights.get(name, 0.5) for name in ways]
        return self.rng.choices(list(ways.values()), weights)[0]()

    def place(self) -> str:
        rng = self.rng
        return self.choose(
            {
                "plain": lambda: "at",
                "turned": lambda: "turned",
                "divided": lambda: rng.choice(
                    (
                        f"at % {rng.choice((3, 5, 16, 48))}",
                        f"at // {rng.choice((3, 8))} + j[None, :] % 3",
                        f"(i[:, None] + {rng.randint(0, 3)}) % R * R + (j[None, :] // 2) * 2",
                    )
                ),
            }
        )

    def load(self) -> str:
        rng = self.rng
        of = rng.choice("xy") + (f" + {self.counter} % {TILES} * R * R" if self.counter and rng.random() < 0.7 else "")
        mask = self.choose(
            {
                "plain": lambda: "",
                "masked": lambda: f", mask=j[None, :] < {rng.choice(('n', 'm', 'R - 1'))}, other={rng.randint(0, 2)}.0",
                "chosen": lambda: f", mask={self.condition()}, other=1.0",
            }
        )
        return f"tl.load({of} + {self.place()}{mask})"

    def condition(self) -> str:
        return f"{self.pick('s')} > {self.rng.randint(-1, 9)}"

    def tile(self) -> str:
        """An expression that gives a tile."""
        rng, t, r = self.rng, lambda: self.pick("t"), lambda: self.pick("r")
        small = lambda: f"tl.minimum(tl.maximum({t()}, -3.0), 3.0)"  # noqa: E731
        return self.choose(
            {
                "load": self.load,
                "arithmetic": lambda: rng.choice(
                    (
                        f"{t()} + {t()}",
                        f"{t()} - {t()}",
                        f"tl.maximum({t()}, {t()})",
                        f"tl.where({t()} > {t()}, {t()}, 2.0)",
                    )
                ),
                "same": lambda: f"({t()} + {r()}[:, None]) - (i[:, None] * R + j[None, :])",
                "broadcast": lambda: rng.choice(
                    (
                        f"tl.abs(tl.broadcast_to({r()}[:, None], (R, R))) + tl.broadcast_to({r()}[None, :], (R, R))",
                        f"tl.maximum(tl.full((R, R), 0.0, tl.float32) + {self.pick('s')}, 2.0) + {t()}",
                        f"({r()}[:, None] + {r()}[None, :]) + {r()}[:, None]",
                    )
                ),
                "trans": lambda: f"tl.trans({t()})",
                "dot": lambda: rng.choice(
                    (
                        f"tl.dot({small()}, {small()}, {t()}, input_precision='ieee')",
                        f"tl.dot({small()}, tl.trans({small()}), input_precision='ieee') + {t()}",
                        f"tl.dot({small()}.to(tl.float16), {small()}.to(tl.float16))",
                        f"tl.dot(tl.load(x + {self.place()}), {small()}, input_precision='ieee')",
                    )
                ),
                "product": lambda: f"tl.sum({small()}[:, :, None] * {small()}[None, :, :], 1)",
                "scan": lambda: f"tl.cumsum({t()}, {rng.randint(0, 1)})",
                "gather": lambda: f"tl.gather({t()}, tl.load(q + at), {rng.randint(0, 1)})",
                "reshape": lambda: f"tl.reshape(tl.reshape({t()}, (R * R,)) + tl.arange(0, R * R) % 3, (R, R))",
                "call": lambda: f"helper({t()}, {t()})",
                "integers": lambda: (
                    f"(({t()}.to(tl.int32) // {rng.randint(2, 5)}) ^ {rng.randint(1, 7)}).to(tl.float32)"
                ),
            }
        )

    def row(self) -> str:
        """An expression that gives a row."""
        rng, t, r = self.rng, lambda: self.pick("t"), lambda: self.pick("r")
        return self.choose(
            {
                "reduced": lambda: (
                    f"tl.{rng.choice(('sum', 'max', 'min'))}({rng.choice((t, self.load))()}, {rng.randint(0, 1)})"
                ),
                "arithmetic": lambda: rng.choice((f"{r()} + {r()}", f"tl.maximum({r()}, {r()})", f"{r()} * 2 - {r()}")),
                "load": lambda: f"tl.load({rng.choice('xy')} + i * {rng.choice((1, 1, 2, 3))})",
            }
        )

    def updated(self, name: str) -> str:
        """What a loop or a branch makes of a value."""
        rng, kind = self.rng, name[0]
        if kind == "s":
            return f"{name} + {rng.randint(1, 3)}"
        expression = self.tile() if kind == "t" else self.row()
        return rng.choice(
            (
                f"{name} + {expression}",
                f"{name} - {expression}",
                f"tl.maximum({name}, {expression})",
                f"tl.minimum({expression}, {name})",
                f"{expression} + {name}",
                expression,
            )
        )

    def nested(self, names: list[str], most: int) -> None:
        """Statements inside of a loop or a branch, which change the values of these names."""
        kept = {kind: list(of) for kind, of in self.names.items()}
        self.indent += "    "
        for _ in range(self.rng.randint(0, most)):
            self.statement(most - 1)
        for name in names:
            self.line(f"{name} = {self.updated(name)}")
        if len(names) > 1 and names[0][0] == names[1][0] and self.rng.random() < 0.4:
            self.line(f"{names[0]}, {names[1]} = {names[1]}, {names[0]}")
        self.indent = self.indent[4:]
        self.names = kept

    def carried(self) -> list[str]:
        """New names that a loop or a branch changes."""
        rng = self.rng
        kinds = rng.choice(("r", "r", "t", "rr", "tt", "rt", "rs", "s"))
        begins = {"t": ("tl.zeros((R, R), tl.float32)", "t0"), "r": ("tl.zeros((R,), tl.float32)", "r0"), "s": ("m",)}
        starts = {"t": "tl.full((R, R), 2.0, tl.float32)", "r": "tl.full((R,), 1.0, tl.float32)", "s": "1"}
        return [self.name(kind, rng.choice((*begins[kind], starts[kind]))) for kind in kinds]

    def loop(self, most: int) -> None:
        """A loop with constant bounds or others."""
        rng, names, outer = self.rng, self.carried(), self.counter
        self.named += 1
        self.counter = f"k{self.named}"
        first, end, step = rng.choice(("0", "1", "n - 3")), rng.choice(("3", "n", "m", "n + 1")), rng.choice("1112")
        head = f"{first}, {end}, {step}"
        if rng.random() < 0.3 * self.weights.get("unrolled", 1.0):
            head = f"tl.range({head}, loop_unroll_factor={rng.choice((2, 3))})"
        else:
            head = f"range({head})"
        self.line(f"for {self.counter} in {head}:")
        self.nested(names, most - 1)
        self.counter = outer

    def branch(self, most: int) -> None:
        """A condition that is one number, with or without an else."""
        names = self.carried()
        self.line(f"if {self.condition()}:")
        self.nested(names, most - 1)
        if self.rng.random() < 0.5:
            self.line("else:")
            self.nested(names, 0)

    def stored(self, most: int) -> None:
        """What was loaded before stays as it is; what is loaded behind the barrier is new."""
        self.line(f"tl.store({self.rng.choice('xy')} + at, {self.pick('t')})")
        self.line("tl.debug_barrier()")

    def statement(self, most: int) -> str:
        """Any statement, with at most so many levels in it."""
        ways: dict[str, Callable[[], Any]] = {
            "tile": lambda: self.name("t", self.tile()),
            "row": lambda: self.name("r", self.row()),
        }
        if most > 0:
            ways |= {
                "loop": lambda: self.loop(most),
                "branch": lambda: self.branch(most),
                "store": lambda: self.stored(most),
            }
        self.choose(ways)
        return ""


#: Pass → what its kernels have more often than others do (the names in the ``choose()`` of _Writer).
AIMS: dict[str, dict[str, float]] = {
    "canonicalizer": {"branch": 2, "arithmetic": 2},
    "combine": {"dot": 3, "product": 2, "branch": 2, "chosen": 2},
    "reorder_broadcast": {"broadcast": 5},
    "cse": {"same": 4, "call": 2},
    "triton_licm": {"loop": 4, "load": 3},
    "symbol_dce": {"call": 5},
    "loop_unroll": {"loop": 4, "unrolled": 4},
    "coalesce": {"turned": 4, "load": 4, "loop": 1},
    "remove_layout_conversions": {"turned": 2, "divided": 3, "trans": 2, "reduced": 2, "loop": 2},
    "remove_layout_conversions 2": {"dot": 3, "trans": 2, "loop": 2},
    "optimize_dot_operands": {"dot": 5, "trans": 2, "turned": 2},
    "loop_aware_cse": {"loop": 5, "same": 2},
    "remove_layout_conversions 3": {"dot": 5, "trans": 3, "loop": 2},
    "reduce_data_duplication": {"dot": 5, "loop": 2},
    "reorder_instructions": {"dot": 4, "trans": 2, "turned": 2, "reduced": 2},
    "loop_aware_cse 2": {"loop": 5, "dot": 3},
    "sccp": {"loop": 3, "branch": 3},
    "canonicalizer 2": {"branch": 3, "loop": 2},
    "combine_tensor_select_and_if": {"branch": 6},
}


def generate(seed: int, attempt: int, aim: Mapping[str, float]) -> str:
    """The source of a kernel."""
    writer = _Writer(random.Random(f"passes {seed} {attempt}"), aim)
    for _ in range(writer.rng.randint(3, 6)):
        writer.statement(2)
    for number, name in enumerate(writer.names["t"][-3:]):
        writer.line(f"tl.store(out + {number} * R * R + at, {name})")
    for number, name in enumerate(writer.names["r"][-3:]):
        writer.line(f"tl.store(rows_out + {number} * R + i, {name})")
    writer.line(f"tl.store(rows_out + 3 * R, {writer.names['s'][-1]})")
    return HEADER + "\n".join(writer.lines) + "\n"


def of_seed(seed: int) -> str:
    """The pass that a seed is for."""
    return PASSES[seed % len(PASSES)]


def _difference(one: torch.Tensor, other: torch.Tensor) -> str:
    """How two results differ beyond rounding."""
    a, b = one.double(), other.double()
    close = (a == b) | (a.isnan() & b.isnan())
    close |= (a - b).abs() <= 1e-4 * (b.abs() + 0.01 * b[b.isfinite()].abs().max().clamp(min=0.0))
    return "" if bool(close.all()) else f"{int((~close).sum())} of {close.numel()} values differ"


@dataclass(frozen=True)
class Result(Found):
    """``changed``: the pass changes the kernel's module."""

    changed: bool


def run(seed: int, folder: Path) -> Result:
    """A kernel with the pass that the seed is for, and without it."""
    start, item = time.process_time(), of_seed(seed)
    found = Result("", "", 0.0, False)
    for attempt in range(TRIES):
        source = generate(seed, attempt, AIMS[item])
        size, warps = random.Random(seed).choice((16, 16, 32)), random.Random(seed).choice((1, 2, 4))
        source = source.replace('"""Generated."""', f'"""Without {item!r}, R={size}, num_warps={warps}, n=4, m=5."""')
        fault, changed = _compared(source, item, size, warps, folder / f"{seed}_{attempt}")
        found = Result(fault, source, time.process_time() - start, changed)
        if fault or changed:
            break
    return found


def _compared(source: str, item: str, size: int, warps: int, folder: Path) -> tuple[str, bool]:
    """What is wrong with a kernel, and whether the pass changes it."""
    folder.mkdir()
    module = written(folder / "kernel.py", source)
    numbers = torch.Generator().manual_seed(size)
    x, y = (torch.randint(0, 4, (TILES * size * size,), generator=numbers).float() for _ in range(2))
    q = torch.randint(0, size, (size * size,), generator=numbers, dtype=torch.int32)

    def launched(*without: str) -> tuple[list[torch.Tensor], bytes]:
        memory = [x.clone(), y.clone(), torch.zeros(3 * size * size), torch.zeros(3 * size + 1)]
        a, b, out, rows = memory
        options = {"num_warps": warps, "enable_fp_fusion": False}
        kernel = module.kernel[(1,)](a, b, q, out, rows, 4, 5, size, without=without, **options)
        return memory, kernel.asm["spv"]

    with knobs.cache.scope():
        knobs.cache.dir = str(folder)
        try:
            usual, words = launched()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            return ("" if fault.startswith(REFUSALS) else f"usual: {fault}"), False
        try:
            others, other_words = launched(item)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            return ("" if fault.startswith(REFUSALS) else f"without {item!r}: {fault}"), False
    for name, one, other in zip(("x", "y", "out", "rows_out"), usual, others, strict=True):
        if difference := _difference(one, other):
            return f"without {item!r}: {name}: {difference}", True
    return "", words != other_words
