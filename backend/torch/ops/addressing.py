"""How the shapes and strides of tensors become a kernel's addresses: what all generators of kernels share.

A kernel walks groups of dimensions, each by one number (Walk). Which strides are 0, and 1 in a group's last dimension,
is in a kernel's text; other strides and all sizes are its integer arguments, of 64 bits where 32 do not reach. A plan
for sizes that are new is made of a few sums and one look at a table of kernels: their text is made once for each form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...settings import CHECK_BOUNDS
from .kept import Kept
from .launching import OperationKernel, kernel_for
from .shapes import Dims, overlaps_itself, to_the_end
from .source import kernel_of
from .types import IN_SOURCE, NAMES, OnHost, number_type, require

Number = bool | int | float
#: Elements that are counted in 32 bits, with room for a tile past the end.
NARROW = 2**31 - 2**17
#: Plans that each generator keeps.
PLANS = 1024
#: Kernels by their forms.
_kernels: Kept[OperationKernel] = Kept(4096)


@dataclass(slots=True)
class Operands:
    """What a kernel is passed by name. ``counts``: integers of 64 bits, of which names that begin with "step" are
    strides. An output and an operand may have one name: pointers to outputs are called ``to_…``."""

    outputs: dict[str, torch.Tensor]
    tensors: dict[str, torch.Tensor]
    numbers: dict[str, Number]
    counts: dict[str, int]

    @staticmethod
    def of(
        outputs: dict[str, torch.Tensor], operands: Mapping[str, Any], counts: dict[str, int] | None = None
    ) -> Operands:
        """The arguments of a mapping in which tensors and numbers are mixed."""
        tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
        numbers = {name: value for name, value in operands.items() if not isinstance(value, torch.Tensor)}
        return Operands(outputs, tensors, numbers, counts or {})

    @property
    def pointers(self) -> dict[str, torch.Tensor]:
        """Outputs and tensors by the names of their pointers, except for the ``_p`` that these end in."""
        return {f"to_{name}": tensor for name, tensor in self.outputs.items()} | self.tensors

    @property
    def device(self) -> torch.device:
        """The device of the first tensor."""
        return next(iter((*self.outputs.values(), *self.tensors.values()))).device

    def form(self) -> tuple[Any, ...]:
        """Names and types: what a kernel's text has of them beside addresses."""
        return (
            len(self.outputs),
            *((name, t.dtype) for name, t in self.outputs.items()),
            *((name, t.dtype) for name, t in self.tensors.items()),
            *self.numbers,
            None,
            *self.counts,
        )

    def even_steps(self) -> list[str]:
        """Strides among the counts that are multiples of 16."""
        return [name for name, value in self.counts.items() if name.startswith("step") and value % 16 == 0]

    def check(self, compute: torch.dtype) -> None:
        """Raises OnHost if a kernel that computes in ``compute`` cannot read and write the tensors."""
        device = self.device
        require(compute, device.index or 0)
        for tensor in (*self.outputs.values(), *self.tensors.values()):
            require(tensor.dtype, device.index or 0)
            if tensor.device != device:
                raise OnHost("tensors of several devices")
            if tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():
                raise OnHost("a tensor whose values are not those in memory")
        if any(overlaps_itself(output) for output in self.outputs.values()):
            raise OnHost("an output with elements that share memory")

    def arguments(self) -> list[Any]:
        """The kernel's arguments, except for its integers."""
        return [*self.outputs.values(), *self.tensors.values(), *self.numbers.values(), *self.counts.values()]


@dataclass(frozen=True, slots=True)
class Walk:
    """Dimensions that are walked by one number. ``number``: the name of a tile of such numbers; ``index``: what the
    names of the dimensions' indices begin with; ``mask``: the name of which numbers there are; ``steps``: strides of
    each pointer in these dimensions."""

    number: str
    index: str
    mask: str
    sizes: Dims
    steps: Sequence[Dims]

    @property
    def count(self) -> int:
        """How many elements it walks."""
        return math.prod(self.sizes)

    def indices(self) -> list[str]:
        """Lines that give the index of each dimension."""
        lines, rest = [], self.number
        for d in range(len(self.sizes) - 1, 0, -1):
            lines += [f"{self.index}{d} = {rest} % {self.index}_size{d}"]
            lines += [f"{self.index}_rest = {rest} // {self.index}_size{d}"]
            rest = f"{self.index}_rest"
        return lines if rest == f"{self.index}0" else [*lines, f"{self.index}0 = {rest}"]


