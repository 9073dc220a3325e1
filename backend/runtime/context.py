"""An open device: its native launch object, its memory, and the kernels that it holds."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .. import settings
from ..capabilities import Capabilities
from .cuda import CudaSharing
from .cuda.current_gpu import FollowedGpu, works_on_cuda
from .device_choice import choose, is_chosen, open_device, select
from .device_choice import devices as all_devices
from .device_kind import DeviceInfo
from .ending import ENDING
from .errors import DeviceUnavailable, ValidationError
from .memory.allocator import DeviceAllocator
from .memory.host_memory import BufferPool, Loan
from .native_module import native
from .once import once_a_process

#: What a device is called as the place of a tensor; ``spirv:<index>`` is devices()[index].
NAME = "spirv"


class Context:
    """A device that is open. ``opened`` is what its kind opened (device_kind.py), ``native`` its _native.Device,
    ``native_module`` the C++ module; ``host_memory`` one of ZERO_COPY, IMPORTED and STAGED; ``index`` its number in
    devices(), that of ``spirv:<index>``; ``memory`` allocates device memory for tensors, and ``staying_memory`` what
    lies apart from them because it stays.

    TRITON_SPIRV_HOST_MEMORY asks for another way than the best that the device has.
    """

    def __init__(self, device: DeviceInfo, failed: bool = False) -> None:
        """``failed``: an earlier context of it, which was left."""
        self.index = devices().index(device)
        if device.capabilities is None:
            raise DeviceUnavailable(f"{device.describe()} cannot run Triton kernels")
        self.native_module = native()
        self.native_module.when_failed(_leave_failed)
        self.opened = open_device(device, failed)
        self.native = self.opened.native
        self.device = self.opened.info
        self.capabilities: Capabilities = device.capabilities
        self.host_memory = self.opened.host_memory
        #: Whether CUDA's memory and semaphores can be shared.
        self.shares_memory = self.opened.shares_memory
        #: Whether a validation layer is on.
        self.validates = self.opened.validates
        self.pid = os.getpid()
        #: The thread that got the error, where the device failed.
        self.left_by: int | None = None
        self._cuda: CudaSharing | None = None
        self._kernels: dict[int, Any] = {}
        #: Kernels that were removed, and are still needed by launches or graphs.
        self._removed: set[Any] = set()
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        #: Launchers whose kernels ran since their reports were last read (reports.launchers.raise_reports).
        self.unread_reports: set[Any] = set()
        # A kernel may be collected, and so removed, while this thread has it.
        self._lock = threading.RLock()
        self._uses = 0
        self._closed = False
        self._returned = True
        self.memory = DeviceAllocator(self.native.allocate_device, self.native)
        self.staying_memory = DeviceAllocator(self.native.allocate_device, self.native)
        self.device_pool = BufferPool(self.native.allocate_device)
        self.staging_pool = BufferPool(self.native.allocate_staging)
        self.raise_validation_errors()

    def cuda(self) -> CudaSharing:
        """The sharing with CUDA of this device. Raises NotShareable if CUDA's memory cannot be used."""
        if self._cuda is None:
            with self._lock:
                self._cuda = self._cuda or CudaSharing(self)
        return self._cuda

    def check_usable(self) -> None:
        """Raise RuntimeError in a forked child, or once the context is closed."""
        self.native.check_usable()

    def raise_validation_errors(self) -> None:
        """Raise ValidationError with what the validation layer reported since the last call, if anything."""
        messages = self.opened.messages()
        if messages:
            raise ValidationError("the Vulkan validation layer reported:\n" + "\n".join(messages))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Around calls of the driver other than ``native``'s, and uses of mapped memory: close() waits for the end of
        the block. Raises as check_usable()."""
        with self._lock:
            self._uses += 1
        try:
            self.check_usable()
            yield
        finally:
            with self._lock:
                self._uses -= 1

    def add_kernel(self, handle: int, kernel: Any) -> None:
        """Own ``kernel`` (with ``destroy()``), known by its handle, until it is removed or the context closes."""
        with self._lock:
            self._kernels[handle] = kernel

    def remove_kernel(self, handle: int) -> None:
        """Destroy the kernel once its launches are done and no graph has it; nothing happens where it is gone
        already."""
        if self.pid != os.getpid():  # where another thread may have had the lock when the process was forked
            return
        with self._lock:
            kernel = self._kernels.pop(handle, None)
            if kernel is None:
                return
            self._removed.add(kernel)
            needed = Loan()
            needed.add(partial(self._destroy, kernel))
            for graph in self._graphs:
                if graph.has_kernel(handle):
                    graph.keep(needed)
            self.native.keep(needed)

    def _destroy(self, kernel: Any) -> None:
        if self.pid != os.getpid():
            return
        with self._lock:
            if kernel in self._removed:
                self._removed.remove(kernel)
                kernel.destroy()

    def add_graph(self, graph: Any) -> None:
        """Ask ``graph`` (``has_kernel()``, ``keep()``) from now on whether it needs a kernel that is removed."""
        with self._lock:
            self._graphs.add(graph)

    def end_loan(self, loan: Loan, since: int, *used: Any) -> None:
        """After a launch that failed: the loan ends, and ``used`` is released, once all is done that was submitted
        since submission ``since``, which the launch may be among."""
        if not self.native.keep((loan, *used), since):
            loan.end()

    def close(self) -> bool:
        """Wait for all work and destroy everything. Other threads' launches are refused from then on. A forked child
        leaves its parent's objects alone. If a signal's handler raises meanwhile, nothing is destroyed.

        False if another thread may still be in a call of the driver. If the driver's queue compiles what nobody waits
        for, no work is waited for, and later launches are not refused.
        """
        if self._closed or self.pid != os.getpid():
            return self._returned
        opened = self.opened
        if opened.waits_for_compiler():
            self._closed, self._returned = True, False
            return False
        if not self.native.stop():  # a kernel never ended: nothing can be destroyed under it
            self._closed = True
            self._returned = self.native.calls_returned() and not self._uses and not opened.compiles()
            return self._returned
        while self._uses:
            time.sleep(0.001)
        closed = self.native.close()
        self._closed = True
        if not closed or opened.compiles():  # a call does not return, or the driver goes on compiling
            self._returned = False
            return False
        if self._cuda is not None:
            self._cuda.close()
        self.memory.close()
        self.staying_memory.close()
        self.device_pool.clear()
        self.staging_pool.clear()
        with self._lock:
            kernels = [*self._kernels.values(), *self._removed]
            self._kernels.clear()
            self._removed.clear()
        for kernel in kernels:
            kernel.destroy()
        opened.close()
        return True


_contexts: dict[int, Context] = {}
#: Contexts whose devices failed: a kernel may run on there, and tensors still have their memory.
_left: list[Context] = []
_lock = threading.RLock()

_when_left: list[Callable[[list[Context]], None]] = []


def when_left(call: Callable[[list[Context]], None]) -> None:
    """Call ``call`` from now on with contexts that are given up because their devices failed, so that owners of kernels
    there load them again."""
    _when_left.append(call)


def _leave_failed() -> None:
    """Where a device was lost, or a kernel on it did not end in time, the next use opens the device again."""
    with _lock:
        failed = [context for context in _contexts.values() if context.native.failed and context.pid == os.getpid()]
        for context in failed:
            del _contexts[context.index]
            _left.append(context)
            context.left_by = threading.get_ident()
            context.native.leave()
    if failed:
        for call in _when_left:
            call(failed)


@once_a_process
def devices() -> tuple[DeviceInfo, ...]:
    """The devices of this process, the one that it uses by itself first: all that there are, best first, or the one
    that TRITON_SPIRV_DEVICE or LOCAL_RANK chooses. ``spirv:<index>`` counts these. LOCAL_RANK hides none from a program
    that works on CUDA tensors: torch.cuda's current device chooses there.

    Raises DeviceUnavailable, and ValueError on a wrong LOCAL_RANK.
    """
    hides = is_chosen() and (settings.DEVICE.get() or not works_on_cuda(NAME))
    return (choose(all_devices())[0],) if hides else all_devices()


def device_count() -> int:
    """How many of devices() a program spreads its work over: the GPUs, which are the first of them, or all where there
    is no GPU. Those behind them have an index, too. Raises as devices()."""
    seen = devices()
    return sum(device.is_gpu and not device.lacks for device in seen) or len(seen)


class _Chosen(threading.local):
    index: int | None = None


_chosen = _Chosen()
_followed = FollowedGpu(NAME, lambda: [device.uuid for device in devices()])


@once_a_process
def _first() -> int:
    """The device of threads that have chosen none. Raises DeviceUnavailable."""
    seen = devices()
    index = seen.index(choose(all_devices())[0]) if len(seen) > 1 else 0
    _check(index)
    return index


def current_device() -> int:
    """Index into devices() of the device that this thread's launches go to: the one that it has chosen, torch.cuda's
    current one where the program works on CUDA tensors, or else the first.

    Raises DeviceUnavailable.
    """
    known = known_device()
    return _first() if known is None else known


def known_device() -> int | None:
    """What current_device() gives, if no device need be looked for."""
    if _chosen.index is not None:
        return _chosen.index
    followed = _followed.index()
    return _first.found() if followed is None else followed


def index_of_cuda(ordinal: int | None) -> int | None:
    """Index into devices() of a GPU by torch.cuda's number, its current one for None. None where a program does not
    work on CUDA tensors, and for a GPU that is none of the devices."""
    return _followed.index(ordinal)


def set_current_device(index: int) -> None:
    """Launch on another device from now on, in this thread; where the program works on CUDA tensors, it is torch.cuda's
    current one, too. Raises DeviceUnavailable if it is not there or not usable."""
    _check(index)
    _chosen.index = None if _followed.choose(index) else index


@contextmanager
def on_device(index: int) -> Iterator[None]:
    """Make a device the current one of this thread for the block. Raises as set_current_device()."""
    chosen, before = _chosen.index, current_device()
    set_current_device(index)
    try:
        yield
    finally:
        _followed.choose(before)
        _chosen.index = chosen


def _check(index: int) -> None:
    seen = devices()
    if not seen:
        select(seen)
    if not 0 <= index < len(seen):
        listing = "; ".join(f"{NAME}:{number} is {device.describe()}" for number, device in enumerate(seen))
        alone = f", chosen by {choose(all_devices())[1]}" if is_chosen() else ""
        raise DeviceUnavailable(f"there is no device '{NAME}:{index}': {listing}{alone}")
    select(seen, str(index))


def current() -> Context:
    """The context of the current device, opened on first use. Raises DeviceUnavailable.

    In a child forked after it was opened every use of it raises RuntimeError.
    """
    return of_device(current_device())


def of_device(index: int) -> Context:
    """The context of the device of that number in devices(), opened on first use. Raises DeviceUnavailable, and
    RuntimeError where the process is ending."""
    context = _contexts.get(index)
    if context is None:
        with ENDING.awaited(), _lock:
            context = _contexts.get(index)
            if context is None:
                _check(index)
                failed = any(one.index == index and one.pid == os.getpid() for one in _left)
                context = _contexts[index] = Context(devices()[index], failed)
                _close_at_end()  # before torch forgets the device's operations
    return context


def opened() -> tuple[Context, ...]:
    """The contexts that this process has opened."""
    return tuple(_contexts.values())


def _close_all() -> None:
    returned = False
    try:
        returned = ENDING.begin()
        for context in (*_contexts.values(), *_left):
            returned &= context.close()
    except BaseException:  # such as Ctrl-C, which ends the wait: finalizers of others follow
        sys.excepthook(*sys.exc_info())
    finally:
        if not returned:
            native().end_without_exit_handlers()


def _close_at_end() -> None:
    """A process's finalizers run where the first of them is among the exit handlers, as torch's import has some: behind
    handlers that a program registers later, which may use devices. The last one made is the first that runs."""
    weakref.finalize(ENDING, _close_all)


_close_at_end()
