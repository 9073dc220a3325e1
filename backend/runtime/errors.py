"""Errors between a compiled kernel and its device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class DeviceUnavailable(RuntimeError):
    """There is no device to run on. The message says what is missing and the command that gets it."""


class KernelRejected(RuntimeError):
    """A SPIR-V module that is damaged, or that the driver refused. ``reason`` says why, ``path`` is where the module
    was saved, '' if it could not be."""

    def __init__(self, reason: str, path: str) -> None:
        saved = f"was saved as {path}: check it with 'spirv-val --target-env vulkan1.3'"
        super().__init__(f"{reason}; the module {saved if path else 'could not be saved'}")
        self.reason, self.path = reason, path

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.path)


class RefusedModule(KernelRejected):
    """A module that the driver refused, though it is not damaged."""


class DamagedModule(KernelRejected):
    """A file that is cut off, or something other than a SPIR-V module."""


class NotShareable(ValueError):
    """A CUDA tensor whose memory Vulkan cannot import. The message says how to allocate it."""


class ValidationError(RuntimeError):
    """What the Khronos validation layer reported under TRITON_SPIRV_VALIDATE=1."""


class ValuesDiffer(RuntimeError):
    """A kernel that computes something else by the reference pipeline, which leaves out all that is optional.

    ``kernel``, ``argument``: names. ``index``: of the first element that differs, counted from where the argument
    begins. ``usual``, ``reference``: its values. ``file``, ``line``: of the store, or of the kernel; "" and 0 if
    neither is known. ``items``: what changes the value, by the names of the option ``without``; empty if that was not
    found. ``report``: what a report of it needs."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.kernel: str = facts["kernel"]
        self.argument: str = facts["argument"]
        self.index: int = facts["index"]
        self.usual: float | int = facts["usual"]
        self.reference: float | int = facts["reference"]
        self.file: str = facts["file"]
        self.line: int = facts["line"]
        self.items: tuple[str, ...] = facts["items"]
        self.report: dict[str, Any] = facts["report"]
        self._facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        return _values_differ, (str(self), self._facts)


def _values_differ(message: str, facts: dict[str, Any]) -> ValuesDiffer:
    return ValuesDiffer(message, **facts)


def raise_first(calls: Iterable[Callable[[], object]]) -> None:
    """Make all ``calls``, then raise the first RuntimeError of one, with the others as its notes."""
    first: RuntimeError | None = None
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            if first is None:
                first = error
                continue
            for note in (str(error), *getattr(error, "__notes__", ())):
                first.add_note(note)
    if first is not None:
        raise first
