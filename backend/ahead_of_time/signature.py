"""The signature of a kernel that is compiled ahead of time, as text: ``*fp32:16, *fp32, n=i32, BLOCK=64``.

As upstream's triton.tools.compile: an entry is a type, with ``:16`` where the value or address is a multiple of 16, or
a constant that is compiled in; ``i32:1`` is the constant 1. Beside that an entry may go by name, descriptors
(``tensordesc<fp32[64, 32]>``), strings, True, False, None, tuples of constants and types as constants (``tl.float16``)
are understood, and parameters with a default may be left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import RequestError

CONSTEXPR = "constexpr"
#: What a hint may say of a value.
HINTS = {"1": "it is 1", "16": "it is a multiple of 16"}

_NAMED = re.compile(r"([^\W\d]\w*)\s*=\s*(.*)", re.DOTALL)
_BRACKETS = {"<": ">", "[": "]", "(": ")"}


@dataclass(frozen=True)
class SourceParameter:
    """A parameter of the kernel's source."""

    name: str
    is_constexpr: bool
    has_default: bool
    default: Any


@dataclass(frozen=True)
class Entry:
    """What a parameter is compiled for. ``type``: Triton's, or CONSTEXPR where ``value`` is compiled in."""

    type: str
    value: Any = None
    divisible_by: int = 1


def split(text: str) -> list[str]:
    """The entries of a signature: commas inside brackets and quotes do not count."""
    entries: list[str] = []
    closing: list[str] = []
    current = quote = ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter in _BRACKETS:
            closing.append(_BRACKETS[letter])
        elif letter == "," and not closing:
            entries.append(current.strip())
            current = ""
            continue
        current += letter
    if quote or closing:
        raise RequestError(f"the signature has no closing {quote or closing[-1]}: {text}")
    return [*entries, current.strip()] if current.strip() or entries else []


def read_entry(
    text: str, name: str, known: Callable[[str], bool], types: Sequence[str], dtypes: Mapping[str, Any]
) -> Entry:
    """One entry. ``known`` says whether a type exists, ``types`` are named where it does not; ``dtypes``: the types
    that may be constants, by the name after ``tl.``."""
    if text.startswith("tl."):
        if text.removeprefix("tl.") not in dtypes:
            raise RequestError(
                f"'{name}': there is no type '{text}'; there are {', '.join(f'tl.{dtype}' for dtype in dtypes)}"
            )
        return Entry(CONSTEXPR, dtypes[text.removeprefix("tl.")])
    try:
        return Entry(CONSTEXPR, _constant(text))
    except ValueError:
        pass
    type_, _, hint = (part.strip() for part in text.partition(":"))
    if not known(type_):
        raise RequestError(
            f"'{name}': '{text}' is neither a type nor a constant; the types are {', '.join(types)}, "
            "pointers to them and to fp8 formats such as *fp32, and tensordesc<fp32[64, 32]>; a string "
            "is quoted: \"'text'\"; a type as a constant is tl.float16"
        )
    if not hint:
        return Entry(type_)
    if hint not in HINTS:
        said = ", ".join(f"':{hint}' ({meaning})" for hint, meaning in HINTS.items())
        raise RequestError(f"'{name}': the hint ':{hint}' of '{text}' is none of {said}")
    integer = type_[0] in "iu"
    if not integer and (hint == "1" or type_[0] != "*"):
        raise RequestError(f"'{name}': '{text}' cannot be: ':1' is for integers, ':16' for integers and pointers")
    return Entry(CONSTEXPR, 1) if hint == "1" else Entry(type_, divisible_by=int(hint))


def _constant(text: str) -> Any:
    """A number, True, False, None, a quoted string, or a tuple of such. Raises ValueError on anything else."""
    try:
        return float(text) if text.lower().lstrip("+-") in ("inf", "nan") else _literal(text)
    except (SyntaxError, TypeError, MemoryError):
        raise ValueError(text) from None


def _literal(text: str) -> Any:
    value = ast.literal_eval(text)
    if not _is_constant(value):
        raise ValueError(text)
    return value


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str)


def read_signature(
    text: str,
    parameters: Sequence[SourceParameter],
    known: Callable[[str], bool],
    types: Sequence[str],
    dtypes: Mapping[str, Any],
) -> list[Entry]:
    """What each parameter is compiled for; the rest as read_entry's. Raises RequestError."""
    names = [parameter.name for parameter in parameters]
    given: dict[str, str] = {}
    named = False
    texts = split(text)
    for position, part in enumerate(texts):
        match = _NAMED.fullmatch(part)
        if match:
            named = True
            name, part = match[1], match[2].strip()
            if name not in names:
                raise RequestError(f"the signature names '{name}'; the kernel's parameters are {', '.join(names)}")
            if name in given:
                raise RequestError(f"the signature has two entries for '{name}'")
        else:
            if named:
                raise RequestError(
                    f"the signature's entry {position + 1}, '{part}', has no name but follows one that has"
                )
            if position >= len(names):
                raise RequestError(
                    f"the signature has {len(texts)} entries, the kernel {len(names)} parameters: {', '.join(names)}"
                )
            name = names[position]
        given[name] = part
    missing = [parameter.name for parameter in parameters if parameter.name not in given and not parameter.has_default]
    if missing:
        raise RequestError(
            f"the signature has {len(given)} entries and none for {', '.join(missing)}; the kernel's "
            f"{len(names)} parameters are {', '.join(names)}"
        )
    entries = []
    for parameter in parameters:
        if parameter.name not in given:
            entries.append(Entry(CONSTEXPR, parameter.default))
            continue
        entry = read_entry(given[parameter.name], parameter.name, known, types, dtypes)
        if parameter.is_constexpr and entry.type != CONSTEXPR:
            raise RequestError(
                f"'{parameter.name}' is a tl.constexpr: give its value, not the type '{given[parameter.name]}'"
            )
        entries.append(entry)
    return entries
