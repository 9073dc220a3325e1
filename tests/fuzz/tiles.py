"""Random kernels on tiles of narrow types: what loops and branches carry, memory in between, dots, long tiles.

What suits a driver's compiler is random, too, so that the ways of other drivers run on this one: strips of long code,
loads an iteration ahead, rolled loops, padded buffers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

HEADER = '''"""Generated kernels."""
import triton
import triton.language as tl


@triton.jit
def last_nonzero(a, b):
    return tl.where(b != 0, b, a)


@triton.jit(noinline=True)
def apart(v, n):
    return v * 2 + n


@triton.jit
def sides(v, n):
    if n > 2:
        return v + n, v - 1
    else:
        return v - n, v + 1


'''

#: Kind of a value → Triton's type and torch's.
TYPES = {
    "h": ("tl.float16", torch.float16),
    "b": ("tl.bfloat16", torch.bfloat16),
    "q": ("tl.int8", torch.int8),
    "f": ("tl.float32", torch.float32),
    "i": ("tl.int32", torch.int32),
    "e": ("tl.float8e5", torch.float8_e5m2),
    "g": ("tl.float8e4nv", torch.float8_e4m3fn),
}
FLOATS, NARROW_FLOATS = "hbf", "eg"

#: Of any type. ``a``, ``b``: tensors of it; ``c``: a mask; ``i``: int32.
MOVES = (
    "tl.where({c}, {a}, {b})",
    "tl.where({c}, {a}, {b})",
    "tl.trans(tl.reshape({a}, [N, M]))",
    "tl.reshape(tl.trans({a}), [M, N])",
    "tl.max(tl.reshape(tl.join({a}, {b}), [M, 2, N]), 1)",
    "tl.reshape(tl.permute(tl.reshape({a}, [M, N // 2, 2]), (2, 0, 1)), [M, N])",
    "tl.gather({a}, {i} & ({E} - 1), {axis})",
    "tl.flip({a}, {axis})",
)
#: Moves that 8-bit floats have.
PLAIN_MOVES = (*MOVES[:4], MOVES[5])
ARITHMETIC = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "tl.minimum({a}, {b})",
    "tl.maximum({a}, {b})",
    "-{a}",
    "tl.abs({a})",
    "{a} + apart(n, pid)",
    "sides({a}, n)[0] + sides({b}, pid)[1]",
    "{a} + tl.max({b}, {axis}, keep_dims=True)",
    "{a} - tl.min({b}, {axis}, keep_dims=True)",
    "tl.sum({a}.to(tl.float32), {axis}, keep_dims=True).to({T}) + {b}",
    "tl.sum(tl.reshape({a}.to(tl.int32), [M * N])).to({T}) - {b}",
    "tl.argmax({a}, {axis}, keep_dims=True).to({T}) + {b}",
    "tl.argmin({a}, {axis}, keep_dims=True).to({T}) + {b}",
    "tl.associative_scan({a}, {axis}, last_nonzero)",
    "tl.cumsum({a}.to(tl.float32), {axis}).to({T})",
    "tl.cumsum({a}.to(tl.int32), {axis}, reverse=True).to({T})",
    "tl.sort({a}, 1)",
    "tl.sort({a}, 1, descending=True)",
    "tl.histogram(tl.reshape({i}, [M * N]) & (N - 1), N)[None, :].to({T}) + {a}",
    "tl.histogram(tl.reshape({i}, [M * N]) & (N - 1), N, mask=tl.reshape(tl.broadcast_to({c}, [M, N]), [M * N]))"
    "[None, :].to({T}) - {a}",
)
CONDITIONS = ("({i} & 3) != 0", "{f} > 1", "at % 3 == 1", "mask", "columns < limit // M", "{f} + rows > columns")
LOOPS = (
    "for {it} in range(n):",
    "for {it} in range(pid, n + 1):",
    "for {it} in tl.range(0, n, num_stages=3):",
    "for {it} in tl.static_range(2):",
    "for {it} in tl.range(0, n, loop_unroll_factor=2):",
    "for {it} in range(n, 0, -1):",
    "for {it} in range(0, n - 3):",
    "for {it} in tl.range(0, n, flatten=True):",
)
BRANCHES = ("n > 2", "pid == 0", "pid + n < 4", "tl.sum({i} & 1) > M * N // 2", "tl.max({f}) > 30")

#: Traits of a driver's compiler that are chosen among, the first one its own.
TRAITS: dict[str, tuple[Any, ...]] = {
    "unrolled_elementwise": (4000, 40, 150, 0),
    "unrolled_instructions": (400, 60, 4000),
    "unrolled_in_loop": (1600, 100, 0),
    "most_shuffles": (16, 0, None),
    "prefetch": (False, True),
    "shared_banks": (False, True),
    "dot_unroll": (512, 16),
    "dot_registers": (64, 4),
    "dot_unroll_registers": (16384, 64),
}
#: Which matrix units dots run on: none, the device's, or those that are faster than multiply-adds.
UNITS = ("0", "1", "auto")


#: Of a grid.
MOST_PROGRAMS = 3


@dataclass(frozen=True)
class Tile:
    """A kernel. ``body``: its statements between the loads and the stores; ``traits``: of the driver's compiler."""

    number: int
    rows: int
    columns: int
    head: tuple[str, ...]
    body: tuple[str, ...]
    stores: tuple[str, ...]
    warps: int
    programs: int
    traits: tuple[tuple[str, Any], ...]
    units: str
    first: int

    @property
    def source(self) -> str:
        """The kernel, and how it is launched."""
        names = ", ".join(f"{kind}_{which}" for which in ("ptr", "tmp", "out") for kind in TYPES)
        lines = [
            f"# num_warps={self.warps}, matrix_units={self.units!r}, grid {self.programs}, first {self.first}, "
            f"traits {dict(self.traits)}",
            "@triton.jit",
            f"def kernel_{self.number}({names}, n, limit, M: tl.constexpr = {self.rows}, "
            f"N: tl.constexpr = {self.columns}):",
            *self.head,
            *self.body,
            *self.stores,
        ]
        return "\n".join([*lines, "", "", ""])


