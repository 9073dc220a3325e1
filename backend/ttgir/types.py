"""Types of TTGIR values, as frozen data that prints itself the way MLIR does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..abi.elements import FLOATS
from .encodings import DotOperandEncoding, Encoding


@dataclass(frozen=True)
class Type:
    """Base of every type."""


@dataclass(frozen=True)
class IntegerType(Type):
    """``i1`` … ``i64``: signless, as in MLIR."""

    width: int

    def __str__(self) -> str:
        return f"i{self.width}"


@dataclass(frozen=True)
class IndexType(Type):
    """``index``."""

    def __str__(self) -> str:
        return "index"


@dataclass(frozen=True)
class FloatType(Type):
    """A float type by its MLIR name, a key of FLOATS."""

    name: str

    @property
    def width(self) -> int:
        """Bits."""
        return FLOATS[self.name].bits

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PointerType(Type):
    """``!tt.ptr<pointee>``; address space 1 (global) unless printed otherwise."""

    pointee: Type
    address_space: int = 1

    def __str__(self) -> str:
        space = "" if self.address_space == 1 else f", {self.address_space}"
        return f"!tt.ptr<{self.pointee}{space}>"


@dataclass(frozen=True)
class TensorType(Type):
    """``tensor<shape x element, encoding>``; the encoding is None in TTIR."""

    shape: tuple[int, ...]
    element: Type
    encoding: Encoding | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{self.element}>"


def strip_type(type_: TensorType, dim: int, strips: int) -> TensorType:
    """The type of one of ``strips`` equal parts along ``dim``."""
    shape = tuple(extent // strips if axis == dim else extent for axis, extent in enumerate(type_.shape))
    return TensorType(shape, type_.element, type_.encoding)


def operand_of(type_: Type) -> Encoding | None:
    """The encoding of the dots that a tensor of this type is an operand of; None of other types."""
    encoding = encoding_of(type_)
    return encoding.parent if isinstance(encoding, DotOperandEncoding) else None


def encoding_of(type_: Type) -> Encoding | None:
    """A tensor's encoding; None for what is none."""
    return type_.encoding if isinstance(type_, TensorType) else None


@dataclass(frozen=True)
class MemDescType(Type):
    """``!ttg.memdesc``: a buffer in shared memory. ``alloc_shape`` is the whole allocation's shape where it differs."""

    shape: tuple[int, ...]
    element: Type
    encoding: Encoding
    memory_space: str = "shared"
    mutable: bool = False
    alloc_shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"!ttg.memdesc<{'x'.join(map(str, self.shape))}x{self.element}>"


@dataclass(frozen=True)
class TensorDescType(Type):
    """``!tt.tensordesc``: a host- or device-made tensor descriptor, as printed."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TokenType(Type):
    """``!ttg.async.token``."""

    def __str__(self) -> str:
        return "!ttg.async.token"


@dataclass(frozen=True)
class FunctionType(Type):
    """``(inputs) -> results``."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(frozen=True)
class OpaqueType(Type):
    """A type the reader can name but not take apart."""

    text: str

    def __str__(self) -> str:
        return self.text


def element_type(type_: Type) -> Type:
    """The element type of a tensor, or the type itself."""
    return type_.element if isinstance(type_, TensorType) else type_
