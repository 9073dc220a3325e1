"""Storage ranges, staging buffers and the NumPy view, without a device."""

from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime.memory.host_memory import BufferPool, HostRange, Loan, find, merge, storage_of
from triton.runtime.jit import reinterpret


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.booleans()), max_size=8))
def test_merge_covers_the_same_bytes(ranges: list[tuple[int, int, bool]]) -> None:
    merged = merge(HostRange(start, start + size, written) for start, size, written in ranges)
    covered = {at for start, size, _ in ranges for at in range(start, start + size)}
    written = {at for start, size, written in ranges if written for at in range(start, start + size)}
    assert sorted(at for span in merged for at in range(span.start, span.end)) == sorted(covered)
    for span in merged:
        assert span.written == bool(written.intersection(range(span.start, span.end)))
    for at in range(82):
        index = find(merged, at)
        assert (index is not None) == (at in covered)
        assert index is None or merged[index].start <= at < merged[index].end


def test_merge_leaves_its_input_alone() -> None:
    spans = [HostRange(0, 4, False), HostRange(2, 8, True)]
    assert merge(spans) == [HostRange(0, 8, True)]
    assert spans == [HostRange(0, 4, False), HostRange(2, 8, True)]


def test_storage_of_numpy_is_the_base() -> None:
    base = numpy.zeros((10, 20), numpy.float32)
    start = base.__array_interface__["data"][0]
    for part in (base, base[3:5, ::2], base[::-1], base.T[4], base[2:3].reshape(-1)):
        assert storage_of(array(part), 0) == (start, 800, True)
    base.flags.writeable = False
    assert storage_of(array(base), 0) == (start, 800, False)
    assert storage_of(array(numpy.zeros((0, 4), numpy.float32)), 0)[1] == 0


def test_storage_of_torch() -> None:
    base = torch.zeros(10, 20)
    expected = base.data_ptr(), 800, True
    assert storage_of(base[3:, ::2], 0) == expected
    assert storage_of(reinterpret(base, torch.int32), 0) == expected


def test_storage_of_unknown_objects() -> None:
    class Sized:
        def numel(self) -> int:
            return 5

        def element_size(self) -> int:
            return 2

    assert storage_of(Sized(), 4096) == (4096, 10, True)
    with pytest.raises(TypeError, match="a object does not give the size of its memory; pass a torch tensor or"):
        storage_of(object(), 4096)


class _Buffer:
    def __init__(self, size: int) -> None:
        self.bytes = size
        self.freed = False

    def free(self) -> None:
        self.freed = True


def test_pool_uses_buffers_again() -> None:
    pool = BufferPool(_Buffer, idle_bytes=300_000)
    first = pool.take(100)
    assert first.bytes == 65536
    pool.give(first)
    assert pool.take(65536) is first
    second, third = pool.take(100_001), pool.take(200_001)
    assert 100_001 <= second.bytes <= 112_501 and 200_001 <= third.bytes <= 225_001
    for buffer in (first, second, third):
        pool.give(buffer)
    assert not first.freed and not second.freed and third.freed
    pool.clear()
    assert first.freed and second.freed


class _NoRoom(RuntimeError):
    no_memory = True


def test_pool_frees_idle_buffers_where_memory_is_short() -> None:
    live: list[_Buffer] = []

    def allocate(size: int) -> _Buffer:
        if sum(buffer.bytes for buffer in live if not buffer.freed) + size > 200_000:
            raise _NoRoom("out of device memory")
        live.append(_Buffer(size))
        return live[-1]

    pool = BufferPool(allocate)
    pool.give(pool.take(65536))
    pool.give(pool.take(131072))
    assert pool.take(196608).bytes == 196608
    with pytest.raises(RuntimeError, match="out of device memory"):
        pool.take(10_000)


def test_pool_forgets_what_it_frees() -> None:
    """Freeing waits for the device, which Ctrl-C may end."""

    class Interrupted(_Buffer):
        def free(self) -> None:
            super().free()
            raise KeyboardInterrupt

    pool = BufferPool(Interrupted)
    buffers = [pool.take(100), pool.take(200_000)]
    for buffer in buffers:
        pool.give(buffer)
    with pytest.raises(KeyboardInterrupt):
        pool.clear()
    assert not pool.take(100).freed and not pool.take(200_000).freed


def test_loan_goes_back_once() -> None:
    pool, ended = BufferPool(_Buffer), []
    loan = Loan()
    first = loan.take(pool, 100)
    loan.add(lambda: ended.append(1))
    loan.end()
    loan.end()
    assert ended == [1] and pool.take(100) is first and pool.take(100) is not first
    loan = Loan()
    second = loan.take(pool, 100)
    assert pool.take(100) is not second
    del loan
    assert pool.take(100) is second


def test_array_shares_memory() -> None:
    values = numpy.arange(12, dtype=numpy.int16).reshape(3, 4)
    view = array(values[:, 1:])
    assert view.data_ptr() == values.__array_interface__["data"][0] + 2
    assert (view.shape, view.stride(), view.stride(0), view.numel(), view.element_size()) == ((3, 3), (4, 1), 4, 9, 2)


@pytest.mark.parametrize(
    "values", [numpy.zeros(2, complex), numpy.zeros(2, ">f4"), numpy.array(["a"]), numpy.array([object()])]
)
def test_array_refuses_element_types(values: Any) -> None:
    with pytest.raises(TypeError, match="cannot be passed to a kernel; convert it with astype"):
        array(values)


def test_array_refuses_other_objects() -> None:
    with pytest.raises(TypeError, match="takes a NumPy array, not list"):
        array([1, 2])
