"""Launching a kernel: the argument plan, and the way that each argument takes to the device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from .. import settings
from ..abi.launch import FIRST_ARGUMENT, LaunchArgument
from .context import IMPORTED, STAGED, Context, native
from .errors import NotShareable
from .graph import capturing
from .memory import CLAIMS, PLACEMENT, HostRange, Loan, find, merge, storage_of

#: (path of the argument in the call's arguments, its name, its Triton type).
Entry = tuple[tuple[int, ...], str, str]

#: Places of pointer arguments that are passed by address.
_METADATA_AND_HOOKS = (LaunchArgument.LAUNCH_METADATA, LaunchArgument.ENTER_HOOK, LaunchArgument.EXIT_HOOK)
_IN_PLACE = ("address", "device", "shared")


def make_launcher(
    context: Context, name: str, entries: Sequence[Entry], indirect: bool, written: Collection[str] | None = None
) -> Callable[..., None]:
    """A callable ``(grid_x, grid_y, grid_z, stream, function, kernel_metadata, launch_metadata, enter_hook,
    exit_hook, *arguments)`` that runs the kernel. It returns once the kernel is submitted where tensors are passed and
    all of them are in device memory, otherwise when it is done. Its ``transfers`` tells which way each pointer argument
    of the last launch went; where there is launch metadata (a launch hook is installed), it has the same under
    "transfers".

    ``entries``: the passed arguments in declaration order. ``indirect``: the block goes into a buffer.
    ``written``: names of the pointer arguments that the kernel may write; None: any.
    Raises ValueError on a type that cannot be passed, or a block that is too long.
    """
    plan = native().ArgumentPlan([(list(path), argument, type_) for path, argument, type_ in entries])
    options = {
        "device": context.native,
        "plan": plan,
        "name": name,
        "indirect": indirect,
        "device_index": context.index,
    }
    copying = CopyingLauncher(context, name, native().Launcher(**options), plan, written)
    launcher = native().Launcher(**options, copying=copying)
    return ValidatingLauncher(context, launcher) if context.validates else launcher


class ValidatingLauncher:
    """Launches and raises what the validation layer reported."""

    def __init__(self, context: Context, launcher: Any) -> None:
        self._context = context
        self._launcher = launcher

    def __call__(self, *args: Any) -> None:
        """As make_launcher's. Raises ValidationError."""
        self._launcher(*args)
        self._context.raise_validation_errors()

    @property
    def transfers(self) -> dict[str, str]:
        """Which way each pointer argument of the last launch went."""
        return self._launcher.transfers  # type: ignore[no-any-return]


