"""How the shapes and strides of tensors become a kernel's addresses: what all generators of kernels share.

A kernel walks groups of dimensions, each by one number (Walk). Which strides are 0, and 1 in a group's last dimension,
is in a kernel's text; other strides and all sizes are its integer arguments, of 64 bits where 32 do not reach. A plan
for sizes that are new is made of a few sums and one look at a table of kernels: their text is made once for each form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ...settings import CHECK_BOUNDS
from ..device.native_module import torch_native
from ..device.tensor_memory import tensor_forms
from .dtypes import IN_SOURCE, NAMES, OnHost, known, number_type, require
from .kept import Kept
from .launching import OperationKernel, grid_of, kernel_for
from .source import kernel_of
from .strided_shapes import Dims, to_the_end

Number = bool | int | float
#: Elements that are counted in 32 bits, with room for a tile past the end.
NARROW = 2**31 - 2**17
#: Plans that each generator keeps.
PLANS = 1024


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
        numbers = {name: value for name, value in operands.items() if name not in tensors}
        return Operands(outputs, tensors, numbers, counts or {})

    @property
    def pointers(self) -> dict[str, torch.Tensor]:
        """Outputs and tensors by the names of their pointers, except for the ``_p`` that these end in."""
        return {f"to_{name}": tensor for name, tensor in self.outputs.items()} | self.tensors

    @property
    def index(self) -> int:
        """That of the first tensor's device; 0 for the host's, which check() refuses beside another."""
        return max(next(iter(self.outputs.values() or self.tensors.values())).get_device(), 0)

    def form(self) -> tuple[Any, ...]:
        """Names and types: what a kernel's text has of them beside addresses."""
        return (
            len(self.outputs),
            *[(name, t.dtype) for name, t in self.outputs.items()],
            *[(name, t.dtype) for name, t in self.tensors.items()],
            *self.numbers,
            None,
            *self.counts,
        )

    def even_steps(self) -> list[str]:
        """Strides among the counts that are multiples of 16."""
        return [name for name, value in self.counts.items() if name.startswith("step") and value % 16 == 0]

    def check(self, compute: torch.dtype) -> None:
        """Raises OnHost if a kernel that computes in ``compute`` cannot read and write the tensors."""
        index = self.index
        require(compute, index)
        fault = tensor_forms().fault(self.outputs, self.tensors, known(torch.float64, index))
        if fault is not None:
            raise OnHost(fault)

    def arguments(self) -> list[Any]:
        """The kernel's arguments, except for its integers."""
        return [*self.outputs.values(), *self.tensors.values(), *self.numbers.values(), *self.counts.values()]


@dataclass(slots=True)
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


@dataclass(frozen=True, slots=True)
class _Form:
    """What follows from where addresses have strides of 0 and 1. ``places``: of a kernel's integer arguments among the
    addresses' values; ``heeded``: of those that it is compiled for, with their names, where they are multiples of 16;
    ``kernels``: by whether integers have 64 bits, and what is a multiple of 16."""

    places: tuple[int, ...]
    heeded: tuple[tuple[int, str], ...]
    kernels: dict[tuple[Any, ...], OperationKernel] = field(default_factory=dict)


_forms: Kept[_Form] = Kept(4096)


