"""The CPU device, open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import settings
from ...cpu.objects import MachineCode
from ...settings import STAGED, ZERO_COPY
from ..device_kind import MachineModule
from ..errors import DamagedModule
from ..modules.module_info import read_module
from ..modules.saved_modules import save_module
from ..modules.validate import validate_module
from ..native_module import native
from .devices import CpuDeviceInfo, threads
from .faults import message_with_line
from .loaded_kernel import CpuKernel
from .watched_kernels import watch_of

_FOREVER = 2**64 - 1


class OpenCpuDevice:
    """An OpenDevice. Kernels use host memory in place, unless TRITON_SPIRV_HOST_MEMORY asks for copies."""

    #: Whether kernels are another device's.
    emulates = False
    shares_memory = False
    validates = False

    def __init__(self, device: CpuDeviceInfo) -> None:
        """Opens the device, as DeviceKind.open() says."""
        assert device.capabilities is not None
        self.info, self.host_memory = device, self._host_memory(device)
        seconds = settings.TIMEOUT.get()
        module = native()
        module.describe_faults(message_with_line)
        self.native = module.CpuDevice(
            threads=threads(),
            timeout_ns=_FOREVER if seconds is None else int(seconds * 1e9),
            host_addresses=self.host_memory == ZERO_COPY,
            emulates=self.emulates,
        )

    def _host_memory(self, device: Any) -> str:
        asked = settings.HOST_MEMORY.get() or ZERO_COPY
        if asked not in (ZERO_COPY, STAGED):
            raise ValueError(f"TRITON_SPIRV_HOST_MEMORY={asked!r}: {device.name} uses host memory in place")
        return asked

    def load(self, name: str, code: bytes, helps: Callable[[], str], refused: object = None) -> CpuKernel:
        """Implements OpenDevice.load(), and waits always. ``code``: SPIR-V."""
        try:
            info = read_module(code)
        except ValueError as error:
            raise DamagedModule(f"kernel '{name}': {error}", save_module(name, code)) from error
        validate_module(code, name)
        assert self.info.capabilities is not None
        subgroup = info.subgroup_size or self.info.capabilities.subgroup_size
        made = self._machine_code(code, subgroup)
        most = self.info.capabilities.max_workgroup_invocations
        return CpuKernel(name, made.code, made.scratch, info, most, watch_of(info, code))

    def _machine_code(self, spirv: bytes, subgroup: int) -> MachineCode:
        from ...cpu.host import level_of
        from ...cpu.objects import machine_code

        assert self.info.capabilities is not None
        try:
            return machine_code(spirv, subgroup, self.info.capabilities.processor)
        except ModuleNotFoundError as error:  # `triton` may be there without a compiler
            raise RuntimeError(
                f"Triton, which makes machine code of its SPIR-V, is not installed ({error}); compile it with "
                f"--target cpu-{level_of(self.info.driver_version)[0]}, and take the .o that this writes along"
            ) from None

    def load_machine_code(self, code: bytes, machine: MachineModule) -> CpuKernel:
        """Implements OpenDevice.load_machine_code(). ``code``: an ELF object."""
        assert self.info.capabilities is not None
        invocations = self.info.capabilities.max_workgroup_invocations
        return CpuKernel(machine.info.entry_point, code, machine.scratch, machine.info, invocations)

    def statistics(self, code: bytes) -> tuple[int | None, int | None]:
        """Implements OpenDevice.statistics(): nothing tells them."""
        return None, None

    def compile_now(self, handle: int) -> None:
        """Implements OpenDevice.compile_now(): load() compiled it."""

    def messages(self) -> Sequence[str]:
        """Implements OpenDevice.messages()."""
        return ()

    def waits_for_compiler(self) -> bool:
        """Implements OpenDevice.waits_for_compiler()."""
        return False

    def compiles(self) -> bool:
        """Implements OpenDevice.compiles()."""
        return False

    def close(self) -> None:
        """Implements OpenDevice.close(): closing ``native`` has ended the threads."""