class Addresses:
    """The addresses of all pointers of a kernel. ``integers``: its integer arguments, the names and values of which are
    given, then sizes, then strides; ``wide``: whether they have 64 bits."""

    def __init__(self, pointers: Iterable[str], walks: Sequence[Walk], integers: dict[str, int]) -> None:
        self._places = {name: place for place, name in enumerate(pointers)}
        self._walks, self._own = walks, integers.keys()
        self._next: list[tuple[str, str]] = []  # pointers with the walks in whose last dimension they step by 1
        self.integers = {**integers}
        whole, reach = 1, [0] * len(self._places)
        for walk in walks:
            whole *= walk.count
            for d, size in enumerate(walk.sizes):
                if d:
                    self.integers[f"{walk.index}_size{d}"] = size
        for walk in walks:
            last = len(walk.sizes) - 1
            for name, place in self._places.items():
                for d, stride in enumerate(walk.steps[place]):
                    reach[place] += (walk.sizes[d] - 1) * stride
                    if stride == 1 and d == last:
                        self._next.append((name, walk.index))
                    elif stride:
                        self.integers[f"{name}_{walk.index}{d}"] = stride
        self.wide = max(whole, *(walk.count for walk in walks), 1 + max(reach, default=0)) > NARROW

    @property
    def program(self) -> str:
        """The line that numbers the programs of a grid (launching.grid_of)."""
        integer = "tl.int64" if self.wide else "tl.int32"
        return f"program = tl.program_id(1).to({integer}) * tl.num_programs(0) + tl.program_id(0)"

    def place(self, name: str, walks: Sequence[Walk] | None = None, start: str | None = None) -> str:
        """The text of an address: ``start``, the pointer if None, and each index of the walks times its stride."""
        terms = [f"{name}_p" if start is None else start]
        for walk in self._walks if walks is None else walks:
            steps = walk.steps[self._places[name]]
            for d, stride in enumerate(steps):
                if stride == 1 and d == len(steps) - 1:
                    terms.append(f"{walk.index}{d}")
                elif stride:
                    terms.append(f"{walk.index}{d} * {name}_{walk.index}{d}")
        return " + ".join(terms)

    def moves(self, name: str, walk: Walk) -> bool:
        """Whether a pointer's elements differ along a walk."""
        return any(walk.steps[self._places[name]])

    def load(self, name: str, place: str, cast: str = "") -> str:
        """The text of reading a pointer's elements at ``place``, with no wider mask than these differ along."""
        used = [walk.mask for walk in self._walks if self.moves(name, walk)]
        mask = "mask" if len(used) == len(self._walks) else used[0] if used else ""
        return f"tl.load({place}{', mask=' + mask if mask else ''}){cast}"

    def _heeded(self) -> set[str]:
        """Strides that say whether elements which lie next to one another are the next ones of a tile, too: those of a
        pointer that steps by 1 through the last dimension of a walk, and the size of that dimension."""
        found: set[str] = set()
        for name, index in self._next:
            walk = next(walk for walk in self._walks if walk.index == index)
            found.add(f"{index}_size{len(walk.sizes) - 1}")
            found |= {f"{name}_{walk.index}{d}" for walk in self._walks for d in range(len(walk.sizes))}
        return found & (self.integers.keys() - self._own)

    def kernel(
        self,
        name: str,
        form: tuple[Any, ...],
        lines: Callable[[], Sequence[str]],
        operands: Operands,
        compute: torch.dtype,
        *columns: str,
    ) -> OperationKernel:
        """The kernel of these lines, which follow from ``form``, the types and the addresses' form. It is compiled for
        which ``columns``, integers that are neither sizes nor strides, and which of the integers that _heeded() names
        are multiples of 16, so that elements next to one another are read and written together."""

        def make() -> OperationKernel:
            types = {f"{pointer}_p": "*" + NAMES[tensor.dtype] for pointer, tensor in operands.pointers.items()}
            types |= {number: number_type(compute) for number in operands.numbers}
            types |= dict.fromkeys(operands.counts, "i64")
            types |= dict.fromkeys(self.integers, "i64" if self.wide else "i32")
            text = f"def {name}({', '.join(types)}):\n" + "".join(f"    {line}\n" for line in lines())
            return kernel_for(kernel_of(name, text), types, {}, divisible=divisible)

        heeded = {*columns, *self._heeded()}
        divisible = frozenset((*operands.even_steps(), *(one for one in heeded if self.integers[one] % 16 == 0)))
        key = name, form, compute, operands.form(), tuple(self.integers), tuple(self._next), self.wide, divisible
        return _kernels.get(key, make)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its elements are contiguous in memory, with the values that are there."""
    return tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor())


def conversion(tensor: torch.Tensor, compute: torch.dtype) -> str:
    """The text that makes what was read from a tensor of the type that is computed in."""
    return "" if tensor.dtype == compute else f".to({IN_SOURCE[NAMES[compute]]})"


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """A kernel with its grid and integer arguments."""

    kernel: OperationKernel
    grid: tuple[int, int, int]
    integers: tuple[int, ...]

    def launch(self, operands: Operands, places: frozenset[str] = frozenset()) -> None:
        """Run it. ``places``: operands that the kernel reads past their own elements, within their memory."""
        device = operands.device.index or 0
        if places and CHECK_BOUNDS.get():
            own = {name: to_the_end(t) if name in places else t for name, t in operands.tensors.items()}
            operands = replace(operands, tensors=own)
        self.kernel.launch(device, self.grid, [*operands.arguments(), *self.integers])
