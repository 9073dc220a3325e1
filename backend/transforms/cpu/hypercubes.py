"""Long tensors of many dimensions of two elements, with dimensions joined, so that strips can be cut (strips.py).

``tl.sort`` exchanges elements along each dimension of a tensor of 2 × 2 × … × 2, and no dimension of that can be cut in
more than two. Where lanes are elements of vectors, in the order of rows, joining neighbouring dimensions moves nothing.
A run of reductions along the last dimensions gets a tensor whose other dimensions are one:

    tt.reduce (2 × 2 × … × 2), axis 9     →    tt.reshape; tt.reduce (32 × 2 × … × 2), axis 5

and a reduction along another dimension one of three: those before it, it, and those behind it. Indices are computed
from the places along the joined dimensions. A ``tt.reshape`` is between runs; arrays are read through it
(strip_loops.py).

A tensor that lies in another order, as one that is loaded along its columns does, is transposed first, so that it lies
in the order of rows. That moves nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...layouts.distributed import LANE, REGISTER, LayoutError, layout_of
from ...ttgir.attribute_values import DenseArray
from ...ttgir.encodings import BlockedEncoding, Encoding, SliceEncoding
from ...ttgir.ir import Block, DenseAttr, Function, Operation, Value
from ...ttgir.operations import definition_of
from ...ttgir.types import TensorType, Type
from ..rewriting import Rewriter, erase_unused
from .neighbouring_lanes import row_major

#: Registers of a tensor from which on its dimensions are joined. Code for fewer is made in less than 3 s without.
_LONG = 64

#: The same for a tensor that lies in another order. A sort along its columns exchanges nothing between lanes, and runs
#: faster without arrays: 64 × 128 numbers in 60 % of the time.
_LONG_TURNED = 512

#: Operations on indices whose results differ from their operands by shape and layout alone.
_LAYS_OUT = ("tt.broadcast", "ttg.convert_layout")

#: Dimensions that stay apart in a run, at the end: 16 registers of 16 lanes.
_APART = 8


def join_dimensions(function: Function) -> bool:
    """Rewrites the blocks of ``function`` in place. Whether any had such tensors."""
    blocks = dict.fromkeys(operation.block for operation in function.walk() if operation.name == "tt.reduce")
    return any([_join(block, type_) for block in blocks if block is not None for type_ in _cubes(block)])


def _join(block: Block, type_: TensorType) -> bool:
    order = tuple(reversed(_order(type_)))
    turned = _Cube(block, type_).chosen() if order != tuple(range(type_.rank)) else []
    if turned:
        type_ = _Turn(block, type_, order).turn(turned)
    return _Cube(block, type_).join() or bool(turned)


def _order(type_: TensorType) -> tuple[int, ...]:
    """The dimensions, the fastest first."""
    encoding = type_.encoding
    return encoding.order if isinstance(encoding, BlockedEncoding) else tuple(reversed(range(type_.rank)))


def _cubes(block: Block) -> list[TensorType]:
    """The types that are reduced in a block, one for each shape."""
    found: dict[tuple[int, ...], TensorType] = {}
    for operation in block.operations:
        if operation.name == "tt.reduce" and isinstance(type_ := operation.operand_group("srcs")[0].type, TensorType):
            if set(type_.shape) == {2} and type_.rank > _APART and _in_order(type_):
                found.setdefault(type_.shape, type_)
    return list(found.values())


def _in_order(type_: TensorType) -> bool:
    """Whether element e of a long tensor, counted in the order of its encoding, is in lane e mod W of register e div
    W."""
    try:
        inputs = layout_of(type_).inputs
    except LayoutError:
        return False
    places = [1 << type_.rank - 1 - dim for dim in _order(type_)]
    least = _LONG if places == sorted(places) else _LONG_TURNED
    return 1 << len(inputs[REGISTER]) >= least and [*inputs[LANE], *inputs[REGISTER]] == places


class _Turn:
    """The transposition of a block's tensors of one type: dimension ``order[d]`` becomes dimension d, which leaves each
    element where it is."""

    def __init__(self, block: Block, type_: TensorType, order: tuple[int, ...]) -> None:
        self._block, self._order = block, order
        self._cube = _Cube(block, type_)
        lanes = 1 << len(layout_of(type_).inputs[LANE])
        self._encoding = row_major(type_.shape, tuple(range(type_.rank))[::-1], lanes)
        self._type = TensorType(type_.shape, type_.element, self._encoding)
        self._known: dict[Value, Value] = {}

    def turn(self, chosen: list[Operation]) -> TensorType:
        """Puts operations on transposed tensors in place of those that are ``chosen``. Their type."""
        before = list(self._block.operations)
        for operation in chosen:
            place, attributes = Rewriter.before(operation), dict(operation.attributes)
            operands = [self._turned(operand, place) for operand in operation.operands]
            type_ = self._type_of(operation.result.tensor)
            if operation.name in ("tt.reduce", "tt.expand_dims"):
                axis = self._order.index(operation.attribute("axis"))
                attributes |= {"axis": axis}
                if operation.name == "tt.reduce":
                    type_ = replace(type_, encoding=SliceEncoding(axis, self._encoding))
            made = place.copy(operation, operands=operands, types=[type_], attributes=attributes)
            self._known[operation.result] = made.result
        inside = set(chosen)
        back = tuple(map(self._order.index, range(len(self._order))))
        for operation in chosen:
            value = operation.result
            if any(use not in inside for use in value.uses):
                made = Rewriter.after(operation).make(
                    "tt.trans", [self._known[value]], [value.type], {"order": DenseArray(back)}
                )
                value.replace_uses(made.result, by=lambda user: user not in inside)
        erase_unused([one for one in before if len(one.results) == 1 and one.result in self._known])
        return self._type

    def _type_of(self, type_: TensorType) -> TensorType:
        shape = type_.shape
        if len(shape) == len(self._order):
            shape = tuple(shape[dim] for dim in self._order)
        return TensorType(shape, type_.element, self._encoding)

    def _turned(self, value: Value, place: Rewriter) -> Value:
        if not isinstance(value.type, TensorType):
            return value
        if value not in self._known:
            self._known[value] = self._made(value, place)
        return self._known[value]

    def _made(self, value: Value, place: Rewriter) -> Value:
        owner, type_ = value.owner, self._type_of(value.tensor)
        if not self._cube.is_index(value) or not isinstance(owner, Operation):
            return place.make("tt.trans", [value], [type_], {"order": DenseArray(self._order)}).result
        if owner.name == "arith.constant":
            dense = DenseAttr(type_, owner.attribute("value").values, True)
            return place.copy(owner, types=[type_], attributes={"value": dense}).result
        if owner.name in ("tt.reshape", "tt.splat"):
            return place.copy(owner, types=[type_]).result
        operands = [self._turned(operand, place) for operand in owner.operands]
        return place.copy(owner, operands=operands, types=[type_]).result


@dataclass(frozen=True)
class _Form:
    """Which dimensions are joined. ``first``: the first dimension of each joined one; ``shape``; ``encoding``."""

    first: tuple[int, ...]
    rank: int
    lanes: int

    @property
    def shape(self) -> tuple[int, ...]:
        ends = (*self.first[1:], self.rank)
        return tuple(1 << end - first for first, end in zip(self.first, ends, strict=True))

    @property
    def encoding(self) -> BlockedEncoding:
        return row_major(self.shape, tuple(range(len(self.first)))[::-1], self.lanes)

    def joined(self, dim: int) -> int:
        """The number of the dimension that ``dim`` has become a part of."""
        return max(place for place, first in enumerate(self.first) if first <= dim)

    def type(self, type_: TensorType) -> TensorType:
        """The type of a tensor: whole along each dimension of a part of which it has both elements."""
        present = {self.joined(dim) for dim, extent in enumerate(type_.shape) if extent > 1}
        shape = tuple(extent if place in present else 1 for place, extent in enumerate(self.shape))
        return TensorType(shape, type_.element, self.encoding)


class _Cube:
    """The rewriting of one block for tensors of one shape."""

    def __init__(self, block: Block, type_: TensorType) -> None:
        self._block, self._shape, self._encoding = block, type_.shape, type_.encoding
        self._rank, self._lanes = type_.rank, 1 << len(layout_of(type_).inputs[LANE])
        self._index: dict[Value, bool] = {}
        #: What stands for a value in a form, and the form in which a value is computed.
        self._known: dict[tuple[Value, _Form], Value] = {}
        self._native: dict[Value, _Form] = {}

    def join(self) -> bool:
        """Whether all of the block's operations on such tensors could be rewritten; else the block is as before."""
        chosen = self.chosen()
        if not any(operation.name == "tt.reduce" for operation in chosen):
            return False
        form = self._form(self._rank - 1)
        for operation in chosen:
            if operation.name == "tt.reduce":
                form = self._form(operation.attribute("axis"))
            self._rewrite(operation, form)
        inside = set(chosen)
        for operation in reversed(chosen):
            value = operation.result
            if all(use in inside for use in value.uses):
                continue
            if operation.name == "tt.bitcast":  # stays, of what its operand is then
                inside.remove(operation)
                continue
            made = self._known[value, self._native[value]]
            whole = Rewriter.after(operation).make("tt.reshape", [made], [value.type]).result
            value.replace_uses(whole, by=lambda user: user not in inside)
        indices = [one for one in self._block.operations if len(one.results) == 1 and self._index.get(one.result)]
        erase_unused([*indices, *chosen])
        return True

    def _form(self, axis: int) -> _Form:
        before = self._rank - _APART
        apart = (0, *range(before, self._rank)) if axis >= before else (0, axis, axis + 1)
        return _Form(tuple(dict.fromkeys(apart)), self._rank, self._lanes)

    # -- what is rewritten -----------------------------------------------------------------------------------------
    def _is_whole(self, value: Value) -> bool:
        return isinstance(value.type, TensorType) and value.type.shape == self._shape

    def is_index(self, value: Value) -> bool:
        """Whether a tensor is computed from places alone."""
        if value not in self._index:
            self._index[value] = self._computes_index(value)
        return self._index[value]

    def _computes_index(self, value: Value) -> bool:
        owner, type_ = value.owner, value.type
        if not isinstance(type_, TensorType):
            return True
        if not isinstance(owner, Operation) or type_.rank != self._rank:
            return False
        if owner.name == "arith.constant":
            return isinstance(owner.attribute("value"), DenseAttr) and owner.attribute("value").splat
        if owner.name == "tt.reshape":
            return self._place(owner) is not None
        if owner.name == "tt.splat":
            return True
        plain = owner.name in _LAYS_OUT or (definition_of(owner).elementwise and not owner.regions)
        return plain and len(owner.results) == 1 and all(map(self.is_index, owner.operands))

    @staticmethod
    def _place(reshape: Operation) -> int | None:
        """The dimension along which a tensor holds the numbers 0 and 1."""
        made, type_ = reshape["src"].owner, reshape.result.tensor
        if not isinstance(made, Operation) or made.name != "tt.make_range" or made.attribute("start") != 0:
            return None
        return type_.shape.index(2) if type_.size == 2 else None

    def chosen(self) -> list[Operation]:
        """The operations that compute such tensors from others. A reduction that leaves half of the elements, as the
        selection of top-k does, gets the tensor as it was."""
        chosen: list[Operation] = []
        exchanges: set[Value] = set()
        for operation in self._block.operations:
            if operation.name == "tt.reduce" and self._is_whole(operation.operand_group("srcs")[0]):
                if self._exchanges(operation):
                    chosen.append(operation)
                    exchanges.add(operation.result)
            elif operation.name in ("tt.expand_dims", "tt.broadcast") and operation["src"] in exchanges:
                chosen.append(operation)
                exchanges.add(operation.result)
            elif (
                len(operation.results) == 1
                and self._is_whole(operation.result)
                and operation.result.tensor.encoding == self._encoding
                and not self.is_index(operation.result)
                and definition_of(operation).elementwise
                and not operation.regions
                and all(
                    self._is_whole(operand) or not isinstance(operand.type, TensorType)
                    for operand in operation.operands
                )
            ):
                chosen.append(operation)
        return chosen

    def _exchanges(self, reduction: Operation) -> bool:
        """Whether what is left along a dimension goes to both elements again."""
        if len(reduction.results) != 1 or reduction["srcs"].tensor.encoding != self._encoding:
            return False
        axis = reduction.attribute("axis")
        return all(
            use.name == "tt.expand_dims"
            and use.attribute("axis") == axis
            and use.block is self._block
            and use.result.tensor.encoding == self._encoding
            and all(
                one.name == "tt.broadcast" and one.block is self._block and self._is_whole(one.result)
                for one in use.result.uses
            )
            for use in reduction.result.uses
        )

    # -- what it becomes -------------------------------------------------------------------------------------------
    def _rewrite(self, operation: Operation, form: _Form) -> None:
        rewriter, value = Rewriter.before(operation), operation.result
        if operation.name == "tt.bitcast":  # without any code: made where it is used
            self._native[value] = form
            return
        operands = [self._in_form(operand, form, rewriter) for operand in operation.operands]
        attributes, type_ = dict(operation.attributes), value.tensor
        if operation.name == "tt.reduce":
            axis = form.joined(operation.attribute("axis"))
            shape = (*form.shape[:axis], *form.shape[axis + 1 :])
            made = TensorType(shape, type_.element, SliceEncoding(axis, form.encoding))
            attributes |= {"axis": axis}
        elif operation.name == "tt.expand_dims":
            axis = form.joined(operation.attribute("axis"))
            shape = tuple(1 if place == axis else extent for place, extent in enumerate(form.shape))
            made = TensorType(shape, type_.element, form.encoding)
            attributes |= {"axis": axis}
        else:
            made = form.type(type_)
        self._native[value] = form
        self._known[value, form] = rewriter.copy(
            operation, operands=operands, types=[made], attributes=attributes
        ).result

    def _in_form(self, value: Value, form: _Form, rewriter: Rewriter) -> Value:
        """What stands for a value in a form."""
        if not isinstance(value.type, TensorType):
            return value
        found = self._known.get((value, form))
        if found is None:
            found = self._known[value, form] = self._made(value, form, rewriter)
        return found

    def _made(self, value: Value, form: _Form, rewriter: Rewriter) -> Value:
        owner, type_ = value.owner, form.type(value.tensor)
        if isinstance(owner, Operation) and (
            self.is_index(value) or (owner.name == "tt.bitcast" and value in self._native)
        ):
            if owner.name == "arith.constant":
                dense = DenseAttr(type_, owner.attribute("value").values, True)
                return rewriter.copy(owner, types=[type_], attributes={"value": dense}).result
            if owner.name == "tt.reshape":
                dim = self._place(owner)
                assert dim is not None
                return self._places(dim, form, owner["src"].tensor.element, rewriter)
            operands = [self._spread(self._in_form(one, form, rewriter), type_, rewriter) for one in owner.operands]
            if owner.name in _LAYS_OUT:
                return operands[0]
            return rewriter.copy(owner, operands=operands, types=[type_]).result
        native = self._native.get(value)
        source = value if native is None else self._known[value, native]
        if native is None and isinstance(owner, Operation) and owner.name == "tt.reshape" and not owner.attributes:
            source = owner["src"]
        return rewriter.make("tt.reshape", [source], [type_]).result

    @staticmethod
    def _spread(value: Value, type_: TensorType, rewriter: Rewriter) -> Value:
        if not isinstance(value.type, TensorType) or value.type.shape == type_.shape:
            return value
        return rewriter.make(
            "tt.broadcast", [value], [TensorType(type_.shape, value.type.element, type_.encoding)]
        ).result

    def _places(self, dim: int, form: _Form, element: Type, rewriter: Rewriter) -> Value:
        """The places along a dimension, 0 and 1, along the one that it has become a part of."""
        place = form.joined(dim)
        extent = form.shape[place]
        last = (*form.first[1:], self._rank)[place] - 1
        encodings = [*_sliced(form.encoding, len(form.shape), place)]
        shape: tuple[int, ...] = (extent,)
        type_ = TensorType(shape, element, encodings[-1])
        value = rewriter.make("tt.make_range", types=[type_], attributes={"start": 0, "end": extent}).result
        if extent > 2:
            for name, number in (("arith.shrui", last - dim), ("arith.andi", 1)):
                dense = DenseAttr(type_, (number,), True)
                constant = rewriter.make("arith.constant", types=[type_], attributes={"value": dense}).result
                value = rewriter.make(name, [value, constant], [type_]).result
        for axis, encoding in zip(
            (axis for axis in range(len(form.shape)) if axis != place), encodings[-2::-1], strict=True
        ):
            shape = (*shape[:axis], 1, *shape[axis:])
            type_ = TensorType(shape, element, encoding)
            value = rewriter.make("tt.expand_dims", [value], [type_], {"axis": axis}).result
        return value


def _sliced(encoding: Encoding, rank: int, place: int) -> Iterator[Encoding]:
    """The encoding, and those with one dimension less each, but for ``place``, from the last dimension on."""
    yield encoding
    for dim in range(rank - 1, -1, -1):
        if dim != place:
            encoding = SliceEncoding(dim, encoding)
            yield encoding