class CopyingLauncher:
    """Launches where some tensor is in memory that the device cannot reach in place: those are copied or imported."""

    def __init__(self, context: Context, name: str, launcher: Any, plan: Any, written: Collection[str] | None) -> None:
        self.transfers: dict[str, str] = {}
        self._context = context
        self._name = name
        self._launcher = launcher
        self._plan = plan
        self._names: list[str] = plan.pointer_names
        self._written = None if written is None else frozenset(written)
        self._device_pool, self._staging_pool = context.device_pool, context.staging_pool

    def __call__(self, *args: Any) -> None:
        """As make_launcher's. Raises what the native launcher raises, and ValidationError."""
        launch_metadata, enter, leave = (args[place] for place in _METADATA_AND_HOOKS)
        arguments = self._plan.pointers(args[FIRST_ARGUMENT:], self._context.index)
        if capturing(self._context) is not None:
            self._refuse_capture(arguments)
        transfers: dict[str, str] = {}
        if launch_metadata is not None and hasattr(launch_metadata, "data"):
            launch_metadata.data["transfers"] = transfers
        if enter is not None:
            enter(launch_metadata)
        if all(args[:3]):
            self._run(args, arguments, transfers)
        self.transfers = transfers
        if leave is not None:
            leave(launch_metadata)

    def _refuse_capture(self, arguments: list[tuple[Any, int, str]]) -> None:
        names = [
            repr(name) for name, argument in zip(self._names, arguments, strict=True) if self._span(name, *argument)
        ]
        if names:
            raise RuntimeError(
                f"kernel '{self._name}': a graph cannot capture a launch with argument "
                f"{', '.join(names)}, whose memory is copied or shared at every launch; pass a tensor "
                "on the Vulkan device"
            )

    def _run(self, args: tuple[Any, ...], arguments: list[tuple[Any, int, str]], transfers: dict[str, str]) -> None:
        if any(place == "cuda" and address for _, address, place in arguments):
            self._run_with_cuda(args, arguments, transfers)
        else:
            self._run_with_host(args, arguments, transfers)

    def _run_with_cuda(
        self, args: tuple[Any, ...], arguments: list[tuple[Any, int, str]], transfers: dict[str, str]
    ) -> None:
        import torch

        if settings.CUDA.get() == STAGED:
            self._run_with_mirrors(args, arguments, transfers)
            return
        sharing = self._context.cuda()
        resolved = []
        device = 0
        for name, (argument, address, place) in zip(self._names, arguments, strict=True):
            if place == "cuda" and address:
                device = argument.device.index
                try:
                    address = sharing.address(argument, address)
                except NotShareable as error:
                    raise NotShareable(f"kernel '{self._name}', argument '{name}': {error}") from None
            resolved.append((argument, address, "shared" if place == "cuda" else place))
        stream = torch.cuda.current_stream(device)
        if any(place == "host" for _, _, place in resolved):
            stream.synchronize()
            self._run_with_host(args, resolved, transfers)
            return
        transfers.update((name, place) for name, (_, _, place) in zip(self._names, resolved, strict=True))
        pointers = [address for _, address, _ in resolved]
        incoming, value = sharing.signal(stream.cuda_stream)
        since = self._context.native.submitted
        try:
            submission = self._launcher.addressed(*args, pointers=pointers, incoming=incoming, value=value)
            if submission:
                sharing.wait(stream.cuda_stream, submission)
        except BaseException:
            self._context.native.keep(args, since)
            raise
        self._context.raise_validation_errors()

    def _run_with_mirrors(
        self, args: tuple[Any, ...], arguments: list[tuple[Any, int, str]], transfers: dict[str, str]
    ) -> None:
        """Copies the storage of each CUDA tensor to host memory, launches with that, and copies back."""
        import torch

        mirrors: dict[int, tuple[Any, Any, bool]] = {}
        resolved = []
        for name, (argument, address, place) in zip(self._names, arguments, strict=True):
            if place == "cuda" and address:
                storage = argument.untyped_storage()
                original = argument.new_empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
                start = storage.data_ptr()
                written = self._written is None or name in self._written
                _, mirror, was_written = mirrors.get(start) or (original, original.cpu(), False)
                mirrors[start] = original, mirror, written or was_written
                argument, address, place = mirror, address - start + mirror.data_ptr(), "host"
            resolved.append((argument, address, place))
        self._run_with_host(args, resolved, transfers)
        for original, mirror, written in mirrors.values():
            if written:
                original.copy_(mirror)

    def _run_with_host(
        self, args: tuple[Any, ...], arguments: list[tuple[Any, int, str]], transfers: dict[str, str]
    ) -> None:
        loan, since = Loan(), self._context.native.submitted
        try:
            pointers, copies = self._place(arguments, transfers, loan)
            with CLAIMS.claim([HostRange(start, start + size, written) for start, size, *_, written in copies]):
                self._launcher.staged(*args, pointers=pointers, copies=copies)
        except BaseException:
            self._context.end_loan(loan, since, args, arguments)
            raise
        loan.end()
        self._context.raise_validation_errors()

    def _place(
        self, arguments: list[tuple[Any, int, str]], transfers: dict[str, str], loan: Loan
    ) -> tuple[list[int], list[tuple[int, int, Any, Any, int, bool]]]:
        """(device addresses, copies) for the native launcher. Imports, and the buffers of copies, go into the loan."""
        spans = merge(
            span for name, argument in zip(self._names, arguments, strict=True) if (span := self._span(name, *argument))
        )
        bases: list[int] = []
        copies: list[tuple[int, int, Any, Any, int, bool]] = []
        ways: list[str] = []
        for span in spans:
            base = self._import(span, loan) if self._context.host_memory == IMPORTED else None
            ways.append(STAGED if base is None else IMPORTED)
            if base is None:
                copies.append(self._stage(span, loan))
                base = copies[-1][3].address + copies[-1][4]
            bases.append(base)
        pointers = []
        for name, (_, address, place) in zip(self._names, arguments, strict=True):
            index = None if place in _IN_PLACE or address == 0 else find(spans, address)
            if index is None:  # in device memory, or a tensor without elements
                pointers.append(address if place in _IN_PLACE else 0)
                transfers[name] = place if place in _IN_PLACE else "empty"
            else:
                pointers.append(bases[index] + address - spans[index].start)
                transfers[name] = ways[index]
        return pointers, copies

    def _span(self, name: str, argument: Any, address: int, place: str) -> HostRange | None:
        """The memory that an argument is in; None where the device has it in place, or there is none."""
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

    def _stage(self, span: HostRange, loan: Loan) -> tuple[int, int, Any, Any, int, bool]:
        # The device's copy keeps the host address modulo PLACEMENT, whatever the buffer's own address is.
        device = loan.take(self._device_pool, span.bytes + PLACEMENT)
        offset = (span.start - device.address) % PLACEMENT
        return span.start, span.bytes, loan.take(self._staging_pool, span.bytes), device, offset, span.written

    def _import(self, span: HostRange, loan: Loan) -> int | None:
        """The device address of the span's start; None where the driver does not take the memory."""
        alignment = self._context.device.host_import_alignment
        start = span.start // alignment * alignment
        end = -(-span.end // alignment) * alignment
        try:
            buffer = self._context.native.import_host(start, end - start)
        except native().VulkanError:
            return None
        loan.add(buffer.free)
        return int(buffer.address) + span.start - start
