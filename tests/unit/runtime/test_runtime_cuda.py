"""What becomes of CUDA's memory and streams, without CUDA: the driver's functions are played by a table of chunks."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv import settings
from triton.backends.spirv.runtime import cuda
from triton.backends.spirv.runtime.cuda import cuda_driver, cuda_memory
from triton.backends.spirv.runtime.errors import NotShareable

CHUNK = 20 << 20


class Cuda:
    """Allocations, each of one chunk, by the address where CUDA has mapped them."""

    def __init__(self) -> None:
        self.mapped: dict[int, int] = {}  # start: handle
        self.held: dict[int, int] = {}  # handle: count

    def retain(self, address: int) -> int:
        handle = self.mapped.get(address // CHUNK * CHUNK)
        if handle is None:
            raise cuda_driver.CudaError("cuMemRetainAllocationHandle failed: CUDA error 1")
        self.held[handle] = self.held.get(handle, 0) + 1
        return handle

    def release(self, handle: int) -> None:
        self.held[handle] -= 1
        assert self.held[handle] >= 0

    def allocation(self, address: int) -> tuple[int, int]:
        start = address // CHUNK * CHUNK
        return start, start + CHUNK

    def export(self, handle: int) -> int:
        return handle


class Vulkan:
    """Buffers: an imported one's address tells its handle, a joined one's the handles of its parts."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self.refuses = False

    def _make(self, what: tuple[int, ...], bytes_: int) -> Any:
        address = (len(self.made) + 1) << 40
        buffer = SimpleNamespace(address=address, what=what, bytes=bytes_, freed=False)

        def free() -> None:
            assert not buffer.freed
            buffer.freed = True
            if len(what) == 1:
                joined = [other for other in self.made.values() if what[0] in other.what and len(other.what) > 1]
                assert all(other.freed for other in joined), "memory was freed under a buffer that is bound to it"

        buffer.free = free
        self.made[address] = buffer
        return buffer

    def import_fd(self, fd: int, bytes_: int) -> Any:
        return self._make((fd,), bytes_)

    def join(self, parts: list[Any]) -> Any:
        if self.refuses:
            raise RuntimeError("the Vulkan queue lacks sparse binding")
        return self._make(tuple(part.what[0] for part in parts), sum(part.bytes for part in parts))

    def live(self) -> list[tuple[int, ...]]:
        return [buffer.what for buffer in self.made.values() if not buffer.freed]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cuda]:
    """CUDA with five chunks in a row and a gap after them."""
    driver = Cuda()
    driver.mapped = {index * CHUNK: 100 + index for index in range(1, 6)}
    for name in ("retain", "release", "allocation", "export"):
        monkeypatch.setattr(cuda_driver, name, getattr(driver, name))
    yield driver


@pytest.mark.usefixtures("driver")
def test_a_tensor_within_a_chunk_is_where_the_chunk_is() -> None:
    vulkan = Vulkan()
    memory = cuda_memory.ImportedMemory(vulkan)
    for start, end, address in ((CHUNK, 2 * CHUNK, CHUNK + 12), (2 * CHUNK - 4, 2 * CHUNK, 2 * CHUNK - 4)):
        assert memory.address(address, start, end) == (1 << 40) + address - CHUNK
    assert vulkan.live() == [(101,)]


