"""The part of ``tl`` that generated kernels use, on torch tensors: a kernel runs as Python, one program a call.

Each operation rounds as Triton's does, bfloat16 and 8-bit floats included, which upstream's interpreter computes on
raw bits or not at all. What a device may do in another order, sums of floats, is exact for the generated values.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from triton.runtime.jit import JITFunction

Tensor = torch.Tensor

#: The program that runs, and the grid.
PROGRAM = [0, 0, 0]


@dataclass
class Pointer:
    """Elements of a flat tensor from ``offset`` on; a tensor of offsets is a tensor of pointers."""

    memory: Tensor
    offset: int | Tensor = 0

    @property
    def dtype(self) -> Any:
        return SimpleNamespace(element_ty=self.memory.dtype)

    def __add__(self, other: int | Tensor) -> Pointer:
        wide = other.long() if isinstance(other, torch.Tensor) else other
        return Pointer(self.memory, self.offset + wide)

    def __sub__(self, other: int) -> Pointer:
        return self + -other

    def __radd__(self, other: int | Tensor) -> Pointer:
        return self + other


def _places(pointer: Pointer, like: Any = None, mask: Any = None) -> tuple[Tensor, Tensor]:
    """Offsets and the mask, of one shape."""
    offsets = torch.as_tensor(pointer.offset)
    inside = torch.as_tensor(True if mask is None else mask)
    value = torch.as_tensor(0 if like is None else like)
    shape = torch.broadcast_shapes(offsets.shape, inside.shape, value.shape)
    return offsets.expand(shape), inside.expand(shape)


def _load(pointer: Pointer, mask: Any = None, other: Any = 0, **options: Any) -> Tensor:
    offsets, inside = _places(pointer, None, mask)
    if bool((inside & ((offsets < 0) | (offsets >= pointer.memory.numel()))).any()):
        raise IndexError("a load out of bounds")
    found = pointer.memory[torch.where(inside, offsets, 0)]
    return torch.where(inside, found, torch.as_tensor(other).to(found.dtype))


def _store(pointer: Pointer, value: Any, mask: Any = None, **options: Any) -> None:
    offsets, inside = _places(pointer, value, mask)
    if bool((inside & ((offsets < 0) | (offsets >= pointer.memory.numel()))).any()):
        raise IndexError("a store out of bounds")
    values = torch.as_tensor(value).to(pointer.memory.dtype).expand(offsets.shape)
    pointer.memory[offsets[inside]] = values[inside]


def _atomic_add(pointer: Pointer, value: Any, mask: Any = None, **options: Any) -> Tensor:
    offsets, inside = _places(pointer, value, mask)
    old = _load(pointer, mask)
    values = torch.as_tensor(value).to(pointer.memory.dtype).expand(offsets.shape)
    pointer.memory.index_add_(0, offsets[inside], values[inside])
    return old


def _sum(value: Tensor, axis: int | None = None, keep_dims: bool = False) -> Tensor:
    dtype = value.dtype
    if not dtype.is_floating_point:
        wide = value.long()
        kept = dtype if dtype.itemsize >= 4 else torch.int32
    else:
        wide, kept = value.double(), torch.float32 if dtype == torch.bfloat16 else dtype
    return (wide.sum() if axis is None else wide.sum(axis, keepdim=keep_dims)).to(kept)


def _extreme(value: Tensor, axis: int | None, keep_dims: bool, largest: bool) -> Tensor:
    if axis is None:
        return value.max() if largest else value.min()
    return value.amax(axis, keepdim=keep_dims) if largest else value.amin(axis, keepdim=keep_dims)


def _where_extreme(value: Tensor, axis: int, keep_dims: bool, largest: bool) -> Tensor:
    array = value.double().numpy()
    found = array.argmax(axis) if largest else array.argmin(axis)  # NumPy's are the first ones
    return torch.from_numpy(np.asarray(np.expand_dims(found, axis) if keep_dims else found)).to(torch.int32)


def _scan(value: Any, axis: int, combine: Callable[..., Any], reverse: bool = False) -> Any:
    """Of a tensor, or of several at once."""
    several = isinstance(value, tuple)
    parts = list(zip(*(one.unbind(axis) for one in (value if several else (value,))), strict=True))
    if reverse:
        parts.reverse()
    for place in range(1, len(parts)):
        found = combine(*parts[place - 1], *parts[place])
        parts[place] = found if several else (found,)
    if reverse:
        parts.reverse()
    whole = tuple(torch.stack(one, axis) for one in zip(*parts, strict=True))
    return whole if several else whole[0]


def _cumsum(value: Tensor, axis: int, reverse: bool = False) -> Tensor:
    wide = value.double() if value.dtype.is_floating_point else value.long()
    wide = wide.flip(axis).cumsum(axis).flip(axis) if reverse else wide.cumsum(axis)
    return wide.to(value.dtype)


def _dot(a: Tensor, b: Tensor, acc: Tensor | None = None, **options: Any) -> Tensor:
    kept = torch.float32 if a.dtype.is_floating_point else torch.int32
    product = (a.double() @ b.double()).to(kept)
    return product if acc is None else acc + product


def _pick(binary: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Any], Tensor]:
    def apply(a: Any, b: Any) -> Tensor:
        like = a if isinstance(a, torch.Tensor) else b
        return binary(
            *(part if isinstance(part, torch.Tensor) else torch.as_tensor(part).to(like.dtype) for part in (a, b))
        )

    return apply


def _where(condition: Tensor, a: Any, b: Any) -> Any:
    if isinstance(a, Pointer):
        assert a.memory is b.memory
        return Pointer(a.memory, torch.where(condition, torch.as_tensor(a.offset), torch.as_tensor(b.offset)))
    return torch.where(condition, a, b)


@dataclass
class _Descriptor:
    base: Pointer
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]

    def _at(self, offsets: Sequence[int]) -> tuple[Pointer, Tensor]:
        rows, columns = (
            int(offset) + torch.arange(extent) for offset, extent in zip(offsets, self.block_shape, strict=True)
        )
        inside = ((rows >= 0) & (rows < self.shape[0]))[:, None] & ((columns >= 0) & (columns < self.shape[1]))
        return self.base + (rows[:, None] * self.strides[0] + columns * self.strides[1]), inside

    def load(self, offsets: Sequence[int]) -> Tensor:
        pointer, inside = self._at(offsets)
        return _load(pointer, inside, 0)

    def store(self, offsets: Sequence[int], value: Tensor) -> None:
        pointer, inside = self._at(offsets)
        _store(pointer, value, inside)


def _jit(function: Any = None, **options: Any) -> Any:
    return function if function is not None else lambda inner: inner


def _range(*bounds: Any, **options: Any) -> range:
    return range(*(int(bound) for bound in bounds))


triton = SimpleNamespace(jit=_jit)

tl = SimpleNamespace(
    **{
        name: getattr(torch, name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32")
    },
    float64=torch.float64,
    float8e5=torch.float8_e5m2,
    float8e4nv=torch.float8_e4m3fn,
    constexpr=int,
    program_id=lambda axis: PROGRAM[axis],
    arange=lambda start, end: torch.arange(start, end, dtype=torch.int32),
    range=_range,
    static_range=_range,
    debug_barrier=lambda: None,
    static_assert=lambda condition: None,
    load=_load,
    store=_store,
    atomic_add=_atomic_add,
    sum=_sum,
    max=lambda value, axis=None, keep_dims=False: _extreme(value, axis, keep_dims, True),
    min=lambda value, axis=None, keep_dims=False: _extreme(value, axis, keep_dims, False),
    argmax=lambda value, axis, keep_dims=False: _where_extreme(value, axis, keep_dims, True),
    argmin=lambda value, axis, keep_dims=False: _where_extreme(value, axis, keep_dims, False),
    associative_scan=_scan,
    reduce=lambda value, axis, combine: tuple(one.select(axis, -1) for one in _scan(value, axis, combine)),
    cat=lambda a, b, dim: torch.cat((a, b), dim),
    topk=lambda value, k: value.sort(-1, descending=True).values[..., :k],
    cumsum=_cumsum,
    dot=_dot,
    minimum=_pick(torch.minimum),
    maximum=_pick(torch.maximum),
    where=_where,
    abs=torch.abs,
    flip=lambda value, axis: value.flip(axis),
    sort=lambda value, axis, descending=False: value.sort(axis, descending=descending).values,
    gather=lambda value, places, axis: value.gather(axis, places.long()),
    histogram=lambda value, bins, mask=None: torch.bincount(
        value.flatten()[... if mask is None else mask.flatten()].long(), minlength=bins
    ).to(torch.int32),
    trans=lambda value: value.mT,
    permute=lambda value, order: value.permute(order),
    reshape=lambda value, shape: value.reshape(shape),
    broadcast_to=lambda value, shape: value.expand(shape),
    join=lambda a, b: torch.stack((a, b), -1),
    interleave=lambda a, b: torch.stack((a, b), -1).flatten(-2),
    split=lambda value: value.unbind(-1),
    assume=lambda condition: None,
    multiple_of=lambda value, by: value,
    zeros=lambda shape, dtype: torch.zeros(shape, dtype=dtype),
    full=lambda shape, value, dtype: torch.full(shape, value, dtype=dtype),
    make_tensor_descriptor=lambda base, shape, strides, block_shape: _Descriptor(base, shape, strides, block_shape),
)


class _Rebound(ast.NodeTransformer):
    """``a += b`` as ``a = a + b``: a tensor of torch would change for all its names."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.Assign:
        assert isinstance(node.target, ast.Name)
        return ast.Assign([node.target], ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))


def _as_python(kernel: Any) -> Any:
    """A JITFunction, and those that it calls, as functions of Python."""
    tree = _Rebound().visit(ast.parse(textwrap.dedent(inspect.getsource(kernel.fn))))
    tree.body[0].decorator_list = []
    names = {**kernel.fn.__globals__, "tl": tl}
    called = [name for name in kernel.fn.__code__.co_names if isinstance(names.get(name), JITFunction)]
    names |= {name: _as_python(names[name]) for name in called}
    exec(compile(ast.fix_missing_locations(tree), inspect.getsourcefile(kernel.fn) or "", "exec"), names)
    return names[kernel.fn.__name__]


def run_as_python(kernel: Any, grid: Sequence[int], *arguments: Any, **constants: Any) -> None:
    """A launch of a JITFunction: its programs run as Python, one after the other."""
    function = _as_python(kernel)
    given = [Pointer(one.view(-1)) if isinstance(one, torch.Tensor) else one for one in arguments]
    for program in np.ndindex(*grid):
        PROGRAM[:] = (*program, 0, 0)[:3]
        function(*given, **constants)