class Generator:
    """The statements of one kernel."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.M, self.N = rng.choice((1, 2, 4, 8, 16, 32)), rng.choice((2, 4, 8, 16, 32, 64))
        if not 16 <= self.M * self.N <= 512:
            self.M = self.N = 8
        self.warps = rng.choice((1, 2, 4, 8, 16))
        while rng.random() < 0.7 and self.warps > 1 and self.M * self.N < 32 * self.warps:
            self.warps //= 2  # words of several elements in a lane
        while self.M * self.N > 128 * self.warps:
            self.warps *= 2
        self.kinds = [*"fi", *rng.sample([kind for kind in TYPES if kind not in "fi"], rng.randint(1, 3))]
        self.pools = {kind: [kind] for kind in self.kinds}
        self.counter = 0
        self.lines: list[str] = []

    def name(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def _condition(self) -> str:
        return "(" + self.rng.choice(CONDITIONS).format(**self._names()) + ")"

    def _names(self) -> dict[str, str]:
        return {kind: self.rng.choice(pool) for kind, pool in self.pools.items()}

    def bounded(self, kind: str, text: str) -> str:
        """The expression as a tile of small numbers."""
        type_ = TYPES[kind][0]
        tile = f"tl.broadcast_to(({text}).to({type_}), [M, N])"
        return f"tl.minimum(tl.maximum({tile}, -60.0), 60.0)" if kind in FLOATS else tile

    def converted(self, kind: str) -> str:
        """A value of another kind, converted."""
        rng, type_ = self.rng, TYPES[kind][0]
        source = rng.choice([other for other in self.kinds if other != kind])
        value = rng.choice(self.pools[source])
        if source in "qi" and kind not in "qi":
            return f"({value} & 31).to({type_})" if kind in FLOATS else f"({value} & 31).to(tl.float32).to({type_})"
        if source in NARROW_FLOATS or kind in NARROW_FLOATS:
            return f"{value}.to(tl.float32).to({type_})"
        return f"{value}.to({type_})"

    def product(self, kind: str) -> str | None:
        """Two chained dots of zeros and ones; None if a side is too short."""
        if self.M < 16 or self.N < 16 or kind not in "hbqf" or self.M * self.N > 2048:
            return None
        rng, type_ = self.rng, TYPES[kind][0]
        a, b, c = (f"({rng.choice(self.pools['i'])} & {rng.choice((1, 3))}).to({type_})" for _ in range(3))
        if rng.random() < 0.5:
            a = f"tl.minimum(tl.abs({rng.choice(self.pools[kind])}), 2).to({type_})"
        whole = "tl.int32" if kind == "q" else "tl.float32"
        options = ', input_precision="ieee"' if kind == "f" else ""
        first = f"tl.dot({a}, tl.trans({b}){options})"
        low = f"tl.minimum(tl.maximum({first}, -60), 60).to({type_})"
        if rng.random() < 0.3:
            return f"tl.dot({low}, {c}, tl.full([M, N], 3, {whole}){options}).to({type_})"
        return f"tl.dot({low}, {c}{options}).to({type_})"

    def expression(self, kind: str) -> str:
        """An expression of that kind, of tiles, rows or columns."""
        rng = self.rng
        choice = rng.random()
        if choice < 0.15:
            return self.converted(kind)
        if choice < 0.21 and (found := self.product(kind)):
            return found
        moves = PLAIN_MOVES if kind in NARROW_FLOATS else MOVES
        moves = tuple(move for move in moves if kind not in NARROW_FLOATS or "max" not in move)
        text = rng.choice(moves if kind in NARROW_FLOATS or choice < 0.45 else ARITHMETIC)
        axis, pool = rng.randint(0, 1), self.pools[kind]
        if kind in "iq":
            text = text.replace("tl.float32", "tl.int32")  # exact past 24 bits
        names = {**self._names(), "a": rng.choice(pool), "b": rng.choice(pool)}
        return text.format(**names, c=self._condition(), axis=axis, E=(self.M, self.N)[axis], T=TYPES[kind][0])

    def assign(self, indent: str, name: str, kind: str) -> None:
        """``name`` becomes a tile of that kind."""
        self.lines.append(f"{indent}{name} = {self.bounded(kind, self.expression(kind))}")

    def _mask(self) -> str:
        return self.rng.choice(("", f", mask={self._condition()}, other=5", ", mask=mask, other=0"))

    def _loaded(self, kind: str, where: str, shift: str = "") -> str:
        mask = self._mask()
        if kind in NARROW_FLOATS and mask:
            mask = mask.replace("other=5", "other=0.0").replace("other=0", "other=0.0").replace("0.0.0", "0.0")
        return f"tl.load({kind}_{where} + start + {self.rng.choice(('at', 'across'))}{shift}{mask})"

    def through_memory(self, indent: str) -> None:
        """A tile that is stored and loaded in another order."""
        rng = self.rng
        kind = rng.choice(self.kinds)
        name, value = self.name(), rng.choice(self.pools[kind])
        mask = f", mask={self._condition()}" if rng.random() < 0.5 else ""
        self.lines += [
            f"{indent}tl.debug_barrier()",
            f"{indent}tl.store({kind}_tmp + start + {rng.choice(('at', 'across'))}, {value}{mask})",
            f"{indent}tl.debug_barrier()",
            f"{indent}{name} = {self._loaded(kind, 'tmp')}",
        ]
        self.pools[kind].append(name)

    def counted(self, indent: str) -> None:
        """Atomic additions, and what they come to."""
        name, value, bits = self.name(), self.rng.choice(self.pools["i"]), self.rng.choice((0, 3, 15))
        self.lines += [
            f"{indent}tl.debug_barrier()",
            f"{indent}tl.atomic_add(i_tmp + start + (at & {bits}), {value}, mask={self._condition()})",
            f"{indent}tl.debug_barrier()",
            f"{indent}{name} = tl.load(i_tmp + start + across)",
        ]
        self.pools["i"].append(name)

    def loop(self, indent: str) -> None:
        """A loop that carries tiles, some of which were loaded in the iteration before."""
        rng, inner = self.rng, indent + "    "
        carried = [(self.name(), rng.choice(self.kinds)) for _ in range(rng.randint(1, 3))]
        ahead = [(self.name(), self.name(), rng.choice(self.kinds)) for _ in range(rng.randint(0, 2))]
        self.lines += [f"{indent}{name} = {rng.choice(self.pools[kind])}" for name, kind in carried]
        self.lines += [f"{indent}{following} = {self._loaded(kind, 'ptr')}" for _, following, kind in ahead]
        counter = self.name()
        counts = rng.random() < 0.25
        if counts:
            self.lines += [f"{indent}{counter} = pid", f"{indent}while {counter} < n:"]
        else:
            self.lines.append(indent + rng.choice(LOOPS).format(it=counter))
        kept = {kind: list(pool) for kind, pool in self.pools.items()}
        for now, following, kind in ahead:
            self.lines.append(f"{inner}{now} = {following}")
            self.pools[kind].append(now)
        for name, kind in carried:
            self.pools[kind].append(name)
        self.lines += [
            f"{inner}{following} = {self._loaded(kind, 'ptr', f' + {counter} * M * N')}" for _, following, kind in ahead
        ]
        self.block(inner, rng.randint(0, 2))
        for name, kind in carried:
            self.assign(inner, name, kind)
        if rng.random() < 0.3:
            kind = rng.choice(self.kinds)
            value, behind = rng.choice(self.pools[kind]), f"{MOST_PROGRAMS} * M * N"
            self.lines.append(f"{inner}tl.store({kind}_out + start + {behind} + at, {value}, mask={self._condition()})")
        self.lines += [f"{inner}{counter} += 1"] * counts
        self.pools = kept
        for name, kind in (*carried, *((following, kind) for _, following, kind in ahead)):
            self.pools[kind].append(name)

    def streamed(self, indent: str) -> None:
        """A tile of whole words that is loaded in one iteration, or in one arm of an ``if``, and used in the next."""
        rng, inner = self.rng, indent + "    "
        kind = rng.choice([kind for kind in self.kinds if kind not in "fi"])
        now, following, counter = self.name(), self.name(), self.name()
        words = f"{kind}_ptr + start + at"
        behind = f"{kind}_out + start + {MOST_PROGRAMS} * M * N + at"
        if rng.random() < 0.4:
            self.lines += [
                f"{indent}if {rng.choice(BRANCHES).format(**self._names())}:",
                f"{inner}{now} = tl.load({words})",
                f"{indent}else:",
                f"{inner}{now} = {rng.choice((f'tl.load({words} + M * N)', f'{self.pools[kind][0]}'))}",
                f"{indent}tl.store({behind}, {now})",
            ]
            self.pools[kind].append(now)
            return
        self.lines += [
            f"{indent}{following} = tl.load({words})",
            indent + rng.choice(LOOPS).format(it=counter),
            f"{inner}{now} = {following}",
            f"{inner}{following} = tl.load({words} + {counter} * M * N{rng.choice(('', f', mask={counter} < 2'))})",
        ]
        kept = {kind: list(pool) for kind, pool in self.pools.items()}
        self.pools[kind].append(now)
        self.block(inner, rng.randint(0, 1))
        self.pools = kept
        self.lines.append(f"{inner}tl.store({behind}, {now})")
        self.pools[kind].append(following)

    def branch(self, indent: str) -> None:
        """An ``if`` that changes tiles."""
        rng = self.rng
        carried = [(self.name(), rng.choice(self.kinds)) for _ in range(rng.randint(1, 3))]
        self.lines += [f"{indent}{name} = {rng.choice(self.pools[kind])}" for name, kind in carried]
        self.lines.append(f"{indent}if {rng.choice(BRANCHES).format(**self._names())}:")
        kept = {kind: list(pool) for kind, pool in self.pools.items()}
        for arm in range(rng.randint(1, 2)):
            if arm:
                self.lines.append(f"{indent}else:")
            self.block(indent + "    ", rng.randint(0, 2))
            for name, kind in carried:
                if rng.random() < 0.3:
                    self.lines.append(f"{indent}    {name} = {self._loaded(kind, 'ptr')}")
                else:
                    self.assign(indent + "    ", name, kind)
            self.pools = {kind: list(pool) for kind, pool in kept.items()}
        for name, kind in carried:
            self.pools[kind].append(name)

    def block(self, indent: str, steps: int) -> None:
        """So many statements."""
        rng = self.rng
        for _ in range(steps):
            choice = rng.random()
            if choice < 0.22 and len(indent) < 12:
                self.loop(indent)
            elif choice < 0.36 and len(indent) < 16:
                self.branch(indent)
            elif choice < 0.44:
                self.streamed(indent)
            elif choice < 0.52:
                self.through_memory(indent)
            elif choice < 0.56:
                self.counted(indent)
            else:
                kind, name = rng.choice(self.kinds), self.name()
                self.assign(indent, name, kind)
                self.pools[kind].append(name)


def generate(seed: int) -> Tile:
    """A kernel of up to a dozen statements, some of them nested."""
    generator = Generator(seed)
    rng, kinds = generator.rng, generator.kinds
    head = [
        "    pid = tl.program_id(0)",
        "    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]",
        "    at = rows * N + columns",
        "    across = columns * M + rows",
        "    start = pid * M * N",
        "    mask = at < limit",
        *(f"    {kind} = tl.load({kind}_ptr + start + at)" for kind in "fi"),
        *(f"    {kind} = {generator._loaded(kind, 'ptr')}" for kind in kinds[2:]),
    ]
    generator.block("    ", rng.randint(1, 5))
    if rng.random() < 0.6:
        generator.streamed("    ")
    stored = rng.choice(("", ", mask=mask"))
    stores = []
    for kind, pool in generator.pools.items():
        last = pool[-3:]
        if rng.random() < 0.1:
            stores.append("    if pid == 1 and n > 0:\n        return")
        if kind in NARROW_FLOATS:
            stores.append(f"    tl.store({kind}_out + start + at, {last[-1]}{stored})")
        else:
            stores.append(f"    tl.store({kind}_out + start + at, {' + '.join(last)}{stored})")
    odd = 0.6 if generator.M * generator.N <= 64 * generator.warps else 0.0  # long tiles compile long the wrong way
    traits = tuple(
        (name, value)
        for name, values in TRAITS.items()
        if (value := rng.choice(values)) != values[0] and rng.random() < odd
    )
    return Tile(
        seed, generator.M, generator.N, tuple(head), tuple(generator.lines), tuple(stores),
        generator.warps, rng.randint(1, MOST_PROGRAMS), traits, rng.choice(UNITS), rng.choice((0, 0, 0, 1, 3)),
    )  # fmt: skip
