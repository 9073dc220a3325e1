"""``torch.spirv``: what ``torch.cuda`` is for CUDA devices."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import torch

from ... import runtime
from ...runtime import DeviceInterface, DeviceUnavailable, Queue, device_index, selected
from . import torch_streams
from .as_cuda import as_cuda
from .cpu_fallback import FALLBACKS
from .cuda_names import CAPABILITY
from .random_state import GENERATOR, Generator, default_generator

#: Figures that Vulkan has no query for. Of the cache, as much as a larger integrated GPU has.
_ALWAYS_ESTIMATED, _L2_BYTES = ("shared_memory_per_multiprocessor", "L2_cache_size"), 4 << 20
#: Threads and registers of a multiprocessor of CAPABILITY (CUDA C++ Programming Guide, technical specifications per
#: compute capability), where nothing tells those of a compute unit.
_THREADS, _REGISTERS = 2048, 65536


class DeviceProperties(SimpleNamespace):
    """Figures of a device under the names that ``torch.cuda`` gives them; memory in bytes.

    ``kind``: discrete, integrated, virtual, cpu or other. ``driver``: its name and version.
    ``multi_processor_count``: the compute units. Threads and registers are those of a compute unit. ``estimated`` names
    the figures that nothing tells. ``shared_memory_per_block_optin`` is ``shared_memory_per_block``, and
    ``shared_memory_per_multiprocessor`` and ``L2_cache_size``, which Vulkan does not report, are estimates. ``major``
    and ``minor``: get_device_capability(). ``gcnArchName`` is the name, as where torch is built for CUDA.
    """


@cache
def _properties(index: int) -> DeviceProperties:
    device = runtime.devices()[index]
    known = device.capabilities
    if known is None:
        raise DeviceUnavailable(f"{device.describe()} cannot run Triton kernels")
    units = device.compute_units
    told = {
        "multi_processor_count": None if units.estimated else units.count,
        "max_threads_per_multi_processor": units.threads,
        "regs_per_multiprocessor": units.registers,
    }
    return DeviceProperties(
        name=device.name,
        kind=device.kind,
        driver=f"{device.driver} {device.driver_version}",
        total_memory=device.memory()[1],
        warp_size=known.subgroup_size,
        max_threads_per_block=known.max_workgroup_invocations,
        shared_memory_per_block=known.shared_bytes,
        shared_memory_per_block_optin=known.shared_bytes,
        shared_memory_per_multiprocessor=known.shared_bytes,
        L2_cache_size=_L2_BYTES,
        multi_processor_count=units.count_or_estimate,
        max_threads_per_multi_processor=units.threads or _THREADS,
        regs_per_multiprocessor=units.registers or _REGISTERS,
        uuid=UUID(device.uuid),
        estimated=(*(name for name, figure in told.items() if figure is None), *_ALWAYS_ESTIMATED),
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        gcnArchName=device.name,
        is_integrated=int(device.kind == "integrated"),
        is_multi_gpu_board=0,
    )


def _pool(device: Any) -> Any:
    return runtime.of_device(device_index(device)).memory.pool


class DeviceModule(DeviceInterface):
    """``torch.spirv``. ``device`` arguments: an index, "spirv:1" or a torch.device; the current one for None."""

    Event, Stream = torch_streams.Event, torch_streams.Stream  # type: ignore[assignment]

    __name__ = "torch.spirv"
    #: What code that is given them asks isinstance() of, under CUDA's name.
    _DeviceProperties = DeviceProperties
    #: What torch's checkpoints ask before they keep and restore the state of the device's random numbers.
    _initialized = True

    # ---- Devices ----

    def is_available(self) -> bool:
        """Whether there is a Vulkan device that can run kernels."""
        try:
            selected()
        except DeviceUnavailable:
            return False
        return True

    def is_initialized(self) -> bool:
        """There is nothing to initialise."""
        return True

    def init(self) -> None:
        """There is nothing to initialise."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_device_name(self, device: Any = None) -> str:
        """The device's name."""
        return runtime.devices()[device_index(device)].name

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        """Its figures."""
        return _properties(device_index(device))

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """(8, 0) for every device, which libraries take as a GPU with bfloat16 and without what is Hopper's alone.
        What a device can do is in ``triton.runtime.driver.active.get_current_target().arch``."""
        device_index(device)
        return CAPABILITY

    def as_cuda(self, types: bool = False) -> AbstractContextManager[None]:
        """While it runs, ``torch.cuda`` answers for the Vulkan devices: as_cuda.py."""
        return as_cuda(types)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """bfloat16 is computed in single precision on every device."""
        return including_emulation

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """What ``torch.autocast("spirv")`` can compute in."""
        return [torch.bfloat16, torch.float16]

    # ---- Streams ----

    def current_stream(self, device: Any = None) -> Any:
        """This thread's stream."""
        return torch_streams.Stream.current(device)

    def default_stream(self, device: Any = None) -> Any:
        """The device's first stream."""
        return torch_streams.Stream(queue=Queue.first(device))

    def is_current_stream_capturing(self) -> bool:
        """Whether this thread captures a graph, which streams do not matter for."""
        return runtime.capturing(runtime.current()) is not None

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Devices do not read each other's memory: copies go through the host."""
        return False

    # ---- Random numbers ----

    @property
    def default_generators(self) -> tuple[Generator, ...]:
        """The generator of calls without one, once for each device."""
        return tuple(default_generator(torch.device(runtime.NAME, index)) for index in range(self.device_count()))

    def manual_seed(self, seed: int) -> None:
        """Seed the devices' generator, and the CPU's, which makes random numbers that the devices do not."""
        torch.default_generator.manual_seed(seed)
        GENERATOR.reseed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generator of all devices, and the CPU's."""
        self.manual_seed(seed)

    def seed(self) -> None:
        """Seed with a number that the system draws."""
        self.manual_seed(torch.default_generator.seed())

    def seed_all(self) -> None:
        """Does what seed() does: all devices have one generator."""
        self.seed()

    def initial_seed(self) -> int:
        """The seed of the devices' generator."""
        return GENERATOR.seed

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """The state of the devices' generator and the CPU's: bytes."""
        return GENERATOR.state()

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """The state, once for each device."""
        return [GENERATOR.state()] * self.device_count()

    def set_rng_state(self, new_state: torch.Tensor, device: Any = None) -> None:
        """Set what get_rng_state() gave."""
        GENERATOR.restore(new_state)

    def set_rng_state_all(self, new_states: list[torch.Tensor]) -> None:
        """Set what get_rng_state_all() gave."""
        GENERATOR.restore(new_states[0])

    # ---- Memory ----

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes in use by tensors."""
        return int(_pool(device).allocated)

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most bytes that were in use by tensors since reset_peak_memory_stats()."""
        return int(_pool(device).peak_allocated)

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes taken from the device."""
        return int(_pool(device).reserved)

    def max_memory_reserved(self, device: Any = None) -> int:
        """The most bytes that were taken from the device since reset_peak_memory_stats()."""
        return int(_pool(device).peak_reserved)

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """The peaks are what is in use and reserved now."""
        _pool(device).reset_peaks()

    def memory_stats(self, device: Any = None) -> OrderedDict[str, Any]:
        """The figures above under the names that ``torch.cuda.memory_stats()`` gives them."""
        pool = _pool(device)
        figures = {
            "active_bytes": (pool.allocated, pool.peak_allocated),
            "allocated_bytes": (pool.allocated, pool.peak_allocated),
            "reserved_bytes": (pool.reserved, pool.peak_reserved),
        }
        stats: OrderedDict[str, Any] = OrderedDict()
        for name, (current, peak) in figures.items():
            stats[f"{name}.all.current"], stats[f"{name}.all.peak"] = current, peak
        memory = runtime.of_device(device_index(device)).memory
        counts = {"num_allocations": pool.allocations, "num_alloc_retries": memory.retries, "num_ooms": memory.failures}
        return OrderedDict(stats, **counts)

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Tensors' memory is at most this part of the device's: what would need more raises torch.OutOfMemoryError."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"a fraction of the device's memory is from 0 to 1, not {fraction}")
        index = device_index(device)
        runtime.of_device(index).memory.limit = (
            None if fraction == 1 else int(fraction * _properties(index).total_memory)
        )

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        """What was set; 1.0 at first."""
        index = device_index(device)
        limit = runtime.of_device(index).memory.limit
        return 1.0 if limit is None else limit / _properties(index).total_memory

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """(bytes that this process may still allocate, bytes that the device has). If the driver does not report
        the first (VK_EXT_memory_budget), it is what this process has not reserved; other processes are ignored."""
        index = device_index(device)
        free, total = runtime.devices()[index].memory()
        return max(0, total - runtime.of_device(index).memory.pool.reserved) if free is None else free, total

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """The figures of memory_stats() as lines."""
        return "\n".join(f"{name:28}{value:>16,}" for name, value in self.memory_stats(device).items())

    def memory_snapshot(self, device: Any = None) -> list[dict[str, Any]]:
        """The pool's buffers with their blocks, as ``torch.cuda.memory_snapshot()`` has them: torch's viewers
        (``torch.cuda._memory_viz``) read ``{"segments": torch.spirv.memory_snapshot(), "device_traces": []}``. Sizes
        are in bytes. Where memory was asked for is not recorded, so blocks have no frames."""
        index, segments = device_index(device), []
        for address, parts in _pool(device).buffers():
            blocks, at = [], address
            for size, is_idle in parts:
                state = "inactive" if is_idle else "active_allocated"
                own = {"address": at, "size": size, "requested_size": 0 if is_idle else size, "state": state}
                blocks.append({**own, "frames": []})
                at += size
            used = sum(block["requested_size"] for block in blocks)
            kind = {"device": index, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "frames": []}
            sizes = {"address": address, "total_size": at - address, "allocated_size": used, "active_size": used}
            segments.append({**kind, **sizes, "requested_size": used, "is_expandable": False, "blocks": blocks})
        return segments

    def empty_cache(self) -> None:
        """Give memory that no tensor uses back to the device."""
        for context in runtime.opened():
            context.memory.release_idle()

    # ---- Operations that run on the CPU ----

    def fallbacks(self) -> dict[str, int]:
        """How often each operation ran on the CPU, on copies, by its name."""
        return dict(FALLBACKS)

    def reset_fallbacks(self) -> None:
        """Count from 0 again."""
        FALLBACKS.clear()


MODULE = DeviceModule()
