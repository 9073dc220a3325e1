"""What operations keep for later calls of their kind, within limits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ...runtime import Graph

_T = TypeVar("_T")


class Kept(Generic[_T]):
    """At most ``most`` values by what they follow from, or values of at most so much ``size`` together, and one in any
    case: the one that was not used for longest is dropped. Thread-safe; two threads may make a value at once, and both
    get the first. A graph that is captured does not have the making."""

    def __init__(self, most: int, size: Callable[[_T], int] = lambda value: 1) -> None:
        self._most, self._size = most, size
        self._made: OrderedDict[Hashable, _T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value of a key, made if there is none."""
        try:
            value = self._made[key]
            self._made.move_to_end(key)
        except KeyError:  # it may also be dropped in between
            with Graph.uncaptured():
                value = self._made.setdefault(key, make())
            while len(kept := [*self._made.values()]) > 1 and sum(map(self._size, kept)) > self._most:
                self._made.popitem(last=False)
        return value
