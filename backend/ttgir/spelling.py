"""Types, attributes and locations as MLIR writes them: the counterpart of type_reader.py, encoding_reader.py,
attributes.py and locations.py."""

from __future__ import annotations

import re
from typing import Any

from .attribute_values import DenseArray, TypedFloat, TypedInt, WrittenDict, WrittenString, WrittenTuple
from .encoding_reader import ENCODINGS
from .encodings import (
    Encoding,
    FoldedEncoding,
    FragmentEncoding,
    OpaqueEncoding,
    PaddedSharedEncoding,
    ReorderedEncoding,
    SharedLinearEncoding,
    TransposedEncoding,
)
from .ir import UNKNOWN, DenseAttr, FloatBits, Location
from .type_reader import ADDRESS_SPACES, MEMORY_SPACES
from .types import FunctionType, MemDescType, PointerType, TensorType, Type

_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_SYMBOL = re.compile(r"[A-Za-z_$.-][\w$.-]*", re.ASCII)
_SPACE_KEYWORDS = {number: keyword for keyword, number in ADDRESS_SPACES.items()}
_SPACE_ATTRIBUTES = {space: attribute for attribute, space in MEMORY_SPACES.items()}

#: Encodings that are not upstream's, which users see and upstream never reads.
_OWN = {
    FragmentEncoding: "spirv.fragment",
    TransposedEncoding: "spirv.transposed",
    FoldedEncoding: "spirv.folded",
    ReorderedEncoding: "spirv.reordered",
}


def quoted(text: str) -> str:
    """A string in quotes, whose bytes that cannot be printed are escaped."""
    return (
        '"'
        + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())
        + '"'
    )


def symbol(name: str) -> str:
    """The name of a function with its ``@``."""
    return f"@{name if _SYMBOL.fullmatch(name) else quoted(name)}"


