"""A kernel on a device, for as long as its owner, launches and graphs need it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..compile_time import TooLong, what_helps
from .context import Context
from .device_kind import DeviceKernel, MachineModule
from .errors import DamagedModule, KernelRejected, RefusedModule, ValidationError
from .modules.saved_modules import save_module

#: What helps where nothing is known of how the kernel was compiled.
_SMALLER = partial(what_helps, None, 0)


class Kernel:
    """A kernel on a device. ``handle`` is what launches take; ``info`` is what it says of itself; ``max_invocations``
    are the most that a workgroup may have on the device at its subgroup size.

    ``helps``: says what would make it compile sooner. ``machine``: what is known of ``code`` where that is machine
    code. ``refused``: given where the driver may still be compiling it afterwards, and called if it refuses then, which
    is an error of a later launch or wait.

    Raises DamagedModule on a damaged module, RefusedModule on one that the driver refuses, KernelRejected on one that
    the validation layer objects to; the module is saved and its path named.
    Raises TooLong if the driver's compiler takes longer than it may. It goes on, and a later Kernel of the module
    has what it makes.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        code: bytes,
        helps: Callable[[], str] | None = None,
        machine: MachineModule | None = None,
        refused: Callable[[], None] | None = None,
    ) -> None:
        self.context = context
        self.name = name
        self._made: DeviceKernel | None = None
        with context.in_use():
            try:
                if machine is None:
                    told = None if refused is None else partial(self._told, refused, code, helps)
                    made = self._made = context.opened.load(name, code, helps or _SMALLER, told)
                else:
                    made = self._made = context.opened.load_machine_code(code, machine)
                context.raise_validation_errors()
            except (TooLong, DamagedModule):
                raise
            except (RuntimeError, ValidationError) as error:
                self.destroy()
                context.native.check_usable()  # a device that was closed meanwhile says so itself
                if machine is not None or isinstance(error, ValidationError):
                    message = f"kernel '{name}' was refused by {context.device.name}: {error}"
                    raise KernelRejected(message, save_module(name, code)) from error
                raise self._refusal(code, helps, error) from error
            self.handle = made.handle
            self.info = made.info
            self.max_invocations = made.max_invocations
            context.add_kernel(self.handle, self)

    def _refusal(self, code: bytes, helps: Callable[[], str] | None, error: BaseException) -> RefusedModule:
        return RefusedModule(
            f"kernel '{self.name}' was refused by {self.context.device.name}: {error}; it may hold too many values at "
            f"a time for the driver: {(helps or _SMALLER)()}",
            save_module(self.name, code),
        )

    def _told(
        self, refused: Callable[[], None], code: bytes, helps: Callable[[], str] | None, error: BaseException
    ) -> str:
        refused()
        return str(error if isinstance(error, TooLong) else self._refusal(code, helps, error))

    @property
    def loaded(self) -> bool:
        """Whether it is on the device."""
        return self._made is not None

    @property
    def counts(self) -> tuple[int, ...] | None:
        """What its launches did, as far as it was counted (runtime/emulated/counting.py); None if nothing counts."""
        return getattr(self._made, "counts", None)

    def destroy(self) -> None:
        """Destroy it on the device. None of its launches may be running. Called by the context."""
        made, self._made = self._made, None
        if made is not None:
            made.destroy()

    def unload(self) -> None:
        """Give the kernel back. A second call, or one after the context closed, does nothing."""
        self.context.remove_kernel(self.handle)
