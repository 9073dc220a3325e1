"""An open Vulkan device: its queue, its native launch object, and the kernels that it holds."""

from __future__ import annotations

import atexit
import hashlib
import mmap
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .. import settings
from ..capabilities import Capabilities
from ..settings import IMPORTED, STAGED, ZERO_COPY
from .cuda import CudaSharing
from .errors import ValidationError, VulkanUnavailable
from .memory.allocator import DeviceAllocator
from .memory.host_memory import BufferPool, Loan
from .native_module import native
from .once import once_a_process
from .vulkan.compilations import Compilations
from .vulkan.device_choice import choose, is_chosen, select
from .vulkan.device_features import SHARING_EXTENSIONS
from .vulkan.devices import DeviceInfo, again, compute_queue_family
from .vulkan.devices import devices as all_devices
from .vulkan.ending import ENDING
from .vulkan.loader import handle, instance, vulkan
from .vulkan.logical_device import create_device, create_pipeline_layout
from .vulkan.pipeline_cache import folder

#: What a device is called as the place of a tensor; ``spirv:<index>`` is devices()[index].
NAME = "spirv"

_FOREVER = 2**64 - 1


def _timeout_ns() -> int:
    seconds = settings.TIMEOUT.get()
    return _FOREVER if seconds is None else int(seconds * 1e9)


