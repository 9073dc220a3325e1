"""What the runtime asks of a kind of device: to list its devices, to open one, and to load kernels on it.

A kind has a package here, as vulkan/ is, and a class of the native module derived from its ``Device``, which has the
memory, the launches and the timeline (native/device.h). KINDS in device_choice.py has them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ..capabilities import Capabilities
from .modules.module_info import ModuleInfo

#: Sorts of devices, best first.
SORTS = ("discrete", "integrated", "virtual", "cpu", "other")

#: Compute units of a GPU that does not tell them: as many as a larger integrated GPU has.
ESTIMATED_COUNT = 32


@dataclass(frozen=True)
class ComputeUnits:
    """Multiprocessors of NVIDIA, compute units of AMD, shader cores of Arm, threads of a CPU.

    ``count``: how many there are; ``threads``: invocations that reside on one; ``registers``: 32-bit registers of one.
    None: not told. ``estimated``: ``count`` is ESTIMATED_COUNT.
    """

    count: int | None = None
    threads: int | None = None
    registers: int | None = None

    @property
    def estimated(self) -> bool:
        """Whether the number of units is not told."""
        return self.count is None

    @property
    def count_or_estimate(self) -> int:
        """How many there are, or ESTIMATED_COUNT."""
        return ESTIMATED_COUNT if self.count is None else self.count


@dataclass(frozen=True)
class MatrixProperties:
    """Matrices that a subgroup holds and multiplies, as a driver reports them. The types are keys of
    matrices.COMPONENTS."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]
    saturating: bool


@dataclass(frozen=True, eq=False)
class DeviceInfo(ABC):
    """A device as probed. ``lacks`` names what it lacks of the required; ``capabilities`` is None then.

    Two devices may be alike in everything, their UUID included: only the object tells them apart.

    ``api`` is its kind, a key of device_choice.KINDS; ``kind`` is one of SORTS. Host memory that is imported begins and
    ends at multiples of ``host_import_alignment`` bytes; 0: none can be imported. ``driver_version`` is the driver's
    own text. ``matrices`` is what it reports of its matrix units; those that kernels may use are in
    measured.capabilities_of().
    """

    api: ClassVar[str]
    #: Whether its capabilities are known from a profile: nothing of them is measured.
    documented: ClassVar[bool] = False

    name: str
    kind: str
    uuid: str
    driver: str
    lacks: tuple[str, ...]
    capabilities: Capabilities | None
    host_import_alignment: int = 0
    driver_version: str = ""
    matrices: tuple[MatrixProperties, ...] = ()
    compute_units: ComputeUnits = ComputeUnits()

    @property
    def is_gpu(self) -> bool:
        """Whether it is one, by its sort."""
        return self.kind not in ("cpu", "other")

    @property
    @abstractmethod
    def interface(self) -> str:
        """What it is reached by, such as ``Vulkan 1.3``."""

    @abstractmethod
    def memory(self) -> tuple[int | None, int]:
        """(bytes that this process may still allocate, bytes that there are). The first is None if nothing tells it.
        Raises RuntimeError if the process is ending."""

    def is_called(self, name: str) -> bool:
        """Whether TRITON_SPIRV_DEVICE=``name`` means it: it is a part of the device's name, in any case."""
        return name.lower() in self.name.lower()

    def details(self) -> dict[str, Any]:
        """What only its kind of device has, as ``triton-spirv info --json`` prints it."""
        return {}

    def describe(self) -> str:
        """One line: name, kind, and what it lacks, if anything."""
        lacking = f", lacks {', '.join(self.lacks)}" if self.lacks else ""
        return f"{self.name} ({self.kind}, {self.interface}{lacking})"


@dataclass(frozen=True)
class MachineModule:
    """What is known of machine code. ``info``: as of the module that it was made of; ``scratch``: bytes of memory that
    a thread needs for it."""

    info: ModuleInfo
    scratch: int


class DeviceKind(Protocol):
    """A kind of device."""

    def devices(self) -> Sequence[DeviceInfo]:
        """Those of this machine. Raises DeviceUnavailable where what they need is not installed, and RuntimeError where
        the process is ending."""

    def open(self, device: Any, again: bool) -> OpenDevice:
        """Opens one of its devices, which can run kernels. ``again``: an earlier one failed, and was left. Raises
        DeviceUnavailable, RuntimeError where its driver refuses, and ValueError if TRITON_SPIRV_HOST_MEMORY asks for
        what it does not have."""

    def remedy(self) -> str:
        """What to do where there is none."""


class DeviceKernel(Protocol):
    """A kernel on an open device. ``handle``: what launches take; ``info``: what it says of itself."""

    handle: int
    info: ModuleInfo

    @property
    def max_invocations(self) -> int:
        """The most invocations that a workgroup of its subgroups may have."""

    def destroy(self) -> None:
        """Destroys it. None of its launches may be running."""


class OpenDevice(Protocol):
    """An open device. ``native``: a _native.Device; ``host_memory``: one of
    ZERO_COPY, IMPORTED and STAGED; ``shares_memory``: whether CUDA's memory and semaphores can be shared."""

    native: Any
    host_memory: str
    shares_memory: bool

    @property
    def info(self) -> DeviceInfo:
        """The device as it was opened."""

    @property
    def validates(self) -> bool:
        """Whether a validation layer is on."""

    def load(
        self, name: str, code: bytes, helps: Callable[[], str], refused: Callable[[BaseException], str] | None = None
    ) -> DeviceKernel:
        """A kernel of what the compiler made. ``helps``: says what would make it compile sooner. ``refused``: given
        where the driver may still be compiling it afterwards. What is launched meanwhile runs when it has; if it
        refuses, that and what follows it are an error of a later call, in words that ``refused`` gives for this one.

        Raises DamagedModule, TooLong, RuntimeError or ValidationError where the device refuses it, and what validating
        the module raises.
        """

    def load_machine_code(self, code: bytes, machine: MachineModule) -> DeviceKernel:
        """A kernel of machine code for this device. Raises RuntimeError where the device refuses it."""

    def statistics(self, code: bytes) -> tuple[int | None, int | None]:
        """A kernel's registers of an invocation, and its spills; None if nothing tells them."""

    def compile_now(self, handle: int) -> None:
        """Compiles now what the first launch of a kernel would compile otherwise."""

    def messages(self) -> Sequence[str]:
        """What the validation layer has reported since the last call."""

    def waits_for_compiler(self) -> bool:
        """Whether the device's last work would wait for a compilation that nobody waits for."""

    def compiles(self) -> bool:
        """Whether something is compiled that nobody waits for, once all is that launches may wait for. A device is not
        destroyed meanwhile."""

    def close(self) -> None:
        """Destroys what is left once ``native`` is closed, its kernels are destroyed, and nothing is compiled."""
