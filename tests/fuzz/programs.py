"""Random kernels with loops, branches, calls and masks around operations on four element types.

All values are integers, and floats are kept small, so that results are exact: what a device computes has to be equal to
what upstream's interpreter computes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

HEADER = '''"""Generated kernels."""
import sys

import numpy as np
import torch
import triton
import triton.language as tl

LAUNCHES = {}


@triton.jit
def last_nonzero(a, b):
    return tl.where(b != 0, b, a)


@triton.jit
def either(v, n):
    if n > 2:
        moved = v + n
    else:
        moved = v - n
    return moved


@triton.jit(noinline=True)
def apart(v, n):
    return v * 2 + n


'''

FOOTER = '''
def run(number):
    """The outputs of kernel ``number``, one a type."""
    kernel, shape, warps, programs = LAUNCHES[number]
    rng = np.random.default_rng(number % 1000003)
    shape = (programs, *shape)
    x = rng.integers(-2**31, 2**31, shape, dtype=np.int64).astype(np.int32)
    y = rng.integers(-500, 500, shape).astype(np.float32)
    b = rng.integers(-128, 128, shape).astype(np.int8)
    w = rng.integers(-2**63, 2**63 - 1, shape, dtype=np.int64)
    inputs = [torch.from_numpy(values) for values in (x, y, b, w)]
    outputs = [torch.zeros_like(values) for values in inputs]
    kernel[(programs,)](*inputs, *outputs, 3, shape[1] * shape[2] - 3, num_warps=warps)
    return [output.numpy() for output in outputs]


if __name__ == "__main__":
    results = {}
    for number in LAUNCHES:
        try:
            results.update({f"{number}_{index}": output for index, output in enumerate(run(number))})
        except Exception as error:
            results[f"{number}_error"] = np.array(f"{type(error).__name__}: {error}")
    np.savez(sys.argv[1], **results)
'''

#: Kind of a value → its type.
TYPES = {"integer": "tl.int32", "float": "tl.float32", "byte": "tl.int8", "wide": "tl.int64"}

#: Expressions of tensors a, b, c of type T, of an int32 tensor i, a constant k, and an axis of E elements.
ANY = (
    "{a} + {b}",
    "{a} - {b}",
    "tl.minimum({a}, {b})",
    "tl.maximum({a}, {b})",
    "tl.where({c} > {b}, {a}, {b})",
    "either({a}, n)",
    "{a} + apart(n, pid)",
)
INTEGER = (
    "{a} * {b}",
    "{a} & {b}",
    "{a} | {b}",
    "{a} ^ {b}",
    "{a} >> {k}",
    "{a} << {k}",
    "~{a}",
    "-{a}",
    "tl.abs({a})",
    "{a} // ({k} + ({b} & 7))",
    "{a} % ({k} + ({b} & 15))",
    "{a} // -{k}",
    "{a} < {b}",
    "{a} == {b}",
    "tl.xor_sum({a}, {axis}, keep_dims=True) + {b}",
)
FLOAT = (
    "tl.floor({a} * 0.5)",
    "tl.abs({a})",
    "-{a}",
    "tl.ceil({b} * 0.25)",
    "{a} * {k}",
    "tl.fma({a}, {b}, {a})",
    "tl.clamp({a}, -{k}, {k})",
)
SHAPE = (
    "{a} + tl.sum({a}, {axis}, keep_dims=True).to({T})",
    "{a} - tl.max({a}, {axis}, keep_dims=True)",
    "{b} + tl.min({a}, {axis}, keep_dims=True)",
    "tl.trans(tl.reshape({a}, [N, M]))",
    "tl.reshape(tl.trans({a}), [M, N])",
    "tl.cumsum({a}, {axis})",
    "tl.cumsum({a}, {axis}, reverse=True)",
    "tl.associative_scan({a}, {axis}, last_nonzero)",
    "tl.flip({a}, {axis})",
    "tl.sort({a}, 1)",
    "tl.sort({a}, 1, descending=True)",
    "tl.argmax({a}, {axis}, keep_dims=True).to({T}) + {b}",
    "tl.argmin({a}, {axis}, keep_dims=True).to({T}) + {b}",
    "tl.gather({a}, {i} & ({E} - 1), {axis})",
    "tl.sum(tl.reshape(tl.join({a}, {b}), [M, N, 2]), 2)",
    "tl.reshape(tl.interleave({a}, {b}), [M, 2, N]).sum(1)",
    "tl.reshape(tl.permute(tl.join({a}, {b}), (2, 0, 1)), [2, M, N]).max(0)",
    "tl.sum(tl.reshape({a}, [M * N])).to({T}) + {b}",
    "tl.cumprod({i} & 1, {axis}).to({T}) + {a}",
)
CONDITIONS = ("n > 2", "pid == 0", "pid + n < 4", "tl.sum({i} & 1) > M * N // 2")
LOOPS = ("for {it} in range(0, n + {small}):", "for {it} in range({big}, n - 2, -2):", "while {it} < n + 1:")


class Generator:
    """Writes one kernel. ``pools``: the names of each kind that may be read where the next line is written."""

    def __init__(self, seed: int) -> None:
        self.rng, self.copies = random.Random(seed), random.Random(-seed)
        self.M, self.N = 1 << self.rng.randint(0, 5), 1 << self.rng.randint(0, 5)
        self.pools = {"integer": ["x"], "float": ["y"], "byte": ["b"], "wide": ["w"]}
        self.lines: list[str] = []
        self.names = 0

    def name(self) -> str:
        """A new one."""
        self.names += 1
        return f"v{self.names}"

    def kind(self) -> str:
        """Of a value to compute."""
        return self.rng.choice(list(TYPES))

    def expression(self, kind: str) -> str:
        """A value of that kind."""
        rng, type_ = self.rng, TYPES[kind]
        choice = rng.random()
        if choice < 0.1:
            source = rng.choice([other for other in TYPES if other != kind])
            value = rng.choice(self.pools[source])
            if kind == "float":
                return f"({value} & 63).to(tl.float32)"
            return f"{value}.to(tl.int32).to({type_})" if source == "float" else f"{value}.to({type_})"
        arithmetic = FLOAT if kind == "float" else INTEGER
        text = rng.choice(arithmetic if choice < 0.45 else ANY if choice < 0.7 else SHAPE)
        axis = rng.randint(0, 1)
        pool = self.pools[kind]
        text = text.format(
            a=rng.choice(pool),
            b=rng.choice(pool),
            c=rng.choice(pool),
            axis=axis,
            T=type_,
            i=rng.choice(self.pools["integer"]),
            E=(self.M, self.N)[axis],
            k=rng.randint(1, 7 if kind == "byte" else 31),
        )
        return f"({text}).to({type_})"

    def assign(self, indent: str, name: str, kind: str) -> None:
        """``name`` becomes a tensor of that kind, at times one that has a name."""
        if self.copies.random() < 0.15:
            self.lines.append(f"{indent}{name} = {self.copies.choice(self.pools[kind])}")
            return
        value = f"tl.broadcast_to({self.expression(kind)}, [M, N])"
        self.lines.append(
            f"{indent}{name} = " + (f"tl.minimum(tl.maximum({value}, -1000.0), 1000.0)" if kind == "float" else value)
        )

    def nested(self, indent: str, body: list[tuple[str, str]], steps: int, readable: bool) -> None:
        """``steps`` statements and then the assignments of ``body``; what the statements name ends with them.
        ``readable``: they may read what ``body`` assigns."""
        kept = {kind: list(pool) for kind, pool in self.pools.items()}
        if readable:
            for name, kind in body:
                self.pools[kind].append(name)
        self.block(indent, steps)
        for name, kind in body:
            self.assign(indent, name, kind)
        self.pools = kept

    def block(self, indent: str, steps: int) -> None:
        """So many statements."""
        rng = self.rng
        for _ in range(steps):
            choice = rng.random() if len(indent) < 12 else 1.0
            carried = [(self.name(), self.kind()) for _ in range(2 if choice < 0.12 else 1)]
            if choice < 0.24:
                self.lines += [f"{indent}{name} = {rng.choice(self.pools[kind])}" for name, kind in carried]
            if choice < 0.12:
                counter = self.name()
                head = rng.choice(LOOPS).format(it=counter, small=rng.randint(0, 2), big=rng.randint(3, 6))
                counts = head.startswith("while")
                self.lines += [f"{indent}{counter} = pid"] * counts + [indent + head]
                self.nested(indent + "    ", carried, rng.randint(1, 3), True)
                self.lines += [f"{indent}    {counter} += 1"] * counts
            elif choice < 0.24:
                condition = rng.choice(CONDITIONS).format(i=rng.choice(self.pools["integer"]))
                self.lines.append(f"{indent}if {condition}:")
                self.nested(indent + "    ", carried, rng.randint(1, 3), False)
                if rng.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.nested(indent + "    ", carried, 0, False)
            else:
                self.assign(indent, *carried[0])
            for name, kind in carried:
                self.pools[kind].append(name)


@dataclass(frozen=True)
class Program:
    """A kernel. ``body``: its statements between the loads of x, y, b and w and the stores."""

    number: int
    rows: int
    columns: int
    head: tuple[str, ...]
    body: tuple[str, ...]
    stores: tuple[str, ...]
    warps: int
    programs: int

    @property
    def source(self) -> str:
        """The kernel and its entry in LAUNCHES."""
        name = f"kernel_{self.number}"
        lines = [
            "@triton.jit",
            f"def {name}(x_ptr, y_ptr, b_ptr, w_ptr, x_out, y_out, b_out, w_out, n, limit, "
            f"M: tl.constexpr = {self.rows}, N: tl.constexpr = {self.columns}):",
            *self.head,
            *self.body,
            *self.stores,
        ]
        launch = f"LAUNCHES[{self.number}] = {name}, ({self.rows}, {self.columns}), {self.warps}, {self.programs}"
        return "\n".join([*lines, "", "", launch, "", "", ""])


def generate(seed: int) -> Program:
    """A kernel of up to a dozen statements, some of them nested."""
    generator = Generator(seed)
    rng, rows, columns = generator.rng, generator.M, generator.N
    masks = ["", ", mask=mask, other=7", ", mask=mask & (at > 1), other=1"]
    head = [
        "    pid = tl.program_id(0)",
        "    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]",
        "    start = pid * M * N",
        "    mask = at < limit",
        *(f"    {name} = tl.load({name}_ptr + start + at{rng.choice(masks)})" for name in "xybw"),
    ]
    generator.block("    ", rng.randint(5, 12))
    stored = rng.choice(("", ", mask=mask"))
    stores = []
    for name, (kind, pool) in zip("xybw", generator.pools.items(), strict=True):
        value = (" + " if kind == "float" else " ^ ").join(pool[-3:])
        stores.append(f"    tl.store({name}_out + start + at, {value}{stored})")
    warps, programs = rng.choice((1, 2, 4, 8)), rng.randint(1, 3)
    return Program(seed, rows, columns, tuple(head), tuple(generator.lines), tuple(stores), warps, programs)
