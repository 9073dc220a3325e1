"""Attributes, types and encodings read from tokens.

Every bracketed type, encoding and dialect attribute is one token, so each distinct spelling is taken apart once per
module and found by its text afterwards. Types are unique per reader: two equal types are the same object.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple

from .attribute_values import DenseArray, TypedInt, typed, written
from .encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    Encoding,
    LinearEncoding,
    NvidiaMmaEncoding,
    OpaqueEncoding,
    PaddedSharedEncoding,
    SharedLinearEncoding,
    SliceEncoding,
    SwizzledSharedEncoding,
)
from .ir import DenseAttr, FloatBits
from .lexer import END, Tokens, unescape
from .types import (
    FLOAT_BITS,
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
)

#: Types that are one word, by it. Each is the only object of its value.
PLAIN_TYPES: dict[str, Type] = {
    **{f"i{width}": IntegerType(width) for width in (1, 4, 8, 16, 32, 64)},
    **{name: FloatType(name) for name in FLOAT_BITS},
    "index": IndexType(),
    "none": OpaqueType("none"),
    "!ttg.async.token": TokenType(),
}
_I32, _F32 = PLAIN_TYPES["i32"], PLAIN_TYPES["f32"]
_UNIQUE_PLAIN = {type_: type_ for type_ in PLAIN_TYPES.values()}
_INTEGER = re.compile(r"[su]?i([1-9]\d{0,3})")
_SHAPE = re.compile(r"(?:\d{1,18}x)*")
_FULL_SHAPE = re.compile(r"\d{1,18}(?:x\d{1,18})*")

#: Address spaces of ``!tt.ptr`` by keyword.
ADDRESS_SPACES = {"global": 1, "descriptor": 0, "constant": 4}

#: Memory spaces of ``!ttg.memdesc`` by attribute.
MEMORY_SPACES = {"ttg.shared_memory": "shared", "ttng.tensor_memory": "tensor"}


class _Fields(NamedTuple):
    """How an encoding's ``{key = value, …}`` becomes a dataclass: keys in the order of its fields."""

    build: type[Encoding]
    keys: tuple[str, ...]
    optional: tuple[str, ...] = ()