class Context:
    """A VkDevice with one compute queue. ``native`` is its _native.Device, ``native_module`` the C++ module;
    ``host_memory`` one of
    ZERO_COPY, IMPORTED and STAGED;
    ``index`` its number in devices(), that of ``spirv:<index>``; ``memory`` allocates device memory.

    TRITON_SPIRV_HOST_MEMORY asks for another way than the best that the device has.
    """

    def __init__(self, device: DeviceInfo, failed: bool = False) -> None:
        """``failed``: an earlier context of it, which was left."""
        self.index = devices().index(device)
        self._instance, device = again(device) if failed else (instance(), device)
        if device.capabilities is None:
            raise VulkanUnavailable(f"{device.describe()} cannot run Triton kernels")
        self.device = device
        self.capabilities: Capabilities = device.capabilities
        self.pid = os.getpid()
        #: The thread that got the error, where the device failed.
        self.left_by: int | None = None
        #: Whether CUDA's memory and semaphores can be shared: its driver is the device's, too.
        self.shares_memory = device.driver == "nvidia_proprietary" and device.extensions.issuperset(SHARING_EXTENSIONS)
        self.native_module = native()
        self._messenger = None
        if self._instance.validation:
            self._messenger = self.native_module.Messenger(handle(self._instance.handle))
        self._cuda: CudaSharing | None = None
        self._kernels: dict[int, Any] = {}
        #: Kernels that were removed, and are still needed by launches or graphs.
        self._removed: set[Any] = set()
        self.compilations = Compilations()
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        #: Launchers whose kernels ran since their reports were last read (reports.launchers.raise_reports).
        self.unread_reports: set[Any] = set()
        # A kernel may be collected, and so removed, while this thread has it.
        self._lock = threading.RLock()
        self._uses = 0
        self._returned = True
        vk = vulkan()
        family = compute_queue_family(device)
        self.handle = create_device(device, family)
        queue = vk.ffi.new("VkQueue*")
        vk.lib.vkGetDeviceQueue(self.handle, family, 0, queue)
        self.pipeline_layout = create_pipeline_layout(self.handle, self.capabilities)
        key = hashlib.sha256(f"{device.driver_version}".encode()).hexdigest()[:8]
        #: The folder of what the driver compiled for this device.
        self.kept_pipelines = folder() / f"{device.driver}-{device.uuid}-{key}"
        self.native_module.when_failed(_leave_failed)
        self.native = self.native_module.Device(
            instance=handle(self._instance.handle),
            physical_device=handle(device.handle),
            device=handle(self.handle),
            queue=handle(queue[0]),
            queue_family=family,
            pipeline_layout=handle(self.pipeline_layout),
            host_addresses=False,
            shares_semaphores=self.shares_memory,
            timeout_ns=_timeout_ns(),
        )
        self.memory = DeviceAllocator(self.native.allocate_device)
        self.device_pool = BufferPool(self.native.allocate_device)
        self.staging_pool = BufferPool(self.native.allocate_staging)
        self.host_memory = self._choose_host_memory()
        self.native.set_host_addresses(self.host_memory == ZERO_COPY)
        self.raise_validation_errors()

    def _choose_host_memory(self) -> str:
        best = ZERO_COPY if self._host_addresses_are_device_addresses() else STAGED
        wanted = settings.HOST_MEMORY.get() or best
        if wanted == ZERO_COPY != best:
            raise ValueError(
                f"TRITON_SPIRV_HOST_MEMORY={wanted!r}: host addresses are not device addresses on {self.device.name}"
            )
        if wanted == IMPORTED and not self.device.host_import_alignment:
            raise ValueError(
                f"TRITON_SPIRV_HOST_MEMORY={wanted!r}: {self.device.name} lacks VK_EXT_external_memory_host"
            )
        return wanted

    def _host_addresses_are_device_addresses(self) -> bool:
        """Whether a page, imported, has its host address: then the driver runs in this process's address space."""
        alignment = self.device.host_import_alignment
        if self.device.kind != "cpu" or not alignment:
            return False
        with mmap.mmap(-1, 2 * max(alignment, mmap.PAGESIZE)) as page:
            view = vulkan().ffi.from_buffer(page)
            start = -(-int(vulkan().ffi.cast("uintptr_t", view)) // alignment) * alignment
            try:
                imported = self.native.import_host(start, alignment)
            except self.native_module.VulkanError:
                return False
            finally:
                del view
            same = imported.address == start
            imported.free()
        return same

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
        messages = self._messenger.take() if self._messenger is not None else ()
        if messages:
            raise ValidationError("the Vulkan validation layer reported:\n" + "\n".join(messages))

    @property
    def validates(self) -> bool:
        """Whether the validation layer is on."""
        return self._messenger is not None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Around Vulkan calls other than ``native``'s, and uses of mapped memory: close() waits for the block's end.
        Raises as check_usable()."""
        with self._lock:
            self._uses += 1
        try:
            self.check_usable()
            yield
        finally:
            with self._lock:
                self._uses -= 1

    def add_kernel(self, pipeline: int, kernel: Any) -> None:
        """Own ``kernel`` (with ``destroy()``), known by its VkPipeline, until it is removed or the context closes."""
        with self._lock:
            self._kernels[pipeline] = kernel

    def remove_kernel(self, pipeline: int) -> None:
        """Destroy the kernel once its launches are done and no graph has it; nothing happens where it is gone
        already."""
        if self.pid != os.getpid():  # where another thread may have had the lock when the process was forked
            return
        with self._lock:
            kernel = self._kernels.pop(pipeline, None)
            if kernel is None:
                return
            self._removed.add(kernel)
            needed = Loan()
            needed.add(partial(self._destroy, kernel))
            for graph in self._graphs:
                if graph.has_kernel(pipeline):
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
        if self.handle is None or self.pid != os.getpid():
            return self._returned
        vk = vulkan()
        if self.capabilities.traits.compiles_late and self.compilations.go_on:  # which the last work would wait for
            self.handle, self._returned = None, False
            return False
        if not self.native.stop():  # a kernel never ended: nothing can be destroyed under it
            self.handle = None
            self._returned = self.native.calls_returned() and not self._uses and self.compilations.left() is not None
            return self._returned
        while self._uses:
            time.sleep(0.001)
        left = self.compilations.left() if self.native.close() else None
        if left is None:  # the driver still compiles what nobody waits for, or a call does not return
            self.handle = None
            self._returned = False
            return False
        self.memory.close()
        self.device_pool.clear()
        self.staging_pool.clear()
        with self._lock:
            kernels = [*self._kernels.values(), *self._removed]
            self._kernels.clear()
            self._removed.clear()
        for kernel in kernels:
            kernel.destroy()
        for module, pipeline in left:
            vk.lib.vkDestroyPipeline(self.handle, pipeline, vk.ffi.NULL)
            vk.lib.vkDestroyShaderModule(self.handle, module, vk.ffi.NULL)
        vk.lib.vkDestroyPipelineLayout(self.handle, self.pipeline_layout, vk.ffi.NULL)
        vk.lib.vkDestroyDevice(self.handle, vk.ffi.NULL)
        self.handle = None
        if self._messenger is not None:
            self._messenger.close()
        return True


_contexts: dict[int, Context] = {}
#: Contexts whose devices failed: a kernel may run on there, and tensors still have their memory.
_left: list[Context] = []
_lock = threading.RLock()

#: Called with the contexts that are given up, so that owners of kernels there load them again.
WHEN_LEFT: list[Callable[[list[Context]], None]] = []


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
        for call in WHEN_LEFT:
            call(failed)


@once_a_process
def devices() -> tuple[DeviceInfo, ...]:
    """The devices of this process, the one that it uses by itself first: all that there are, best first, or the one
    that TRITON_SPIRV_DEVICE or LOCAL_RANK chooses. ``spirv:<index>`` counts these.

    Raises VulkanUnavailable, and ValueError on a wrong LOCAL_RANK.
    """
    return (choose(all_devices())[0],) if is_chosen() else all_devices()


class _Chosen(threading.local):
    index: int | None = None


_chosen = _Chosen()


def current_device() -> int:
    """Index into devices() of the device that this thread's launches go to: 0 where it has chosen none.

    Raises VulkanUnavailable.
    """
    if _chosen.index is None:
        set_current_device(0)
        return 0
    return _chosen.index


def chosen_device() -> int | None:
    """What current_device() gives, if this thread has asked for it yet."""
    return _chosen.index


def set_current_device(index: int) -> None:
    """Launch on another device from now on, in this thread. Raises VulkanUnavailable if it is not there or not
    usable."""
    _check(index)
    _chosen.index = index


@contextmanager
def on_device(index: int) -> Iterator[None]:
    """Make a device the current one of this thread for the block. Raises as set_current_device()."""
    before = current_device()
    set_current_device(index)
    try:
        yield
    finally:
        _chosen.index = before


def _check(index: int) -> None:
    seen = devices()
    if not seen:
        select(seen)
    if not 0 <= index < len(seen):
        listing = "; ".join(f"{NAME}:{number} is {device.describe()}" for number, device in enumerate(seen))
        alone = f", chosen by {choose(all_devices())[1]}" if is_chosen() else ""
        raise VulkanUnavailable(f"there is no device '{NAME}:{index}': {listing}{alone}")
    select(seen, str(index))


def current() -> Context:
    """The context of the current device, opened on first use. Raises VulkanUnavailable.

    In a child forked after it was opened every use of it raises RuntimeError.
    """
    return of_device(current_device())


def of_device(index: int) -> Context:
    """The context of the device of that number in devices(), opened on first use. Raises VulkanUnavailable, and
    RuntimeError where the process is ending."""
    context = _contexts.get(index)
    if context is None:
        with ENDING.awaited(), _lock:
            context = _contexts.get(index)
            if context is None:
                _check(index)
                failed = any(one.index == index and one.pid == os.getpid() for one in _left)
                context = _contexts[index] = Context(devices()[index], failed)
    return context


def opened() -> tuple[Context, ...]:
    """The contexts that this process has opened."""
    return tuple(_contexts.values())


@atexit.register
def _close_all() -> None:
    returned = False
    try:
        returned = ENDING.begin()
        for context in (*_contexts.values(), *_left):
            returned &= context.close()
    finally:
        if not returned:
            native().end_without_exit_handlers()
