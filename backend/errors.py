"""Errors of the compile side."""

from __future__ import annotations

from .ttgir.ir import Location, Operation


class UnsupportedOperation(Exception):
    """An operation that this backend refuses, with the user's source line and what to use instead."""

    def __init__(self, operation: Operation, reason: str, instead: str = "") -> None:
        self.location = _location(operation)
        super().__init__(_message(operation.name, self.location, reason, instead))

    def __reduce__(self) -> tuple[object, ...]:
        return (_Restored, (self.args[0],))


class _Restored(UnsupportedOperation):
    """An UnsupportedOperation that was pickled or copied: the message is all that remains."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class LoweringError(Exception):
    """A module that is not what upstream's passes produce: a bug, reported with the operation it was met in."""


def _location(operation: Operation) -> Location:
    """Where the operation is; of a constant that passes have moved, where it is used first."""
    pending, seen = [operation], set()
    while pending:
        current = pending.pop(0)
        if current.location.file:
            return current.location
        for use in (use for result in current.results for use in result.uses):
            if use not in seen:
                seen.add(use)
                pending.append(use)
    return operation.location


def _message(name: str, location: Location, reason: str, instead: str) -> str:
    text = f"{location}: the SPIR-V backend cannot compile '{name}': {reason}"
    return f"{text}; {instead}" if instead else text
