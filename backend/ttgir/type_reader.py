"""Types read from tokens.

Every bracketed type is one token, so each distinct spelling is taken apart once per module and found by its text
afterwards. Types are unique per reader: two equal types are the same object.
"""

from __future__ import annotations

import re
from typing import Any

from ..abi.elements import FLOATS
from .encodings import Encoding
from .lexer import END, Tokens
from .types import (
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemDescType,
    OpaqueType,
    PointerType,
    TensorDescType,
    TensorType,
    TokenType,
    Type,
    element_type,
)

#: Types that are one word, by it. Each is the only object of its value.
PLAIN_TYPES: dict[str, Type] = {
    **{f"i{width}": IntegerType(width) for width in (1, 4, 8, 16, 32, 64)},
    **{name: FloatType(name) for name in FLOATS},
    "index": IndexType(),
    "none": OpaqueType("none"),
    "!ttg.async.token": TokenType(),
}
_UNIQUE_PLAIN = {type_: type_ for type_ in PLAIN_TYPES.values()}
#: An integer type; the group is its width.
INTEGER = re.compile(r"[su]?i([1-9]\d{0,3})")
_SHAPE = re.compile(r"(?:\d{1,18}x)*")
_FULL_SHAPE = re.compile(r"\d{1,18}(?:x\d{1,18})*")

#: Address spaces of ``!tt.ptr`` by keyword.
ADDRESS_SPACES = {"global": 1, "descriptor": 0, "constant": 4}

#: Memory spaces of ``!ttg.memdesc`` by attribute.
MEMORY_SPACES = {"ttg.shared_memory": "shared", "ttng.tensor_memory": "tensor"}