def number(value: Any) -> str:
    """An integer, boolean or float without its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, FloatBits):
        return f"0x{value.bits:0{value.width // 4}X}"
    if isinstance(value, int):
        return str(int(value))
    short = f"{value:.6e}"
    return short if float(short) == value else f"{value:.17e}"


class Spelling:
    """Spells with the ``aliases`` of a module: name → the attribute or type that it stands for."""

    def __init__(self, aliases: dict[str, Any]) -> None:
        self._encodings = {value: name for name, value in aliases.items() if isinstance(value, Encoding)}
        self._types: dict[Type, str] = {}

    # -- types ---------------------------------------------------------------------------------------------------
    def type(self, type_: Type) -> str:
        """A type in full."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = self._spell(type_)
        return found

    def _spell(self, type_: Type) -> str:
        if isinstance(type_, TensorType):
            encoding = "" if type_.encoding is None else ", " + self.encoding(type_.encoding)
            return f"tensor<{_shape(type_.shape)}{self.type(type_.element)}{encoding}>"
        if isinstance(type_, MemDescType):
            space = _SPACE_ATTRIBUTES[type_.memory_space]
            parts = [f"{_shape(type_.shape)}{self.type(type_.element)}", self.encoding(type_.encoding), f"#{space}"]
            parts += ["mutable"] if type_.mutable else []
            parts += [_shape(type_.alloc_shape)[:-1]] if type_.alloc_shape else []
            return f"!ttg.memdesc<{', '.join(parts)}>"
        if isinstance(type_, PointerType):
            keyword = _SPACE_KEYWORDS.get(type_.address_space)
            space = f', "{keyword}"' if keyword else f", {type_.address_space}"
            return f"!tt.ptr<{self.type(type_.pointee)}{'' if type_.address_space == 1 else space}>"
        if isinstance(type_, FunctionType):
            return self.function_type(type_.inputs, type_.results)
        return str(type_)

    def types(self, types: Any) -> str:
        """Types with commas between."""
        return ", ".join(map(self.type, types))

    def results(self, types: Any) -> str:
        """What stands after ``->``."""
        return self.type(types[0]) if len(types) == 1 else f"({self.types(types)})"

    def function_type(self, inputs: Any, results: Any) -> str:
        """``(inputs) -> results``."""
        return f"({self.types(inputs)}) -> {self.results(results)}"

    # -- attributes ----------------------------------------------------------------------------------------------
    def encoding(self, encoding: Encoding) -> str:
        """The alias of an encoding, or all of it."""
        name = self._encodings.get(encoding)
        return self.whole_encoding(encoding) if name is None else name

    def whole_encoding(self, encoding: Encoding) -> str:
        """An encoding without its own alias."""
        if isinstance(encoding, OpaqueEncoding):
            return encoding.text
        if isinstance(encoding, PaddedSharedEncoding):
            intervals = ", ".join(f"{interval}:+{padding}" for interval, padding in encoding.intervals)
            rest = ("order", "shape") if encoding.shape or not encoding.offset else ("offset", "block")
            return f"#ttg.padded_shared<[{intervals}] {self._braces((key, getattr(encoding, key)) for key in rest)}>"
        if isinstance(encoding, SharedLinearEncoding):
            keys = ("offset", "block") if encoding.block else ("offset",)
            braces = self._braces((key, getattr(encoding, key)) for key in keys)
            return f"#ttg.shared_linear<{braces}, alignment = {encoding.alignment}>"
        for name, fields in ENCODINGS.items():
            if isinstance(encoding, fields.build):
                values = [getattr(encoding, field) for field in encoding.__dataclass_fields__]
                pairs = zip(fields.keys + fields.optional, values, strict=True)
                shown = self._braces((key, value) for key, value in pairs if value or key not in fields.optional)
                return f"#{name}<{shown}>"
        if type(encoding) in _OWN:
            own = ((field, getattr(encoding, field)) for field in encoding.__dataclass_fields__)
            return f"#{_OWN[type(encoding)]}<{self._braces(pair for pair in own if pair[1] is not None)}>"
        raise AssertionError(encoding)

    def _braces(self, pairs: Any) -> str:
        return "{" + ", ".join(f"{key} = {self._parameter(value)}" for key, value in pairs) + "}"

    def _parameter(self, value: Any) -> str:
        if isinstance(value, Encoding):
            return self.encoding(value)
        if isinstance(value, tuple):
            return f"[{', '.join(map(self._parameter, value))}]"
        return number(value)

    def attribute(self, value: Any) -> str:
        """An attribute with its type, where it has one."""
        if isinstance(value, WrittenString | WrittenTuple | WrittenDict):
            return value.text
        if value is None:
            return "unit"
        if isinstance(value, bool):
            return number(value)
        if isinstance(value, TypedInt | TypedFloat):
            return f"{number(value)} : {self.type(value.type)}"
        if isinstance(value, int):
            return f"{value} : i32"
        if isinstance(value, float):
            return f"{number(value)} : f32"
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, DenseArray):
            elements = ", ".join(map(number, value))
            return f"array<{self.type(value.element)}{': ' if value else ''}{elements}>"
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.attribute, value))}]"
        if isinstance(value, dict):
            return self.dictionary(value)
        if isinstance(value, DenseAttr):
            return f"dense<{_elements(value)}> : {self.type(value.type)}"
        if isinstance(value, Encoding):
            return self.encoding(value)
        assert isinstance(value, Type), value
        return self.type(value)

    def dictionary(self, values: dict[str, Any]) -> str:
        """``{name = value, name}``."""
        parts = (
            (key if _BARE.fullmatch(key) else quoted(key)) + ("" if value is None else f" = {self.attribute(value)}")
            for key, value in values.items()
        )
        return "{" + ", ".join(parts) + "}"


# -- locations ---------------------------------------------------------------------------------------------------
def location(where: Location) -> str:
    """``loc(…)``."""
    return where.text or f"loc({_inside(where)})"


def _inside(where: Location) -> str:
    if where.text:
        return where.text[4:-1]
    if where.caller is not None:
        frame = Location(where.file, where.line, where.column, where.name)
        return f"callsite({_inside(frame)} at {_inside(where.caller)})"
    place = f"{quoted(where.file)}:{where.line}:{where.column}" if where.file else ""
    if where.name:
        return f"{quoted(where.name)}({place})" if place else quoted(where.name)
    return place or "unknown"


def unknown(where: Location) -> bool:
    """Whether nothing is known of a location."""
    return where == UNKNOWN and not where.text


# -- parts -------------------------------------------------------------------------------------------------------
def _shape(shape: tuple[int, ...]) -> str:
    return "".join(f"{extent}x" for extent in shape)


def _elements(value: DenseAttr) -> str:
    if value.splat:
        return number(value.values[0])
    assert isinstance(value.type, TensorType)
    rows = [number(element) for element in value.values]
    for extent in reversed(value.type.shape):
        rows = [f"[{', '.join(rows[start : start + extent])}]" for start in range(0, len(rows), extent)]
    return rows[0] if rows else ""
