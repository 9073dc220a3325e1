"""What can go wrong between a compiled kernel and its device."""

from __future__ import annotations


class VulkanUnavailable(RuntimeError):
    """There is no Vulkan device to run on. The message says what is missing and the command that gets it."""


class KernelRejected(RuntimeError):
    """A SPIR-V module that is damaged, or that the driver refused. ``reason`` says why, ``path`` is where the module
    was saved, '' where it could not be."""

    def __init__(self, reason: str, path: str) -> None:
        saved = f"was saved as {path}: check it with 'spirv-val --target-env vulkan1.3'"
        super().__init__(f"{reason}; the module {saved if path else 'could not be saved'}")
        self.reason, self.path = reason, path

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.path)


class DamagedModule(KernelRejected):
    """A file that is cut off, or something other than a SPIR-V module."""


class NotShareable(ValueError):
    """A CUDA tensor whose memory Vulkan cannot import. The message says how to allocate it."""


class KernelAssertionError(RuntimeError, AssertionError):
    """A tl.device_assert that failed: message, file and line."""


class OutOfBounds(RuntimeError, IndexError):
    """An access outside of the tensor that was passed, of a kernel that checks them. It was not done.

    ``argument`` (the first, where it may have been one of several), ``index`` and ``elements`` in that argument's
    elements, ``program`` (x, y, z), ``file`` and ``line`` are those of the first such access of the launch, ``count``
    tells how many there were.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        argument: str = "",
        index: int = 0,
        elements: int = 0,
        program: tuple[int, ...] = (),
        file: str = "",
        line: int = 0,
        count: int = 0,
    ) -> None:
        super().__init__(message)
        self.kernel, self.argument, self.index, self.elements = kernel, argument, index, elements
        self.program, self.file, self.line, self.count = program, file, line, count


class SharedMemoryRace(RuntimeError):
    """Two invocations of a workgroup accessed the same bytes of shared memory, one of them at least to write, with no
    barrier between, in a kernel that checks for races.

    ``byte`` of shared memory, the numbers of the two ``invocations`` in the workgroup (that of the later access first),
    ``program`` (x, y, z), ``file`` and ``line`` of the later access and ``other_file`` and ``other_line`` of the
    earlier one are those of the first race of the launch; ``count`` tells how many accesses raced.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        byte: int = 0,
        invocations: tuple[int, ...] = (),
        program: tuple[int, ...] = (),
        file: str = "",
        line: int = 0,
        other_file: str = "",
        other_line: int = 0,
        count: int = 0,
    ) -> None:
        super().__init__(message)
        self.kernel, self.byte, self.invocations, self.program = kernel, byte, invocations, program
        self.file, self.line, self.other_file, self.other_line = file, line, other_file, other_line
        self.count = count


class LoopLimitExceeded(RuntimeError):
    """The driver ended a loop of the kernel too early: what the launch wrote is wrong."""


class ValidationError(RuntimeError):
    """What the Khronos validation layer reported under TRITON_SPIRV_VALIDATE=1."""
