"""Addresses for pointer arguments whose memory the device does not reach in place: it is copied, imported or shared.

native/launcher.cpp packs a launch's arguments. If one of them needs it, it asks the kernel's ``Resolver`` for the
addresses, runs the kernel on them, with the resolution's copies before and after it, and ends the resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from ... import settings
from ...settings import IMPORTED, STAGED
from ..context import Context
from ..cuda.cuda_pointers import CudaMemory, with_device
from ..errors import NotShareable
from ..memory.host_memory import CLAIMS, PLACEMENT, HostRange, Loan, find, merge, storage_of, tensor_of
from ..native_module import native

#: A pointer argument: the object, the address that it tells, and its place (abi/launch_arguments.py), or "shared".
Pointer = tuple[Any, int, str]
#: (host address, bytes, staging buffer, device buffer, offset in that, whether it is copied back).
Copy = tuple[int, int, Any, Any, int, bool]

#: Places of pointer arguments that are passed by address.
_IN_PLACE = ("address", "device", "shared")


class HostResolution:
    """Host memory that a launch copies or imports. ``addresses``: of the pointer arguments, in order. The launch waits
    for its end, because ``incoming`` is None.

    ``used``: what is kept alive until the device is done with it, should the launch fail.
    """

    incoming: tuple[int, int] | None = None

    def __init__(self, context: Context, *used: Any) -> None:
        self.addresses: list[int] = []
        self.copies: list[Copy] = []
        self.loan = Loan()
        self.claims = ExitStack()
        #: Called after the launch, should it succeed.
        self.then: list[Callable[[], None]] = []
        self._context, self._used, self._since = context, used, context.native.submitted

    def end(self, submission: int) -> None:
        """The launch succeeded. Raises ValidationError."""
        self.claims.close()
        self.loan.end()
        self._context.raise_validation_errors()
        for call in self.then:
            call()

    def fail(self) -> None:
        """The launch failed; the device may still be at work."""
        self.claims.close()
        self._context.end_loan(self.loan, self._since, *self._used)


class SharedResolution:
    """CUDA memory that a launch uses in place, after what CUDA's ``stream`` has to do, and before what follows there.
    ``incoming``: the number of CUDA's semaphore and the value to wait for."""

    copies: Sequence[Copy] = ()

    def __init__(self, context: Context, stream: int, addresses: list[int], used: Any) -> None:
        self.addresses = addresses
        self._context, self._stream, self._used = context, stream, used
        self.incoming: tuple[int, int] | None = context.cuda().signal(stream)
        self._since = context.native.submitted

    def end(self, submission: int) -> None:
        """The launch was submitted; 0: it was not, because a graph was recorded. Raises ValidationError."""
        if submission:
            try:
                self._context.cuda().wait(self._stream, submission)
            except BaseException:
                self.fail()
                raise
        self._context.raise_validation_errors()

    def fail(self) -> None:
        """The launch failed; the device may still be at work."""
        self._context.native.keep(self._used, self._since)


