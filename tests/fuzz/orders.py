"""Random kernels whose loads and stores stand between operations that move elements: their order decides what is read.

Arguments are one tensor or views of it, of any type and alignment. Between the operations are loops, branches and
functions that load and store, pointers that loops carry, atomic additions, and waits where the language wants them. A
kernel is compared with its own source, run as Python (reference.py).
"""

import random
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import torch

from tests.fuzz import reference
from tests.fuzz.running import Found, driver_traits, fault_of
from tests.fuzz.tiles import TRAITS
from tests.written import written

_IMPORTS = "import triton\nimport triton.language as tl\n\n\n"
FUNCTIONS = """@triton.jit
def exchanged(q, at, v):
    old = tl.load(q + at)
    tl.store(q + at, v)
    return old


@triton.jit(noinline=True)
def added(q, k, n):
    s = tl.load(q + k)
    if n > 2:
        tl.store(q + k, (s + 1).to(q.dtype.element_ty))
    return s


@triton.jit
def affine(a, b, c, d):
    return a * c & 7, b * c + d & 7


@triton.jit
def ordered(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def quotient(a, b):
    return a // b, a % b


@triton.jit
def row_sums(q, at, n):
    total = tl.load(q + at)
    for k in range(n):
        total = (total + tl.load(q + k + at)).to(total.dtype)
    return total


"""
#: Types of elements: Triton's names are torch's. Sums of small whole numbers are exact in all.
_KINDS = ("int8", "int16", "int32", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64")
#: Elements of tiles, and what a program may reach beyond them.
_SIZES, _SLACK = (1, 2, 8, 64, 128, 256, 512, 1024, 2048, 4096), 96
_REACH = 2 * _SIZES[-1] + _SLACK
#: Values of which a kernel stores the sum, with weights.
_SUMS = 6

_Value = tuple[str, tuple[int, ...], str]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"orders {seed}")
        self.size = rng.choice(_SIZES)
        self.kinds = [rng.choice(_KINDS), rng.choice(_KINDS)]
        #: Pointers → the number of their type, and elements that lie before what they point to.
        self.pointers = {"a0": (0, 0), "a1": (0, rng.choice((0, 0, 1, 16, 33))), "b0": (1, 0)}
        #: Whether both types are of the same memory, of which each sees what the other stored.
        self.punned = rng.random() < 0.4 and all("int" in kind for kind in self.kinds)
        self.values: list[_Value] = []
        self.scalars, self.counters = ["n"], list[str]()
        self.lines: list[str] = []
        self.named = 0
        self.stored, self.loaded = set[int](), set[str]()  # since the last wait: memories, and pointers

    def name(self) -> str:
        self.named += 1
        return f"v{self.named}"

    def line(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def wait(self, indent: str) -> None:
        self.line(indent, "tl.debug_barrier()")
        self.stored, self.loaded = set(), set()

    def memory(self, pointer: str) -> int:
        """The number of what it points to."""
        return 0 if self.punned else self.pointers[pointer][0]

    def reads(self, indent: str, pointer: str) -> None:
        """Before a load: other invocations' stores are to be seen."""
        if self.memory(pointer) in self.stored:
            self.wait(indent)
        self.loaded.add(pointer)

    def writes(self, indent: str, pointer: str) -> None:
        """Before a store: loads through the same argument need no wait."""
        memory = self.memory(pointer)
        if memory in self.stored or any(one != pointer and self.memory(one) == memory for one in self.loaded):
            self.wait(indent)
        self.stored.add(memory)

    def factors(self, size: int) -> tuple[int, ...]:
        if 256 <= size <= 1024 and self.rng.random() < 0.2:  # as dots have it
            return 16, size // 16
        shape = [1] * self.rng.choice((1, 1, 2, 2, 3, 4))
        for _ in range(size.bit_length() - 1):
            shape[self.rng.randrange(len(shape))] *= 2
        return tuple(shape)

    def at(self, shape: tuple[int, ...]) -> str:
        """Places of a tile's elements, each of them once."""
        size, rng = prod(shape), self.rng
        line, text = f"tl.arange(0, {size})", ""
        kind = rng.choice(("along", "along", "back", "round", "odd", "turned"))
        line = f"{line}.to(tl.int64)" if rng.random() < 0.1 else line
        line = {
            "back": f"({size - 1} - {line})",
            "round": f"(({line} + {rng.randint(1, size)}) & {size - 1})",
            "odd": f"({line} * {rng.choice((3, 5, 7))} & {size - 1})",
        }.get(kind, line)
        if kind == "turned" and size > 1:
            rows = 1 << rng.randint(0, size.bit_length() - 1)
            text = f"tl.reshape(tl.trans(tl.reshape({line}, [{rows}, {size // rows}])), {list(shape)})"
        return text or (f"tl.reshape({line}, {list(shape)})" if len(shape) > 1 else line)

    def start(self) -> str:
        """Elements before a tile: a number, one that was loaded, or one that changes in a loop."""
        texts = [str(self.rng.randrange(40)), f"({self.rng.choice(self.scalars)} & 15)"]
        return self.rng.choice([*texts, *(f"{counter} * {self.rng.choice((1, 2, 8))}" for counter in self.counters)])

    def bounded(self, text: str, kind: str, of: str = "int32") -> str:
        """A small whole number of the type, of an expression of the type ``of``."""
        if "int" in kind:
            text = text if "int" in of else f"({text}).to(tl.int32)"
            return f"(({text}) & 31).to(tl.{kind})"
        return f"tl.minimum(tl.maximum(({text}).to(tl.{kind}), -30.0), 30.0).to(tl.{kind})"

    def pick(self, fits: Callable[[_Value], bool] = lambda value: True) -> _Value:
        found = [value for value in self.values if fits(value)]
        return self.rng.choice(found[-3:] if self.rng.random() < 0.6 else found)

    def new(self, indent: str, text: str, shape: tuple[int, ...], kind: str) -> _Value:
        value = self.name(), shape, kind
        self.line(indent, f"{value[0]} = {text}")
        self.values.append(value)
        return value

    def load(self, indent: str) -> None:
        rng, pointer = self.rng, self.rng.choice(list(self.pointers))
        self.reads(indent, pointer)
        size = self.size if rng.random() < 0.7 else rng.choice(_SIZES[:7])
        shape, kind = self.factors(size), self.kinds[self.pointers[pointer][0]]
        at, mask = self.at(shape), ""
        if rng.random() < 0.3:
            mask = f", mask={self.at(shape)} < {rng.choice((0, size // 2, size - 1, f'{size} - n'))}, other=3"
        place = f"{pointer} + {self.start()} + {at}"
        if pointer == "a0" and rng.random() < 0.3:  # either argument's, element by element
            self.reads(indent, "a1")
            place = f"tl.where({self.at(shape)} % 3 == 1, {place}, a1 + {at})"
        self.new(indent, f"tl.load({place}{mask})", shape, kind)

    def store(self, indent: str) -> None:
        rng, pointer = self.rng, self.rng.choice(list(self.pointers))
        kind = self.kinds[self.pointers[pointer][0]]
        name, shape, of = self.pick()
        self.writes(indent, pointer)
        masks = (f"{self.at(shape)} >= {rng.choice((0, 1, prod(shape) // 2, 'n'))}", f"({name}.to(tl.int32) & 3) != 1")
        mask = f", mask={rng.choice(masks)}" if rng.random() < 0.3 else ""
        if rng.random() < 0.1:  # stored to a whole axis
            name = f"tl.min({name}, {rng.randrange(len(shape))}, keep_dims=True)"
        self.line(
            indent, f"tl.store({pointer} + {self.start()} + {self.at(shape)}, {self.bounded(name, kind, of)}{mask})"
        )

    def call(self, indent: str) -> None:
        """A function that loads and stores."""
        rng, pointer = self.rng, self.rng.choice(list(self.pointers))
        kind = self.kinds[self.pointers[pointer][0]]
        what, start = rng.choice(("exchanged", "added", "row_sums")), self.start()
        self.reads(indent, pointer)
        if what != "row_sums":
            self.writes(indent, pointer)
        if what == "added":
            scalar = self.name()
            self.line(indent, f"{scalar} = added({pointer}, {start}, n).to(tl.int32)")
            self.scalars.append(scalar)
            return
        name, shape, of = self.pick()
        rest = self.bounded(name, kind, of) if what == "exchanged" else "n"
        text = f"{what}({pointer} + {start}, {self.at(shape)}, {rest})"
        self.new(indent, self.bounded(text, kind), shape, kind)

    def atomic(self, indent: str) -> None:
        """Additions, and what was there before them."""
        rng = self.rng
        of_32 = [one for one, (memory, _) in self.pointers.items() if self.kinds[memory] in ("int32", "float32")]
        if not of_32:
            return self.store(indent)
        pointer = rng.choice(of_32)
        kind = self.kinds[self.pointers[pointer][0]]
        self.reads(indent, pointer)
        self.writes(indent, pointer)
        shape = self.factors(rng.choice(_SIZES[:6]))
        text = f"tl.atomic_add({pointer} + {self.start()} + {self.at(shape)}, tl.full({list(shape)}, 1, tl.{kind}))"
        self.new(indent, self.bounded(text, kind), shape, kind)
        return None

    def scalar(self, indent: str) -> None:
        """A number that is loaded, or computed from a tile."""
        name, (tile, shape, _) = self.name(), self.pick()
        pointer = self.rng.choice(list(self.pointers))
        if self.rng.random() < 0.5:
            self.reads(indent, pointer)
            text = f"tl.load({pointer} + {self.start()})"
        else:
            how = self.rng.choice(("sum", "max", "min"))
            text = f"tl.{how}(tl.reshape({tile}, [{prod(shape)}]).to(tl.int32), 0)"
        self.line(indent, f"{name} = {text}.to(tl.int32)")
        self.scalars.append(name)

    def both(self, indent: str) -> None:
        """Two tiles at once: what a function, or the user's own order of combining, makes of two."""
        rng = self.rng
        a, shape, kind = self.pick()
        b, axis, keeps = self.pick(lambda value: value[1:] == (shape, kind))[0], rng.randrange(len(shape)), shape
        small = f"({a}.to(tl.int32) & 7, {b}.to(tl.int32) & 7), {axis}, affine"
        texts = [f"ordered({a}, {b})", f"tl.associative_scan({small}, reverse={rng.random() < 0.5})"]
        if "int" in kind:
            texts += [f"quotient({a}, ({b} & 7) {'+ 3' if kind == 'uint8' else '- 11'})"]
        text = rng.choice(texts)
        if len(shape) > 1 and rng.random() < 0.3:
            text, keeps = f"tl.reduce({small})", shape[:axis] + shape[axis + 1 :]
        names = self.name(), self.name()
        self.line(indent, f"{names[0]}, {names[1]} = {text}")
        for name in names:
            self.new(indent, self.bounded(name, kind, "int32" if "affine" in text else kind), keeps, kind)

    def move(self, indent: str) -> None:
        """Elements of a tile change places, or are combined with others."""
        rng = self.rng
        a, shape, kind = self.pick()
        size, axis = prod(shape), rng.randrange(len(shape))
        b = self.pick(lambda value: value[1:] == (shape, kind))[0]
        order = rng.sample(range(len(shape)), len(shape))
        other = self.factors(size)
        keep = f"tl.reshape({a}, {list(other)})"
        small = kind.startswith("float") or kind == "bfloat16"
        sums = a if not small else f"{a}.to(tl.float32)"
        place = f"tl.arg{rng.choice(('max', 'min'))}({a}, {axis}, keep_dims=True)"
        rows: list[tuple[str, tuple[int, ...]]] = [
            (keep, other), (keep, other),
            (f"tl.permute({a}, {tuple(order)})", tuple(shape[d] for d in order)) if len(shape) > 1 else (keep, other),
            (f"tl.flip({a}, {axis})" if shape[axis] > 1 else a, shape),  # upstream cannot flip one element
            (self.bounded(f"{a} + {b}", kind), shape),
            (self.bounded(f"{a} - {b} + n", kind), shape),
            (f"tl.where({self.at(shape)} % 3 == 1, {a}, {b})", shape),
            (self.bounded(f"{a} + tl.sum({sums}, {axis}, keep_dims=True)", kind), shape),
            (self.bounded(f"tl.cumsum({sums}, {axis}, reverse={rng.random() < 0.5})", kind), shape),
            (self.bounded(f"tl.broadcast_to({place}, {list(shape)})", kind, "int32"), shape),
            (f"tl.broadcast_to(tl.max({a}, {axis}, keep_dims=True), {list(shape)}).to(tl.{kind})", shape),
            (f"tl.gather({a}, {self.at(shape)} & {shape[axis] - 1}, {axis})", shape),
        ]  # fmt: skip
        if size <= 512:
            rows.append((f"tl.sort({a}, {len(shape) - 1}).to(tl.{kind})", shape))
            rows.append((f"tl.join({a}, {b})", (*shape, 2)))
            rows.append((f"tl.cat({a}, {b}, dim=0)", (shape[0] * 2, *shape[1:])))
            values = f"tl.histogram(tl.reshape({a}, [{size}]).to(tl.int32) & 15, 16)"
            rows.append((self.bounded(values, kind, "int32"), (16,)))
            if shape[-1] > 1:
                rows.append((f"tl.topk({a}, {shape[-1] // 2}).to(tl.{kind})", (*shape[:-1], shape[-1] // 2)))
            rows.append((f"tl.interleave({a}, {b})", (*shape[:-1], shape[-1] * 2)))
        if part := shape[:axis] + shape[axis + 1 :]:
            rows.append((self.bounded(f"tl.sum({sums}, {axis})", kind), part))
            rows.append((f"tl.min({a}, {axis}).to(tl.{kind})", part))
        if size > 1 and rng.random() < 0.2:
            half = self.factors(size // 2)
            both = [(self.name(), half, kind) for _ in range(2)]
            self.line(indent, f"{both[0][0]}, {both[1][0]} = tl.split(tl.reshape({a}, {[*half, 2]}))")
            self.values += both
            return
        if len(shape) == 2 and min(shape) >= 16 and size <= 1024 and kind in ("float16", "float32", "int8"):
            whole = "int32" if kind == "int8" else "float32"
            how = "" if kind != "float32" else ', input_precision="ieee"'
            rows += [(self.bounded(f"tl.dot({a}, tl.trans({b}){how}).to(tl.{whole})", kind), (shape[0], shape[0]))] * 4
        text, result = rng.choice(rows)
        if len(result) <= 5 and prod(result) <= _SIZES[-1]:
            self.new(indent, text, result, kind)

    def nested(self, indent: str, steps: int, heads: list[str]) -> None:
        """Branches or the body of a loop, which give tiles other values."""
        rng, inner = self.rng, indent + "    "
        carried = [self.pick() for _ in range(rng.randint(1, 2))]
        fresh = [(self.name(), shape, kind) for _, shape, kind in carried]
        for (name, *_), (old, *_) in zip(fresh, carried, strict=True):
            self.line(indent, f"{name} = {old}")
        self.values += fresh
        values, scalars, counters = list(self.values), list(self.scalars), list(self.counters)
        before, stored = (set(self.stored), set(self.loaded)), set[int]()
        for head in heads:
            self.stored, self.loaded = set(before[0]), set(before[1])
            self.line(indent, head)
            is_loop = head.startswith(("for", "while"))
            if is_loop:
                counter = head.split()[1]
                self.counters = [*counters, counter]
                self.line(inner, "tl.debug_barrier()")
                self.stored, self.loaded = set(), set()
            for _ in range(steps):
                self.step(inner)
            for name, shape, kind in fresh:
                like = self.pick(lambda value, s=shape, k=kind: value[1:] == (s, k))[0]  # type: ignore[misc]
                self.line(inner, f"{name} = {self.bounded(f'{name} + {like}', kind) if rng.random() < 0.5 else like}")
            if head.startswith("while"):
                self.line(inner, f"{counter} = {counter} + 1")
            stored |= self.stored
            self.values, self.scalars, self.counters = list(values), list(scalars), list(counters)
        self.stored, self.loaded = stored | before[0], set(self.pointers)

    def loop(self, indent: str) -> None:
        rng, counter = self.rng, self.name()
        bound = rng.choice(("n", "2", "3", f"({rng.choice(self.scalars)} & 3)"))
        heads = (f"for {counter} in range({bound}):", f"for {counter} in tl.range(0, {bound}, num_stages=3):",
                 f"for {counter} in tl.range({bound}, flatten=True):",
                 f"for {counter} in tl.static_range(2):", f"while {counter} < {bound}:")  # fmt: skip
        head = rng.choice(heads)
        if head.startswith("while"):
            self.line(indent, f"{counter} = 0")
        self.nested(indent, rng.randint(2, 4), [head])

    def branch(self, indent: str) -> None:
        scalar, least = self.rng.choice(self.scalars), self.rng.randrange(8)
        heads = [f"if ({scalar} & 7) > {least}:", "else:"]
        self.nested(indent, self.rng.randint(1, 3), heads[: self.rng.randint(1, 2)])

    def walk(self, indent: str) -> None:
        """A loop that carries pointers, one or a tile of them, and stores what it read elsewhere."""
        rng, pointer, counter = self.rng, self.rng.choice(list(self.pointers)), self.name()
        shape, moves, total, tile = self.factors(self.size), self.name(), self.name(), self.name()
        kind, step, several = self.kinds[self.pointers[pointer][0]], rng.choice((0, 1, 3, 8)), rng.random() < 0.5
        at, to, inner = self.at(shape), self.at(shape), indent + "    "
        self.wait(indent)
        self.line(indent, f"{moves} = {pointer} + {self.start()}{f' + {at}' if several else ''}")
        self.line(indent, f"{total} = tl.zeros({list(shape)}, tl.{kind})")
        self.line(indent, f"for {counter} in range({rng.choice(('n', '2'))}):")
        self.line(inner, f"{tile} = tl.load({moves}{'' if several else f' + {at}'})")
        if rng.random() < 0.7:
            self.line(inner, f"tl.store({pointer} + {rng.randrange(40)} + {to}, {self.bounded(f'{tile} + 1', kind)})")
        self.line(inner, f"{total} = {self.bounded(f'{total} * 3 + {tile}', kind)}")
        self.line(inner, f"{moves} = {moves} + {step}")
        self.wait(inner)
        self.values.append((total, shape, kind))

    def step(self, indent: str) -> None:
        rng, depth = self.rng, len(indent) // 4
        kinds = [self.load] * 4 + [self.store] * 5 + [self.move] * 8 + [self.both] * 2 + [self.call] * 3
        kinds += [self.scalar, self.atomic]
        if depth < 3:
            kinds += [self.loop, self.branch] * (2 if depth == 1 else 1) + [self.walk]
        rng.choice(kinds)(indent)


def generate(seed: int) -> tuple[str, _Writer]:
    """A kernel and what wrote it."""
    writer = _Writer(seed)
    for _ in range(2):
        writer.load("    ")
    for _ in range(writer.rng.randint(7, 14)):
        writer.step("    ")
    if writer.rng.random() < 0.2:
        writer.line("    ", f"if ({writer.rng.choice(writer.scalars)} & 3) == 1:")
        writer.line("        ", "return")
    for _ in range(2):
        writer.store("    ")
    for slot, (name, shape, _) in enumerate(writer.rng.sample(writer.values, min(_SUMS, len(writer.values)))):
        size = prod(shape)
        line = f"tl.reshape({name}, [{size}]).to(tl.int32) * (tl.arange(0, {size}) & 7)"
        writer.line("    ", f"tl.store(sums + tl.program_id(0) * {_SUMS} + {slot}, tl.sum({line}, 0))")
    head = ["start = tl.program_id(0) * REACH", *(f"{name} = {name} + start" for name in writer.pointers)]
    if writer.rng.random() < 0.5:
        head = ["tl.assume(n > 0)", head[0], "start = tl.multiple_of(start, 32)", *head[1:]]
    text = "\n".join([*(f"    {line}" for line in head), *writer.lines])
    names = ", ".join(writer.pointers)
    return f"{_IMPORTS}{FUNCTIONS}@triton.jit\ndef kernel({names}, sums, n, REACH: tl.constexpr):\n{text}\n", writer


def run(seed: int, folder: Path) -> Found:
    """One kernel, launched in one way."""
    source, writer = generate(seed)
    rng, start = writer.rng, time.process_time()
    warps, first = rng.choice((1, 2, 4, 8)), rng.choice((0, 0, 1, 3))
    programs = 1 if writer.punned else rng.randint(1, 3)
    while writer.size > 256 * warps:
        warps *= 2
    n = rng.randint(1, 4)
    traits = {name: rng.choice(values) for name, values in TRAITS.items()} if rng.random() < 0.3 else {}
    numbers = torch.Generator().manual_seed(seed)
    length = _REACH * programs + _SLACK
    types = [getattr(torch, kind) for kind in writer.kinds]
    bits = torch.randint(-128, 128, (length * 8,), dtype=torch.int8, generator=numbers)
    memories = [torch.randint(-20, 20, (length,), generator=numbers).to(one) for one in types]

    def copies() -> list[torch.Tensor]:
        whole = bits.clone()
        found = [whole.view(one) for one in types] if writer.punned else [one.clone() for one in memories]
        return [*found, torch.zeros(_SUMS * programs, dtype=torch.int32)]

    wanted, found = copies(), copies()
    names: dict[str, Any] = {"tl": reference.tl, "triton": reference.triton}
    exec(compile(source.replace(_IMPORTS, ""), f"orders {seed}", "exec"), names)
    names["quotient"] = lambda a, b: (torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b))  # as C has it
    for program in range(programs):
        reference.PROGRAM[0] = program
        pointers = [reference.Pointer(wanted[memory], first + more) for memory, more in writer.pointers.values()]
        names["kernel"](*pointers, reference.Pointer(wanted[2]), n, REACH=_REACH)
    module = written(folder / f"orders_{seed}.py", source)
    fault = ""
    try:
        with driver_traits(traits):
            given = [found[memory][first + more :] for memory, more in writer.pointers.values()]
            module.kernel[(programs,)](*given, found[2], n, _REACH, num_warps=warps)
    except Exception as error:
        fault = fault_of(error)[:1000]
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        wrong = (one.double() != other.double()).nonzero()
        if not fault and len(wrong):
            at = int(wrong[0])
            fault = f"memory {place}: {len(wrong)} wrong, the first at {at}: {one[at]} instead of {other[at]}"
    how = (
        f"# {'one memory, ' * writer.punned}{warps} warps, grid {programs}, n={n}, {writer.kinds}, {writer.pointers}, "
    )
    how += f"first {first}, {traits}\n"
    return Found(fault, how + source, time.process_time() - start)