class Addresses:
    """The addresses of all pointers of a kernel. ``integers``: its own integer arguments, the names and values of which
    are given; after them it has sizes, and strides. ``wide``: whether integers have 64 bits."""

    def __init__(self, pointers: Iterable[str], walks: Sequence[Walk], integers: dict[str, int]) -> None:
        self._pointers = [*pointers]
        self._walks, self._own = walks, integers
        forms = [(walk.sizes, walk.steps) for walk in walks]
        self._values, self._strides, self.wide = torch_native().address_values([*integers.values()], forms, NARROW)

    def _names(self) -> list[str]:
        """The names of all values, empty for a stride that the text has."""
        names = [*self._own, *(f"{walk.index}_size{d}" for walk in self._walks for d in range(1, len(walk.sizes)))]
        for walk in self._walks:
            for name, steps in zip(self._pointers, walk.steps, strict=True):
                for d, stride in enumerate(steps):
                    is_next = stride == 1 and d == len(walk.sizes) - 1
                    names.append(f"{name}_{walk.index}{d}" if stride and not is_next else "")
        return names

    @property
    def integers(self) -> dict[str, int]:
        """The kernel's, by their names."""
        return {name: value for name, value in zip(self._names(), self._values, strict=True) if name}

    @property
    def program(self) -> str:
        """The line that numbers the programs of a grid (launching.grid_of)."""
        integer = "tl.int64" if self.wide else "tl.int32"
        return f"program = tl.program_id(1).to({integer}) * tl.num_programs(0) + tl.program_id(0)"

    def place(self, name: str, walks: Sequence[Walk] | None = None, start: str | None = None) -> str:
        """The text of an address: ``start``, the pointer if None, and each index of the walks times its stride."""
        terms = [f"{name}_p" if start is None else start]
        for walk in self._walks if walks is None else walks:
            steps = walk.steps[self._pointers.index(name)]
            for d, stride in enumerate(steps):
                if stride == 1 and d == len(steps) - 1:
                    terms.append(f"{walk.index}{d}")
                elif stride:
                    terms.append(f"{walk.index}{d} * {name}_{walk.index}{d}")
        return " + ".join(terms)

    def moves(self, name: str, walk: Walk) -> bool:
        """Whether a pointer's elements differ along a walk."""
        return any(walk.steps[self._pointers.index(name)])

    def load(self, name: str, place: str, cast: str = "") -> str:
        """The text of reading a pointer's elements at ``place``, with no wider mask than these differ along."""
        used = [walk.mask for walk in self._walks if self.moves(name, walk)]
        mask = "mask" if len(used) == len(self._walks) else used[0] if used else ""
        return f"tl.load({place}{', mask=' + mask if mask else ''}){cast}"

    def _form(self, columns: Sequence[str]) -> _Form:
        """``columns``: integers that are heeded, of those that are neither sizes nor strides. So are, of a pointer that
        steps by 1 through the last dimension of a walk, its other strides, and the size of that dimension: they say
        whether elements which lie next to one another are the next ones of a tile, too."""
        heeded = {*columns}
        for walk in self._walks:
            for name, steps in zip(self._pointers, walk.steps, strict=True):
                if walk.sizes and steps[-1] == 1:
                    heeded.add(f"{walk.index}_size{len(walk.sizes) - 1}")
                    heeded |= {f"{name}_{one.index}{d}" for one in self._walks for d in range(len(one.sizes))}
        names = self._names()
        return _Form(
            tuple(place for place, name in enumerate(names) if name),
            tuple((place, name) for place, name in enumerate(names) if name in heeded),
        )

    def plan(
        self,
        name: str,
        form: tuple[Any, ...],
        lines: Callable[[], Sequence[str]],
        operands: Operands,
        compute: torch.dtype,
        programs: int,
        *columns: str,
    ) -> PlannedLaunch:
        """A launch of so many programs of the kernel of these lines, which follow from ``form``, the types and the
        addresses' form. It is compiled for which ``columns`` and other integers that _form() names are multiples of 16,
        so that elements next to one another are read and written together."""
        what = name, form, columns, compute, operands.form(), self._strides
        found, values = _forms.get(what, lambda: self._form(columns)), self._values
        even = self.wide, *operands.even_steps(), *[values[place] % 16 == 0 for place, _ in found.heeded]
        kernel = found.kernels.get(even)
        if kernel is None:
            types = {f"{pointer}_p": "*" + NAMES[tensor.dtype] for pointer, tensor in operands.pointers.items()}
            types |= {number: number_type(compute) for number in operands.numbers}
            types |= dict.fromkeys(operands.counts, "i64")
            types |= dict.fromkeys(self.integers, "i64" if self.wide else "i32")
            text = f"def {name}({', '.join(types)}):\n" + "".join(f"    {line}\n" for line in lines())
            divisible = {one for place, one in found.heeded if values[place] % 16 == 0}.union(operands.even_steps())
            kernel = found.kernels[even] = kernel_for(kernel_of(name, text), types, {}, divisible=frozenset(divisible))
        return PlannedLaunch(kernel, grid_of(programs), tuple([values[place] for place in found.places]))


def conversion(tensor: torch.Tensor, compute: torch.dtype) -> str:
    """The text that makes what was read from a tensor of the type that is computed in."""
    return "" if tensor.dtype == compute else f".to({IN_SOURCE[NAMES[compute]]})"


@dataclass(slots=True)
class PlannedLaunch:
    """A kernel with its grid and integer arguments."""

    kernel: OperationKernel
    grid: tuple[int, int, int]
    integers: tuple[int, ...]

    def launch(self, operands: Operands, places: frozenset[str] = frozenset()) -> None:
        """Run it. ``places``: operands that the kernel reads past their own elements, within their memory."""
        device = operands.index
        if places and CHECK_BOUNDS.get():
            own = {name: to_the_end(t) if name in places else t for name, t in operands.tensors.items()}
            operands = replace(operands, tensors=own)
        self.kernel.launch(device, self.grid, [*operands.arguments(), *self.integers])
