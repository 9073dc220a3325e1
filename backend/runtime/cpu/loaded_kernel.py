"""A kernel on the CPU device."""

from __future__ import annotations

from typing import Any

from ..modules.module_info import ModuleInfo
from ..native_module import native
from . import faults
from .line_table import line_of


class CpuKernel:
    """A DeviceKernel: machine code that is loaded.

    ``code``: an ELF object; ``scratch``: bytes of memory that a thread needs for a program; ``max_invocations``: the
    most that a workgroup may have; ``watch``: a native CpuWatch, where it is watched. Raises RuntimeError if the object
    cannot be loaded.
    """

    def __init__(
        self, name: str, code: bytes, scratch: int, info: ModuleInfo, max_invocations: int, watch: Any = None
    ) -> None:
        module = native()
        self.info, self.max_invocations = info, max_invocations
        self._code = code
        try:
            self._object: Any = module.CpuObject(code)
            self._kernel: Any = module.CpuKernel(self._object, info.entry_point, scratch, watch, info.may_wait)
        except module.ObjectError as error:
            raise RuntimeError(f"its machine code cannot be loaded: {error}") from error
        self.handle: int = self._kernel.handle
        faults.add(self)

    @property
    def counts(self) -> tuple[int, ...] | None:
        """What was counted of its launches (runtime/emulated/counting.py)."""
        return None if self._kernel is None else tuple(self._kernel.counts)

    def line_of(self, pc: int) -> tuple[str, int] | None:
        """The file and line of an instruction, by its address. None if it is not known."""
        place = self._object.place(pc) if self._object is not None else None
        return None if place is None else line_of(self._code, place[0], place[2])

    def destroy(self) -> None:
        """Implements DeviceKernel.destroy()."""
        self._kernel = self._object = None