class Resolver:
    """For the launches of one kernel. ``names``: of its pointer arguments; ``written``: of those that it may write;
    None: any."""

    def __init__(self, context: Context, name: str, names: Sequence[str], written: Collection[str] | None) -> None:
        self._context = context
        self._name = name
        self._names = names
        self._written = None if written is None else frozenset(written)

    def refuse_capture(self, pointers: Sequence[Pointer]) -> None:
        """Raises RuntimeError if memory would be copied: a graph cannot do that."""
        names = [repr(name) for name, pointer in zip(self._names, pointers, strict=True) if self._range(name, *pointer)]
        if names:
            raise RuntimeError(
                f"kernel '{self._name}': a graph cannot capture a launch with argument "
                f"{', '.join(names)}, whose memory is copied or shared at every launch; pass a tensor "
                "on the device"
            )

    def resolve(
        self, args: tuple[Any, ...], pointers: list[Pointer], transfers: dict[str, str]
    ) -> HostResolution | SharedResolution:
        """Addresses for the pointers of a launch with ``args``. ``transfers`` gets the way of each, by name.

        Raises TypeError, ValueError and NotShareable, which name the argument.
        """
        pointers = [with_device(*pointer) for pointer in pointers]
        if not any(place == "cuda" and address for _, address, place in pointers):
            return self._resolve_host(args, pointers, transfers)
        if settings.CUDA.get() == STAGED:
            return self._resolve_mirrors(args, pointers, transfers)
        return self._resolve_cuda(args, pointers, transfers)

    def _resolve_cuda(
        self, args: tuple[Any, ...], pointers: list[Pointer], transfers: dict[str, str]
    ) -> HostResolution | SharedResolution:
        import torch

        sharing = self._context.cuda()
        resolved = []
        device = 0
        for name, (argument, address, place) in zip(self._names, pointers, strict=True):
            if place == "cuda" and address:
                device = argument.device.index
                try:
                    address = sharing.address(argument, address)
                except (NotShareable, TypeError) as error:
                    raise type(error)(f"kernel '{self._name}', argument '{name}': {error}") from None
            resolved.append((argument, address, "shared" if place == "cuda" else place))
        stream = torch.cuda.current_stream(device)
        if any(place == "host" for _, _, place in resolved):
            stream.synchronize()
            return self._resolve_host(args, resolved, transfers)
        transfers.update((name, place) for name, (_, _, place) in zip(self._names, resolved, strict=True))
        return SharedResolution(self._context, stream.cuda_stream, [address for _, address, _ in resolved], args)

    def _resolve_mirrors(
        self, args: tuple[Any, ...], pointers: list[Pointer], transfers: dict[str, str]
    ) -> HostResolution:
        """Copies the storage of each CUDA tensor to host memory, for a launch with that, and back after it."""
        import torch

        mirrors: dict[int, tuple[Any, Any, bool]] = {}
        resolved = []
        for name, (argument, address, place) in zip(self._names, pointers, strict=True):
            if place == "cuda" and address:
                tensor = self._tensor(name, argument)
                storage = tensor.untyped_storage()
                original = tensor.new_empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
                start = storage.data_ptr()
                written = self._written is None or name in self._written
                _, mirror, was_written = mirrors.get(start) or (original, original.cpu(), False)
                mirrors[start] = original, mirror, written or was_written
                argument, address, place = mirror, address - start + mirror.data_ptr(), "host"
            resolved.append((argument, address, place))
        resolution = self._resolve_host(args, resolved, transfers)
        for original, mirror, written in mirrors.values():
            if written:
                resolution.then.append(partial(original.copy_, mirror))
        return resolution

    def _tensor(self, name: str, argument: Any) -> Any:
        """The torch tensor that an argument is, or that it wraps as triton.reinterpret's does."""
        argument = argument.argument if isinstance(argument, CudaMemory) else argument
        tensor = tensor_of(argument)
        if tensor is None:
            raise TypeError(
                f"kernel '{self._name}', argument '{name}': CUDA memory of a {type(argument).__name__} cannot be "
                "copied; pass a torch tensor"
            )
        return tensor

    def _resolve_host(
        self, args: tuple[Any, ...], pointers: list[Pointer], transfers: dict[str, str]
    ) -> HostResolution:
        resolution = HostResolution(self._context, args, pointers)
        try:
            self._place(pointers, transfers, resolution)
            copied = [HostRange(start, start + size, written) for start, size, *_, written in resolution.copies]
            resolution.claims.enter_context(CLAIMS.claim(copied))
        except BaseException:
            resolution.fail()
            raise
        return resolution

    def _place(self, pointers: list[Pointer], transfers: dict[str, str], resolution: HostResolution) -> None:
        """Gives the resolution its addresses and copies. Imports, and the buffers of copies, go into its loan."""
        found = [self._range(name, *pointer) for name, pointer in zip(self._names, pointers, strict=True)]
        ranges = merge(memory for memory in found if memory is not None)
        bases: list[int] = []
        ways: list[str] = []
        for memory in ranges:
            base = self._import(memory, resolution.loan) if self._context.host_memory == IMPORTED else None
            ways.append(STAGED if base is None else IMPORTED)
            if base is None:
                copy = self._stage(memory, resolution.loan)
                resolution.copies.append(copy)
                base = copy[3].address + copy[4]
            bases.append(base)
        for name, (_, address, place) in zip(self._names, pointers, strict=True):
            index = None if place in _IN_PLACE or address == 0 else find(ranges, address)
            if index is None:  # in device memory, or a tensor without elements
                resolution.addresses.append(address if place in _IN_PLACE else 0)
                transfers[name] = place if place in _IN_PLACE else "empty"
            else:
                resolution.addresses.append(bases[index] + address - ranges[index].start)
                transfers[name] = ways[index]

    def _range(self, name: str, argument: Any, address: int, place: str) -> HostRange | None:
        """The memory that an argument is in; None if the device has it in place, or there is none."""
        if place in _IN_PLACE or address == 0:
            return None
        try:
            start, size, writeable = storage_of(argument, address)
        except TypeError as error:
            raise TypeError(f"kernel '{self._name}', argument '{name}': {error}") from None
        if not size:
            return None
        written = self._written is None or name in self._written
        if written and not writeable and self._written is not None:
            raise ValueError(
                f"kernel '{self._name}', argument '{name}': the kernel writes it, but the array is "
                "read-only; pass a copy, numpy.array(values)"
            )
        return HostRange(start, start + size, writeable and written)

    def _stage(self, memory: HostRange, loan: Loan) -> Copy:
        # The device's copy keeps the host address modulo PLACEMENT, whatever the buffer's own address is.
        device = loan.take(self._context.device_pool, memory.bytes + PLACEMENT)
        offset = (memory.start - device.address) % PLACEMENT
        staging = loan.take(self._context.staging_pool, memory.bytes)
        return memory.start, memory.bytes, staging, device, offset, memory.written

    def _import(self, memory: HostRange, loan: Loan) -> int | None:
        """The device address of the range's start; None if the driver does not take the memory."""
        alignment = self._context.device.host_import_alignment
        start = memory.start // alignment * alignment
        end = -(-memory.end // alignment) * alignment
        try:
            buffer = self._context.native.import_host(start, end - start)
        except native().DeviceError:
            return None
        loan.add(buffer.free)
        return int(buffer.address) + memory.start - start
