"""Attributes that equal a plain value but are written differently; the printer writes them as they were."""

from __future__ import annotations

from typing import Any

from .types import IntegerType, Type


class TypedInt(int):
    """An integer attribute of another type than ``i32``."""

    type: Type


class TypedFloat(float):
    """A float attribute of another type than ``f32``."""

    type: Type


class DenseArray(tuple[Any, ...]):
    """``array<element: …>``; a plain tuple is ``[…]``."""

    element: Type = IntegerType(32)


class _Written:
    """``text`` is the attribute in MLIR."""

    text: str


class WrittenString(_Written, str):
    """A symbol or keyword; a plain ``str`` is ``"…"``."""


class WrittenTuple(_Written, tuple[Any, ...]):
    """A list of keywords."""


class WrittenDict(_Written, dict[str, Any]):
    """A dialect attribute with parameters; a plain ``dict`` is ``{…}``."""


def typed(value: int | float, type_: Type) -> TypedInt | TypedFloat:
    """``value`` with its type."""
    made: TypedInt | TypedFloat = TypedInt(value) if isinstance(value, int) else TypedFloat(value)
    made.type = type_
    return made


def written(value: Any, text: str) -> Any:
    """A string, tuple or dict with its text in MLIR; any other value as it is."""
    kinds: dict[type, Any] = {str: WrittenString, tuple: WrittenTuple, dict: WrittenDict}
    kind = kinds.get(type(value))
    if kind is None:
        return value
    made = kind(value)
    made.text = text
    return made