ENCODINGS = {
    "ttg.blocked": _Fields(BlockedEncoding, ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")),
    "ttg.slice": _Fields(SliceEncoding, ("dim", "parent")),
    "ttg.dot_op": _Fields(DotOperandEncoding, ("opIdx", "parent"), ("kWidth",)),
    "ttg.nvidia_mma": _Fields(NvidiaMmaEncoding, ("versionMajor", "versionMinor", "warpsPerCTA", "instrShape")),
    "ttg.linear": _Fields(LinearEncoding, ("register", "lane", "warp", "block")),
    "ttg.swizzled_shared": _Fields(SwizzledSharedEncoding, ("vec", "perPhase", "maxPhase", "order")),
}

#: Encodings that are named but not taken apart.
_OPAQUE_ENCODINGS = frozenset(
    {
        "ttg.generic_linear",
        "ttg.amd_mfma",
        "ttg.amd_wmma",
        "ttg.nvmma_shared",
        "ttg.amd_rotating_shared",
        "ttg.partitioned_shared",
        "ttng.tensor_memory_encoding",
        "ttng.tensor_memory_scales_encoding",
    }
)

#: Attributes whose body is ``<keyword>`` or ``<keyword, …>``: a tuple of keywords.
_FLAGS = frozenset({"arith.fastmath", "arith.overflow"})


class AttributeReader:
    """Reads types and attributes. ``aliases`` maps ``#name`` and ``!name`` to what was defined for them."""

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

    # Types

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
        width = _INTEGER.fullmatch(item)
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
        """What a load through ``type_`` gives; None where it is neither a pointer nor a tensor of pointers."""
        found = self._pointers.get(id(type_))
        if found is None:
            pointer = element_of(type_)
            if not isinstance(pointer, PointerType):
                return None
            found = self._pointers[id(type_)] = self.with_element(type_, pointer.pointee)
        return found

    # Attributes

    def attribute(self, tokens: Tokens) -> Any:
        """The attribute that comes next, as a plain value (see ir.py)."""
        return self.typed_attribute(tokens)[0]

    def _value(self, tokens: Tokens) -> Any:
        """The same where its type has to be known to write it again."""
        value, type_ = self.typed_attribute(tokens)
        if type(value) is int:
            return value if type_ is _I32 else typed(value, type_ or PLAIN_TYPES["i64"])
        if type(value) is float:
            return value if type_ is _F32 else typed(value, type_ or PLAIN_TYPES["f64"])
        return value

    def typed_attribute(self, tokens: Tokens) -> tuple[Any, Type | None]:
        """The attribute that comes next and its type, where it has one: numbers, ``true``/``false`` and ``dense``."""
        item = tokens.items[tokens.i]
        first = item[0]
        if first.isdigit() or (first == "-" and len(item) > 1 and item != "->"):
            return self._number(tokens, item)
        if first == '"':
            text = tokens.string()
            if tokens.accept(":"):
                return text, self.type(tokens)
            return text, None
        if item == "true" or item == "false":
            tokens.i += 1
            return item == "true", PLAIN_TYPES["i1"]
        if first == "[":
            return self._array(tokens), None
        if first == "{":
            return self.dictionary(tokens), None
        if first == "#":
            return self._sharp(tokens, item), None
        if first == "@":
            name = tokens.symbol()
            while tokens.accept("::"):
                name += "::" + tokens.symbol()
            return written(name, "@" + name), None
        following = tokens.items[tokens.i + 1] if item == "dense" or item == "array" else ""
        if item == "dense" and following == "<":
            return self._dense(tokens)
        if item == "array" and following == "<":
            return self._dense_array(tokens), None
        if item == "unit":
            tokens.i += 1
            return None, None
        return self.type(tokens), None

    def _number(self, tokens: Tokens, item: str) -> tuple[Any, Type | None]:
        at = tokens.i
        tokens.i += 1
        type_: Type | None = None
        if tokens.items[tokens.i] == ":":
            tokens.i += 1
            type_ = self.type(tokens)
        if type_ is None or isinstance(type_, FloatType) or "." in item or len(item) > 400:
            return self._scalar(tokens, item, type_, at), type_
        if not isinstance(type_, (IntegerType, IndexType, OpaqueType)):
            tokens.fail("expected an integer or float type", tokens.i - 1)
        value = int(item, 0) if item[:2] == "0x" else int(item)
        return bool(value) if type_ is PLAIN_TYPES["i1"] else value, type_

    @staticmethod
    def _scalar(tokens: Tokens, item: str, type_: Type | None, at: int) -> Any:
        """``item`` as a value of scalar type ``type_``; with no type, by how it is written."""
        if isinstance(type_, FloatType):
            if item[:2] == "0x":
                bits = int(item, 16)
                if bits >> type_.width:
                    tokens.fail(f"expected at most {type_.width} bits", at)
                return FloatBits(bits, type_.width)
            if "." in item:
                return float(item)
            tokens.fail(f"expected a {type_.name} value: a decimal with a point, or its bits in hexadecimal", at)
        if item == "true" or item == "false":
            if type_ is None or (isinstance(type_, IntegerType) and type_.width == 1):
                return item == "true"
        elif type_ is None or isinstance(type_, (IntegerType, IndexType)):
            if "." in item and type_ is None:
                return float(item)
            digits = item[2:] if item[:2] == "0x" else item.lstrip("-")
            if len(digits) <= 400 and (item[:2] == "0x" or digits.isdigit()):
                return int(item, 16) if item[:2] == "0x" else int(item)
        tokens.fail(f"expected a value of type {type_}", at)

    def _array(self, tokens: Tokens) -> tuple[Any, ...]:
        tokens.expect("[")
        values: list[Any] = []
        if tokens.accept("]"):
            return ()
        while True:
            values.append(self._value(tokens))
            if tokens.accept("]"):
                return tuple(values)
            tokens.expect(",")

    def dictionary(self, tokens: Tokens) -> dict[str, Any]:
        """``{name = value, name, …}``; a name alone is a unit attribute."""
        tokens.expect("{")
        values: dict[str, Any] = {}
        items = tokens.items
        if items[tokens.i] == "}":
            tokens.i += 1
            return values
        while True:
            key = tokens.string() if items[tokens.i][0] == '"' else tokens.name("an attribute name")
            if key in values:
                tokens.error(f"attribute '{key}' is given twice", tokens.i - 1)
            if items[tokens.i] == "=":
                tokens.i += 1
                values[key] = self._value(tokens)
            else:
                values[key] = None
            if items[tokens.i] == "}":
                tokens.i += 1
                return values
            tokens.expect(",")

    def _dense_array(self, tokens: Tokens) -> tuple[Any, ...]:
        tokens.i += 2
        type_ = self.type(tokens)
        values: list[Any] = []
        if tokens.accept(":"):
            while True:
                values.append(self._scalar(tokens, tokens.items[tokens.i], type_, tokens.i))
                tokens.i += 1
                if not tokens.accept(","):
                    break
        tokens.expect(">")
        array = DenseArray(values)
        array.element = type_
        return array

    def _dense(self, tokens: Tokens) -> tuple[DenseAttr, Type]:
        tokens.i += 2
        start = tokens.i
        depth, splat = 0, False
        literals: list[int] = []
        while tokens.items[tokens.i] != ">" or depth:
            item = tokens.items[tokens.i]
            if item == "[":
                depth += 1
            elif item == "]" and depth:
                depth -= 1
            elif item != "," or not depth:
                if not (item[0] in '-"' or item[0].isdigit() or item in ("true", "false")):
                    tokens.fail("expected a number, '[' or '>'")
                if not depth and literals:
                    tokens.fail("expected '>'")
                splat = not depth and item[0] != '"'
                literals.append(tokens.i)
            tokens.i += 1
        tokens.i += 1
        tokens.expect(":")
        type_at = tokens.i
        type_ = self.type(tokens)
        if not isinstance(type_, TensorType):
            tokens.fail("expected a tensor type", type_at)
        element = type_.element
        items = tokens.items
        if len(literals) == 1 and items[literals[0]][0] == '"':
            values, splat = self._from_bytes(tokens, start, type_)
        else:
            values = tuple(self._scalar(tokens, items[index], element, index) for index in literals)
        if not splat and len(values) != type_.size:
            tokens.error(f"{type_} has {type_.size} elements, but {len(values)} are given", start)
        return DenseAttr(type_, values, splat), type_

    @staticmethod
    def _from_bytes(tokens: Tokens, at: int, type_: TensorType) -> tuple[tuple[Any, ...], bool]:
        """Elements given as a string ``"0x…"`` of their bytes, little-endian; one element's bytes are a splat."""
        digits = unescape(tokens.items[at])
        element = type_.element
        try:
            raw = bytes.fromhex(digits[2:] if digits[:2] == "0x" else "?")
        except ValueError:
            tokens.fail('expected a string of bytes in hexadecimal ("0x…")', at)
        if not isinstance(element, (IntegerType, FloatType)):
            tokens.error(f"elements of type {element} cannot be given as bytes", at)
        size = (element.width + 7) // 8
        if len(raw) % size or len(raw) // size not in (1, type_.size):
            tokens.error(f"{type_} needs {type_.size * size} bytes (or {size}, repeated), but {len(raw)} are given", at)
        words = [int.from_bytes(raw[k : k + size], "little") for k in range(0, len(raw), size)]
        values: list[Any]
        if isinstance(element, FloatType):
            decode = {"f16": "<e", "f32": "<f", "f64": "<d"}.get(element.name)
            values = []
            for k, word in enumerate(words):
                number = struct.unpack(decode, raw[k * size : (k + 1) * size])[0] if decode else float("nan")
                finite = number - number == 0.0
                values.append(number if finite else FloatBits(word, element.width))
        elif element.width == 1:
            values = [bool(word) for word in words]
        else:
            half = 1 << (element.width - 1)
            values = [(word & (2 * half - 1)) - (2 * half if word & half else 0) for word in words]
        return tuple(values), len(words) == 1

    # Dialect attributes and aliases

    def _sharp(self, tokens: Tokens, item: str) -> Any:
        if item in self._attributes:
            tokens.i += 1
            return self._attributes[item]
        head, bracket, body = item[1:].partition("<")
        if not bracket and item in self.aliases:
            made = self.aliases[item]
        elif head in MEMORY_SPACES and not bracket:
            made = written(MEMORY_SPACES[head], item)
        elif head in ENCODINGS and bracket:
            made = self._structured_encoding(Tokens(body[:-1], parent=tokens), head, item)
        elif head == "ttg.padded_shared" and bracket:
            made = self._padded(Tokens(body[:-1], parent=tokens), item)
        elif head == "ttg.shared_linear" and bracket:
            made = self._shared_linear(Tokens(body[:-1], parent=tokens), item)
        elif head in _OPAQUE_ENCODINGS:
            made = OpaqueEncoding(head.partition(".")[2], item)
        elif head in _FLAGS and bracket:
            made = written(tuple(flag.strip() for flag in body[:-1].split(",")), item)
        elif bracket:
            made = written(self._parameters(Tokens(body[:-1], parent=tokens)), item)
        elif "." in head:
            made = written(head, item)
        else:
            tokens.fail("expected an attribute (this alias is not defined before its use)")
        tokens.i += 1
        self._attributes[item] = made
        return made

    def _parameters(self, body: Tokens) -> Any:
        """The body of any other dialect attribute: ``key = value, …`` as a dict, else its one value or keyword."""
        if len(body.items) > 2 and body.items[1] == "=":
            values = self._assignments(body)
            body.finished("the attribute")
            return values
        value = self._value_or_keyword(body)
        body.finished("the attribute")
        return value

    def _value_or_keyword(self, body: Tokens) -> Any:
        item = body.items[body.i]
        is_word = item[0].isalpha() and item not in ("true", "false", "unit", "dense", "array")
        if is_word and item not in PLAIN_TYPES and "<" not in item and not _INTEGER.fullmatch(item):
            return body.name("a keyword")
        return self.attribute(body)

    def _assignments(self, body: Tokens) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while True:
            key = body.name("a parameter name")
            if key in values:
                body.error(f"parameter '{key}' is given twice", body.i - 1)
            body.expect("=")
            values[key] = self._value_or_keyword(body)
            if not body.accept(","):
                return values

    def _braces(self, body: Tokens) -> dict[str, Any]:
        body.expect("{")
        if body.accept("}"):
            return {}
        values = self._assignments(body)
        body.expect("}")
        return values

    def _structured_encoding(self, body: Tokens, name: str, text: str) -> Encoding:
        layout = ENCODINGS[name]
        values = self._braces(body)
        body.finished("the encoding")
        if "CGALayout" in values:
            return OpaqueEncoding(name.partition(".")[2], text)
        missing = [key for key in layout.keys if key not in values]
        extra = [key for key in values if key not in layout.keys + layout.optional]
        if missing or extra:
            body.error(
                f"#{name} has the parameters {', '.join(layout.keys + layout.optional)}; "
                f"missing: {', '.join(missing) or 'none'}, unknown: {', '.join(extra) or 'none'}"
            )
        for key, value in values.items():
            valid = isinstance(value, Encoding) if key == "parent" else isinstance(value, (int, tuple))
            if not valid or isinstance(value, bool):
                body.error(f"parameter '{key}' of #{name} has a value of the wrong kind")
        return layout.build(*[_plain(values[key]) for key in layout.keys + layout.optional if key in values])

    def _padded(self, body: Tokens, text: str) -> Encoding:
        body.expect("[")
        intervals: list[tuple[int, int]] = []
        while True:
            interval = body.integer()
            body.expect(":")
            body.expect("+")
            intervals.append((interval, body.integer()))
            if not body.accept(","):
                break
        body.expect("]")
        values = self._braces(body)
        body.finished("the encoding")
        if not values.keys() <= {"order", "shape", "offset", "block"}:
            return OpaqueEncoding("padded_shared", text)
        return PaddedSharedEncoding(tuple(intervals), **_plain(values))

    def _shared_linear(self, body: Tokens, text: str) -> Encoding:
        values = self._braces(body)
        alignment = 16
        if body.accept(","):
            body.expect("alignment")
            body.expect("=")
            alignment = body.integer()
        body.finished("the encoding")
        if "offset" not in values or not values.keys() <= {"offset", "block"}:
            body.error("#ttg.shared_linear has the parameters offset and block")
        return SharedLinearEncoding(_plain(values["offset"]), _plain(values.get("block", ())), alignment)


def _plain(value: Any) -> Any:
    """The parameters of an encoding: numbers without types."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return int(value) if isinstance(value, TypedInt) else value


def element_of(type_: Type) -> Type:
    """A tensor's element type; any other type itself."""
    return type_.element if isinstance(type_, TensorType) else type_
