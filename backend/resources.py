"""Errors for kernels that need too much of a resource. Autotuning knows them, and skips such a configuration."""

from __future__ import annotations

from triton.runtime.errors import OutOfResources

from . import settings
from .compile_time import TooLong


class CompilesTooLong(OutOfResources):
    """A kernel that does not compile in the time that it may take."""

    def __init__(self, error: TooLong) -> None:
        limit = settings.COMPILE_TIMEOUT.get()
        super().__init__(limit, limit, "seconds")
        self._error = error

    def __str__(self) -> str:
        return str(self._error)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._error,)