class TypeReader:
    """Reads types. ``aliases`` maps ``#name`` and ``!name`` to what was defined for them."""

    __slots__ = ("_attributes", "_i1", "_pointers", "_types", "_unique", "aliases")

    def __init__(self) -> None:
        self.aliases: dict[str, Any] = {}
        self._types: dict[str, Type] = dict(PLAIN_TYPES)
        self._attributes: dict[str, Any] = {}
        self._unique: dict[Type, Type] = dict(_UNIQUE_PLAIN)
        self._i1: dict[int, Type] = {}
        self._pointers: dict[int, Type] = {}

    def unique(self, type_: Type) -> Type:
        """The one object that stands for every type equal to ``type_``."""
        return self._unique.setdefault(type_, type_)

    def type(self, tokens: Tokens) -> Type:
        """The type that comes next."""
        found = self._types.get(tokens.items[tokens.i])
        if found is not None:
            tokens.i += 1
            return found
        return self._new_type(tokens)

    def _new_type(self, tokens: Tokens) -> Type:
        item = tokens.items[tokens.i]
        if item == "(":
            return self.function_type(tokens)
        head, bracket, body = item.partition("<")
        width = INTEGER.fullmatch(item)
        if width is not None:
            made: Type = IntegerType(int(width[1])) if item[0] == "i" else OpaqueType(item)
        elif item in self.aliases and isinstance(self.aliases[item], Type):
            made = self.aliases[item]
        elif bracket and head == "tensor":
            shape, rest = self._dimensions(body)
            made = self._tensor(Tokens(rest, parent=tokens), shape)
        elif bracket and head == "!ttg.memdesc":
            shape, rest = self._dimensions(body)
            made = self._memdesc(Tokens(rest, parent=tokens), shape)
        elif bracket and head == "!tt.ptr":
            made = self._pointer(Tokens(body[:-1], parent=tokens))
        elif bracket and head.startswith("!tt.tensordesc"):
            made = TensorDescType(item)
        elif bracket and (head in ("vector", "memref", "tuple", "complex") or head[:1] == "!"):
            made = OpaqueType(item)
        elif item[0] == "!" and "." in item:
            made = OpaqueType(item)
        else:
            tokens.fail("expected a type")
        tokens.i += 1
        made = self.unique(made)
        self._types[item] = made
        return made

    def stripped_type(self, tokens: Tokens, head: str) -> Type:
        """A type printed without its name: ``<f32>`` for ``!tt.ptr<f32>``, where ``head`` is ``!tt.ptr``."""
        if tokens.items[tokens.i] != "<":
            return self.type(tokens)
        items, start = tokens.items, tokens.i
        while items[tokens.i] != ">":
            if items[tokens.i] in (END, "{", "}", "->", "%"):
                tokens.fail("expected '>'")
            tokens.i += 1
        spelled = head + "".join(items[start : tokens.i + 1]).replace(",", ", ")
        made = self.type(Tokens(spelled, parent=tokens))
        tokens.i += 1
        return made

    @staticmethod
    def _dimensions(body: str) -> tuple[tuple[int, ...], str]:
        """The leading ``32x16x`` of a type's body as a shape, and what is left of the body."""
        match = _SHAPE.match(body)
        assert match is not None
        return tuple(int(extent) for extent in match[0].split("x")[:-1]), body[match.end() : -1]

    def _tensor(self, body: Tokens, shape: tuple[int, ...]) -> TensorType:
        element = self.type(body)
        encoding = None
        if body.accept(","):
            encoding = self._encoding(body)
        body.finished("the tensor type")
        return TensorType(shape, element, encoding)

    def _encoding(self, body: Tokens) -> Encoding:
        encoding = self.attribute(body)
        if not isinstance(encoding, Encoding):
            body.fail("expected an encoding", body.i - 1)
        return encoding

    def _memdesc(self, body: Tokens, shape: tuple[int, ...]) -> MemDescType:
        element = self.type(body)
        body.expect(",")
        encoding = self._encoding(body)
        body.expect(",")
        space = self.attribute(body)
        if not isinstance(space, str):
            body.fail("expected a memory space", body.i - 1)
        mutable = False
        allocated: tuple[int, ...] = ()
        while body.accept(","):
            if body.accept("mutable"):
                mutable = True
                continue
            rest = "".join(body.items[body.i : -1])
            if not _FULL_SHAPE.fullmatch(rest):
                body.fail("expected 'mutable' or a shape")
            allocated = tuple(int(extent) for extent in rest.split("x"))
            body.i = len(body.items) - 1
        body.finished("the memory descriptor type")
        return MemDescType(shape, element, encoding, space, mutable, allocated)

    def _pointer(self, body: Tokens) -> PointerType:
        pointee, space = self.type(body), 1
        if body.accept(","):
            item = body.items[body.i]
            if item[0] == '"':
                keyword = body.string()
                if keyword not in ADDRESS_SPACES:
                    body.fail(f"expected an address space ({', '.join(ADDRESS_SPACES)})", body.i - 1)
                space = ADDRESS_SPACES[keyword]
            else:
                space = body.integer()
        body.finished("the pointer type")
        return PointerType(pointee, space)

    def types(self, tokens: Tokens) -> list[Type]:
        """One or more types with commas between."""
        found = [self.type(tokens)]
        while tokens.items[tokens.i] == ",":
            tokens.i += 1
            found.append(self.type(tokens))
        return found

    def types_in_parentheses(self, tokens: Tokens) -> list[Type]:
        """``()`` or ``(type, …)``."""
        tokens.expect("(")
        if tokens.accept(")"):
            return []
        found = self.types(tokens)
        tokens.expect(")")
        return found

    def result_types(self, tokens: Tokens) -> list[Type]:
        """What stands after ``->``: one type, or a list in parentheses."""
        return self.types_in_parentheses(tokens) if tokens.items[tokens.i] == "(" else [self.type(tokens)]

    def function_type(self, tokens: Tokens) -> FunctionType:
        """``(inputs) -> results``."""
        inputs = self.types_in_parentheses(tokens)
        tokens.expect("->")
        return FunctionType(tuple(inputs), tuple(self.result_types(tokens)))

    # Types made from types

    def with_element(self, type_: Type, element: Type) -> Type:
        """``type_`` with another element type; for a scalar, ``element``."""
        if isinstance(type_, TensorType):
            return self.unique(TensorType(type_.shape, element, type_.encoding))
        return element

    def i1_like(self, type_: Type) -> Type:
        """``i1``, or the tensor of ``i1`` with the shape and encoding of ``type_``."""
        found = self._i1.get(id(type_))
        if found is None:
            found = self._i1[id(type_)] = self.with_element(type_, PLAIN_TYPES["i1"])
        return found

    def pointee_like(self, type_: Type) -> Type | None:
        """What a load through ``type_`` gives; None if it is neither a pointer nor a tensor of pointers."""
        found = self._pointers.get(id(type_))
        if found is None:
            pointer = element_type(type_)
            if not isinstance(pointer, PointerType):
                return None
            found = self._pointers[id(type_)] = self.with_element(type_, pointer.pointee)
        return found

    # What is in types

    def attribute(self, tokens: Tokens) -> Any:
        """The attribute that comes next, as a plain value (see ir.py)."""
        raise NotImplementedError