def test_a_tensor_in_several_chunks_is_in_a_buffer_of_them_all(driver: Cuda) -> None:
    vulkan = Vulkan()
    memory = cuda_memory.ImportedMemory(vulkan)
    start, end = CHUNK + 512, 3 * CHUNK + 4
    first = memory.address(2 * CHUNK + 8, start, end)
    joined = vulkan.made[first // (1 << 40) * (1 << 40)]
    assert joined.what == (101, 102, 103) and first - joined.address == CHUNK + 8
    assert memory.address(start, start, end) == joined.address + 512
    assert memory.address(3 * CHUNK, 2 * CHUNK + 4, 4 * CHUNK) != joined.address + 2 * CHUNK
    assert vulkan.live() == [(101,), (102,), (103,), (101, 102, 103), (102, 103)]
    assert driver.held == {101: 1, 102: 1, 103: 1}


def test_memory_that_cuda_replaced_is_imported_anew(driver: Cuda) -> None:
    vulkan = Vulkan()
    memory = cuda_memory.ImportedMemory(vulkan)
    before = memory.address(CHUNK, CHUNK, 4 * CHUNK)
    driver.mapped[2 * CHUNK] = 202
    after = memory.address(CHUNK, CHUNK, 4 * CHUNK)
    assert after != before and vulkan.made[after].what == (101, 202, 103)
    assert vulkan.live() == [(101,), (103,), (202,), (101, 202, 103)]
    assert driver.held == {101: 1, 102: 0, 103: 1, 202: 1}


def test_memory_that_cuda_took_away_is_not_kept(driver: Cuda) -> None:
    """Its bytes are taken for as long as they are imported; the next import lets go of them."""
    vulkan = Vulkan()
    memory = cuda_memory.ImportedMemory(vulkan)
    memory.address(CHUNK, CHUNK, 3 * CHUNK)
    del driver.mapped[CHUNK], driver.mapped[2 * CHUNK]
    memory.address(5 * CHUNK, 5 * CHUNK, 6 * CHUNK)
    assert vulkan.live() == [(105,)]
    assert driver.held == {101: 0, 102: 0, 105: 1}


def test_a_chunk_in_place_of_several_is_imported_once(driver: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old one that began within it would hide it from every look behind its start."""
    vulkan = Vulkan()
    memory = cuda_memory.ImportedMemory(vulkan)
    for index in (2, 3):
        memory.address(index * CHUNK, index * CHUNK, index * CHUNK + 4)
    wide = (CHUNK, 5 * CHUNK)
    driver.mapped = {index * CHUNK: 300 for index in range(1, 5)}
    monkeypatch.setattr(cuda_driver, "allocation", lambda address: wide)
    for _ in range(3):
        for start in (4 * CHUNK, 2 * CHUNK + 8, CHUNK):
            address = memory.address(start, start, start + 4)
            base, offset = divmod(address, 1 << 40)
            assert vulkan.made[base << 40].what == (300,) and offset == start - CHUNK
    assert vulkan.live() == [(300,)]
    assert driver.held == {102: 0, 103: 0, 300: 1}


def test_what_cannot_be_shared_says_how_to_allocate(driver: Cuda) -> None:
    vulkan = Vulkan()
    memory = cuda_memory.ImportedMemory(vulkan)
    vulkan.refuses = True
    with pytest.raises(NotShareable) as raised:
        memory.address(CHUNK, CHUNK, 3 * CHUNK)
    message = str(raised.value)
    assert message.startswith("the CUDA tensor lies in 2 chunks of an expandable segment of torch")
    assert "the Vulkan queue lacks sparse binding" in message
    assert "take expandable_segments out of PYTORCH_CUDA_ALLOC_CONF" in message
    assert "use_mem_pool(triton.backends.spirv.runtime.cuda.mem_pool())" in message
    assert "TRITON_SPIRV_CUDA=staged" in message
    with pytest.raises(NotShareable, match="allocated by cudaMalloc.*use_mem_pool.*TRITON_SPIRV_CUDA=staged"):
        memory.address(9 * CHUNK, 9 * CHUNK, 9 * CHUNK + 4)
    assert driver.held == {101: 1, 102: 1}


def test_each_stream_signals_a_semaphore_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one for all, a stream that is done would start launches that another stream is to be waited for by."""
    signals: list[tuple[int, int, int]] = []

    class Semaphore:
        def __init__(self, fd: int) -> None:
            self._fd = fd

        def signal(self, stream: int, value: int) -> None:
            signals.append((self._fd, stream, value))

    monkeypatch.setattr(cuda, "Semaphore", Semaphore)
    numbers = iter(range(9))
    native = SimpleNamespace(make_incoming=lambda: (number := next(numbers), 50 + number))
    sharing: Any = object.__new__(cuda.CudaSharing)
    sharing._context, sharing._incoming, sharing._lock = SimpleNamespace(native=native), {}, cuda.threading.Lock()
    sharing._current = contextlib.nullcontext()
    assert [sharing.signal(stream) for stream in (0, 7, 0, 7, 7)] == [(0, 1), (1, 1), (0, 2), (1, 2), (1, 3)]
    assert signals == [(50, 0, 1), (51, 7, 1), (50, 0, 2), (51, 7, 2), (51, 7, 3)]


class Driver:
    """CUDA's driver as far as it has current contexts: a stack a thread. Stream 0 is the current one's."""

    def __init__(self) -> None:
        self.current = threading.local()
        self.signals: list[tuple[int | None, str, int]] = []

    @property
    def stack(self) -> list[int]:
        if not hasattr(self.current, "stack"):
            self.current.stack = []
        return self.current.stack  # type: ignore[no-any-return]

    def call(self, name: str, *args: Any) -> None:
        if name == "cuCtxGetCurrent":
            args[0]._obj.value = self.stack[-1] if self.stack else None
        elif name == "cuCtxPushCurrent_v2":
            self.stack.append(args[0].value)
        elif name == "cuCtxPopCurrent_v2":
            args[0]._obj.value = self.stack.pop()
        elif name in ("cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync"):
            self.signals.append((self.stack[-1] if self.stack else None, name, args[1]._obj.value))


def test_streams_are_those_of_the_devices_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever GPU the thread has chosen, and in a thread that has not used CUDA yet."""
    driver = Driver()
    monkeypatch.setattr(cuda_driver, "_call", driver.call)

    class Chosen:
        def __init__(self, index: int) -> None:
            self._index = index

        def __enter__(self) -> None:
            driver.stack.append(1000 + self._index)

        def __exit__(self, *_: object) -> None:
            driver.stack.pop()

    torch_cuda = SimpleNamespace(
        device_count=lambda: 2,
        device=Chosen,
        current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
        get_device_properties=lambda index: SimpleNamespace(uuid=f"GPU-{index}{index}-AB"),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=torch_cuda))
    native = SimpleNamespace(
        export_timeline=lambda: -1,
        make_incoming=lambda: (0, -1),
        done=lambda value: True,
        limit_waits=lambda limit: None,
    )
    context: Any = SimpleNamespace(native=native, shares_memory=True, device=SimpleNamespace(name="GPU", uuid="11ab"))
    driver.stack.append(1000)
    sharing = cuda.CudaSharing(context)

    def work() -> None:
        sharing.signal(0)
        sharing.wait(0, 5)

    work()
    assert driver.stack == [1000]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    signal, wait = "cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync"
    assert driver.signals == [(1001, signal, 1), (1001, wait, 5), (1001, signal, 2), (1001, wait, 5)]
    tensor = SimpleNamespace(device=SimpleNamespace(index=0))
    for uuid, message in (
        ("00ab", r"in 'with torch.cuda.device\(0\):'"),
        ("33ab", r"'cuda:0' \(UUID 00ab\), which is none"),
    ):
        monkeypatch.setattr(cuda, "installed", lambda uuid=uuid: [SimpleNamespace(name="another", uuid=uuid)])
        with pytest.raises(NotShareable, match=message):
            sharing.address(tensor, 0)
    context.device.uuid = "22ab"
    with pytest.raises(NotShareable, match="CUDA does not show the Vulkan device GPU: see CUDA_VISIBLE_DEVICES"):
        cuda.CudaSharing(context)


def test_another_vulkan_driver_takes_no_cuda_tensors() -> None:
    context: Any = SimpleNamespace(shares_memory=False, device=SimpleNamespace(name="Mesa"))
    with pytest.raises(NotShareable, match=r"Mesa: CUDA tensors can only be passed on NVIDIA's .*tensor.cpu\(\)"):
        cuda.CudaSharing(context)


def test_a_way_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, way in ((None, "share"), ("", "share"), ("share", "share"), ("staged", "staged")):
        monkeypatch.delenv("TRITON_SPIRV_CUDA", raising=False)
        if wanted is not None:
            monkeypatch.setenv("TRITON_SPIRV_CUDA", wanted)
        assert settings.CUDA.get() == way
    monkeypatch.setenv("TRITON_SPIRV_CUDA", "imported")
    with pytest.raises(ValueError, match="TRITON_SPIRV_CUDA must be share or staged, not 'imported'"):
        settings.CUDA.get()
