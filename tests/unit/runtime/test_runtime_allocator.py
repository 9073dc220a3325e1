"""The device allocator, over buffers that are made up."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest
from triton.backends.spirv.runtime.memory.allocator import DeviceAllocator, OutOfDeviceMemory
from triton.backends.spirv.runtime.native_module import native

ALIGNMENT = native().MemoryPool.ALIGNMENT


class NoRoom(RuntimeError):
    no_memory = True


class FakeBuffer:
    def __init__(self, device: FakeDevice, address: int, size: int) -> None:
        self._device, self.address, self.bytes = device, address, size

    def free(self) -> None:
        self._device.used -= self.bytes
        self._device.buffers -= 1


class FakeDevice:
    def __init__(self, capacity: int = 1 << 40) -> None:
        self.capacity, self.used, self.buffers, self._next = capacity, 0, 0, 1 << 32
        self.addresses: list[int] = []

    def allocate(self, size: int, read: bool = False) -> FakeBuffer:
        if self.used + size > self.capacity:
            raise NoRoom("VK_ERROR_OUT_OF_DEVICE_MEMORY")
        self.used += size
        self.buffers += 1
        self._next += 1 << 32
        self.addresses.append(self._next)
        return FakeBuffer(self, self._next, size)


def test_allocations_do_not_overlap_and_are_aligned() -> None:
    random_ = random.Random(0)
    allocator = DeviceAllocator(FakeDevice().allocate)
    live: list[Any] = []
    for _ in range(3000):
        if live and random_.random() < 0.45:
            live.pop(random_.randrange(len(live))).free()
        else:
            live.append(allocator.allocate(random_.choice((1, 8, 500, 513, 4000, 70_000, 1 << 20, 3 << 20))))
    ranges = sorted((entry.address, entry.address + entry.bytes) for entry in live)
    assert all(address % ALIGNMENT == 0 for address, _ in ranges)
    assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:], strict=False))


def test_what_was_freed_is_used_again() -> None:
    device = FakeDevice()
    allocator = DeviceAllocator(device.allocate)
    for size in (1000, 5 << 20):
        allocator.allocate(size).free()
        before = device.used
        for _ in range(10_000):
            allocator.allocate(size)  # nothing refers to it: it goes back
        gc.collect()
        assert device.used == before
    allocator.release_idle()
    assert (device.used, device.buffers, allocator.pool.allocated, allocator.pool.reserved) == (0, 0, 0, 0)


def test_addresses_repeat_in_whatever_order_memory_is_freed() -> None:
    allocator, draw = DeviceAllocator(FakeDevice(64 << 20).allocate), random.Random(0)
    found = []
    for _ in range(5):
        live = [allocator.allocate(size) for size in (100, 5000, 100, 3 << 20, 100, 3 << 20)]
        found.append([entry.address for entry in live])
        draw.shuffle(live)
        while live:
            live.pop().free()
    assert all(addresses == found[0] for addresses in found)


def test_small_allocations_share_buffers() -> None:
    device = FakeDevice()
    allocator = DeviceAllocator(device.allocate)
    live = [allocator.allocate(4) for _ in range(20_000)]
    assert device.buffers <= 10
    kept = live.pop()
    del live
    allocator.release_idle()
    assert device.buffers == 1 and allocator.pool.allocated == ALIGNMENT
    kept.free()
    allocator.release_idle()
    assert device.buffers == 0


def test_idle_memory_makes_room() -> None:
    device = FakeDevice(capacity=10 << 20)
    allocator = DeviceAllocator(device.allocate)
    allocator.allocate(8 << 20).free()
    held = allocator.allocate(9 << 20)
    assert device.used == 9 << 20
    with pytest.raises(OutOfDeviceMemory, match=r"no room for \d+ bytes: 9437184 bytes are in use by tensors"):
        allocator.allocate(9 << 20)
    held.free()
    held.free()
    allocator.allocate(10 << 20)


def _one_at_a_time(allocator: DeviceAllocator, draw: random.Random) -> None:
    held = None
    for _ in range(2000):
        held = allocator.allocate(draw.randrange(1, 4 << 20))  # the one before lives until then
    del held


def _twenty_live(allocator: DeviceAllocator, draw: random.Random) -> None:
    live: list[Any] = []
    for _ in range(5000):
        if len(live) == 20:
            live.pop(draw.randrange(20)).free()
        live.append(allocator.allocate(draw.randrange(1, 4 << 20)))


def _growing(allocator: DeviceAllocator, draw: random.Random) -> None:
    for size in range(40 << 20, 400 << 20, 3 << 20):
        allocator.allocate(size).free()


def _training(allocator: DeviceAllocator, draw: random.Random) -> None:
    """Activations of batches of other sizes and lengths, and their gradients, beside parameters that stay."""
    staying = [allocator.allocate(4 * draw.choice((1024, 4096, 65536, 262144))) for _ in range(60)]
    for _ in range(300):
        batch, length = draw.randint(1, 16), draw.randint(5, 500)
        live: list[Any] = []
        for _ in range(4):
            live += [allocator.allocate(2 * batch * length * width) for width in (256, 768, 256, 1024, 1024, 4)]
            live.append(allocator.allocate(8 * batch * length * length))
        while live:
            gradient = allocator.allocate(live[-1].bytes)
            live.pop().free()
            gradient.free()
    assert all(one.address for one in staying)


@pytest.mark.parametrize("pattern", [_one_at_a_time, _twenty_live, _growing, _training])
def test_little_more_is_reserved_than_is_needed(pattern: Any) -> None:
    device = FakeDevice()
    allocator = DeviceAllocator(device.allocate)
    pattern(allocator, random.Random(1))
    gc.collect()
    pool = allocator.pool
    assert pool.peak_reserved <= 1.5 * pool.peak_allocated
    assert pool.allocated == 0 and pool.reserved == device.used
    allocator.release_idle()
    assert (device.used, device.buffers, pool.reserved) == (0, 0, 0)  # all blocks were joined


def test_blocks_are_split_and_joined() -> None:
    device = FakeDevice()
    allocator = DeviceAllocator(device.allocate)
    for order in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):
        live = [allocator.allocate(1 << 20) for _ in range(3)]
        assert [one.address - device.addresses[0] for one in live] == [0, 1 << 20, 2 << 20]
        for number in order:
            live[number].free()
        whole = allocator.allocate(4 << 20)
        assert whole.address == device.addresses[0] and device.buffers == 1
        whole.free()


def test_a_device_with_little_room_gets_small_buffers() -> None:
    device = FakeDevice(capacity=1 << 20)
    allocator = DeviceAllocator(device.allocate)
    held = [allocator.allocate(300_000) for _ in range(3)]
    assert device.used <= 1 << 20 and len({one.address for one in held}) == 3
    with pytest.raises(OutOfDeviceMemory):
        allocator.allocate(300_000)


def test_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 bytes"):
        DeviceAllocator(FakeDevice().allocate).allocate(-1)


def test_a_size_that_no_device_counts_is_no_room() -> None:
    with pytest.raises(OutOfDeviceMemory, match="no room for 1180591620717411303424 bytes"):
        DeviceAllocator(FakeDevice().allocate).allocate(1 << 70)


def test_other_failures_are_passed_on() -> None:
    def fail(_: int, read: bool) -> Any:
        raise RuntimeError("the device was lost")

    with pytest.raises(RuntimeError, match="^the device was lost$"):
        DeviceAllocator(fail).allocate(8)


def test_peaks_and_counts() -> None:
    device = FakeDevice()
    allocator = DeviceAllocator(device.allocate)
    first, second = allocator.allocate(3 << 20), allocator.allocate(700)
    pool = allocator.pool
    assert (pool.allocated, pool.allocations) == ((3 << 20) + 1024, 2)
    first.free()
    assert first.address == 0 and first.bytes == 3 << 20
    assert (pool.allocated, pool.peak_allocated) == (1024, (3 << 20) + 1024)
    assert pool.reserved == pool.peak_reserved == device.used
    allocator.release_idle()
    pool.reset_peaks()
    assert (pool.peak_allocated, pool.peak_reserved) == (1024, device.used)
    assert second.address % ALIGNMENT == 0


@pytest.mark.parametrize(
    ("bytes_", "size"), [(0, 512), (1, 512), (513, 1024), (8193, 8704), (70_000, 70_144), (3 << 20, 3 << 20)]
)
def test_sizes_are_multiples_of_the_alignment(bytes_: int, size: int) -> None:
    assert native().MemoryPool.size_of(bytes_) == size


def test_a_closed_allocator_asks_the_device() -> None:
    """What it has idle is gone with the device. What is in use can still be freed."""
    device = FakeDevice()
    allocator = DeviceAllocator(device.allocate)
    held, other = allocator.allocate(8), allocator.allocate(8)
    other.free()
    allocator.close()
    device.capacity = 0
    with pytest.raises(OutOfDeviceMemory):
        allocator.allocate(8)
    held.free()
