"""The arguments of a kernel's source, as a launch passes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton.backends.driver import expand_signature

from ..runtime.launches.launch import Entry


def flat_signature(names: list[str], signature: list[Any], tensordesc_meta: Any) -> list[Entry]:
    """The leaves of a kernel's signature, constexprs included: (path in the launch's arguments, name, type).

    A tensor descriptor stands for its base, shape and strides, as ``decompose_descriptor`` passes them.
    """
    position = 0
    leaves: list[Entry] = []
    for name, type_ in zip(names, signature, strict=True):
        expanded = expand_signature([type_], tensordesc_meta, "nvTmaDesc")
        for part in expanded:
            leaves.extend(_leaves((position,), name, part))
            position += 1
    return leaves


def _leaves(path: tuple[int, ...], name: str, type_: Any) -> Iterator[Entry]:
    if isinstance(type_, tuple):
        for index, part in enumerate(type_):
            yield from _leaves((*path, index), f"{name}[{index}]", part)
    else:
        yield path, name, type_


def argument_name(src: Any, key: Any) -> str:
    """The name of a signature's entry: IR sources number their arguments."""
    if isinstance(key, int):
        names = getattr(getattr(src, "fn", None), "arg_names", ())
        return str(names[key]) if key < len(names) else f"arg{key}"
    return str(key)


def has_descriptor(type_: Any) -> bool:
    """Whether an argument of this type is, or holds, a tensor descriptor."""
    if isinstance(type_, tuple):
        return any(map(has_descriptor, type_))
    return isinstance(type_, str) and type_.startswith("tensordesc")
