"""Attributes read from tokens, with the types and encodings in them.

Every bracketed attribute is one token, so each distinct spelling is taken apart once per module and found by its text
afterwards.
"""

from __future__ import annotations

import struct
from typing import Any

from .attribute_values import DenseArray, typed, written
from .encoding_reader import ENCODINGS, OPAQUE_ENCODINGS, EncodingReader
from .encodings import OpaqueEncoding
from .ir import DenseAttr, FloatBits
from .lexer import Tokens, unescape
from .type_reader import INTEGER, MEMORY_SPACES, PLAIN_TYPES
from .types import FloatType, IndexType, IntegerType, OpaqueType, TensorType, Type

_I32, _F32 = PLAIN_TYPES["i32"], PLAIN_TYPES["f32"]

#: Attributes whose body is ``<keyword>`` or ``<keyword, …>``: a tuple of keywords.
_FLAGS = frozenset({"arith.fastmath", "arith.overflow"})


class AttributeReader(EncodingReader):
    """Reads types and attributes. ``aliases`` maps ``#name`` and ``!name`` to what was defined for them."""

    __slots__ = ()

    def attribute(self, tokens: Tokens) -> Any:
        """The attribute that comes next, as a plain value (see ir.py)."""
        return self.typed_attribute(tokens)[0]

    def _value(self, tokens: Tokens) -> Any:
        """Reads a value where its type has to be known to write it again."""
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
        elif head in OPAQUE_ENCODINGS:
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
        if is_word and item not in PLAIN_TYPES and "<" not in item and not INTEGER.fullmatch(item):
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
