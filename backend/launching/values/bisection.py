"""Which of the optional items changes a value: a search over their order (reference.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

#: Whether a kernel that is compiled without these items computes what the reference does; None: it cannot be compiled.
IsRight = Callable[[Collection[str]], bool | None]

#: How many items are looked for, one after the other, where leaving one out does not help.
_MOST = 3


@dataclass(frozen=True)
class Found:
    """What was found: groups of ``items``, each of one item where that could be decided. ``right``: whether the kernel
    is right without all of them and with everything else; None if that cannot be compiled."""

    items: tuple[tuple[str, ...], ...]
    right: bool | None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(name for group in self.items for name in group)


def find(items: Sequence[str], is_right: IsRight) -> Found:
    """The items that change a value. Without all of them the kernel is right, and with all of them it is wrong.

    Items are switched on from the first on. The first one that makes a kernel wrong may need others before it, so that
    it is left out alone at last: where the kernel stays wrong, another item changes a value in the same way, and is
    looked for while the first is out.
    """
    found: list[tuple[str, ...]] = []
    right: bool | None = False
    while right is False and len(found) < _MOST:
        out = [name for group in found for name in group]
        group = _first([name for name in items if name not in out], out, is_right)
        found.append(group)
        right = is_right([*out, *group])
    return Found(tuple(found), right)


def _first(items: Sequence[str], out: Sequence[str], is_right: IsRight) -> tuple[str, ...]:
    """The item with which a kernel becomes wrong, as items are switched on in their order, those of ``out`` never; more
    than one where what is between cannot be compiled."""
    low, high = 0, len(items)
    while high - low > 1:
        for middle in sorted(range(low + 1, high), key=lambda one: abs(2 * one - low - high)):
            right = is_right([*items[middle:], *out])
            if right is not None:
                break
        else:
            break
        low, high = (middle, high) if right else (low, middle)
    return tuple(items[low:high])
