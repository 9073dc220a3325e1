"""Memory that another API made, and allocations that are put one behind the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime.buffer import DeviceBuffer
from triton.backends.spirv.runtime.context import Context, current

from tests.device.processes import run_script
from tests.device.runtime.exported_memory import ExportedMemory

pytestmark = pytest.mark.only_on("Vulkan", "CUDA and Vulkan share memory of a GPU")

#: As large as CUDA's allocations are at least.
_BYTES = 2 << 20
_SPARSE_BLOCK = 1 << 16


@pytest.fixture
def context() -> Context:
    """How host memory reaches a kernel does not matter here."""
    return current()


@pytest.fixture
def exported(context: Context) -> Iterator[ExportedMemory]:
    if "VK_KHR_external_memory_fd" not in context.device.extensions:
        pytest.skip(f"{context.device.name} lacks VK_KHR_external_memory_fd")
    memory = ExportedMemory(context, _BYTES)
    yield memory
    memory.free()


@pytest.fixture
def sparse(context: Context) -> None:
    if "sparseBinding" not in context.device.vulkan_features:
        pytest.skip(f"{context.device.name} lacks sparse binding")


def _write(context: Context, address: int, values: numpy.ndarray) -> None:
    context.native.upload(address, values.ctypes.data, values.nbytes)


def _read(context: Context, address: int, bytes: int) -> numpy.ndarray:
    values = numpy.zeros(bytes, numpy.uint8)
    context.native.download(values.ctypes.data, address, bytes)
    return values


def test_imports_of_one_memory_are_the_same_bytes(context: Context, exported: ExportedMemory) -> None:
    values = numpy.random.default_rng(0).integers(0, 256, _BYTES, numpy.uint8)
    first, second = (context.native.import_fd(exported.descriptor(), _BYTES) for _ in range(2))
    assert first.address != second.address
    _write(context, first.address, values)
    numpy.testing.assert_array_equal(_read(context, second.address, _BYTES), values)
    first.free()
    _write(context, second.address + 3, values[:5])
    values[3:8] = values[:5].copy()
    numpy.testing.assert_array_equal(_read(context, second.address, _BYTES), values)
    second.free()


_IMPORT = f"""
from tests.device.runtime.exported_memory import ExportedMemory
def descriptor_is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
memory = ExportedMemory(current(), {_BYTES})
fd = memory.descriptor()
"""


def _lines(script: str, layer: dict[str, str], module: Path | None = None, **environment: str) -> list[str]:
    done = run_script(script, module, TRITON_SPIRV_VALIDATE="0", **environment, **layer)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.usefixtures("exported")
def test_what_the_driver_did_not_take_is_closed(faulty_layer: dict[str, str]) -> None:
    script = """
os.environ["FAULTY_MEMORY"] = "1"
try:
    current().native.import_fd(fd, 2 << 20)
except RuntimeError as error:
    print(error, descriptor_is_open(fd))
"""
    (line,) = _lines(_IMPORT + script, faulty_layer)
    assert "vkAllocateMemory failed" in line and line.endswith(" False")


@pytest.mark.usefixtures("exported")
def test_what_the_driver_took_is_not_closed_twice(faulty_layer: dict[str, str]) -> None:
    """The second time would close whatever has the number by then: a file that the layer opened."""
    script = """
os.environ["FAULTY_BIND"] = "1"
try:
    current().native.import_fd(fd, 2 << 20)
except RuntimeError as error:
    print(error)
print(sum(os.path.realpath(f"/proc/self/fd/{number}") == "/dev/null" for number in range(3, 99)))
"""
    first, opened = _lines(_IMPORT + script, faulty_layer)
    assert "vkBindBufferMemory failed" in first and opened == "1"


@pytest.mark.usefixtures("sparse")
def test_joined_allocations_are_one_range(context: Context) -> None:
    """In the order that is given, whichever order they were made in; both ways, over the borders."""
    parts = [context.native.allocate_device(blocks * _SPARSE_BLOCK) for blocks in (1, 3, 2)]
    order = [parts[2], parts[0], parts[1]]
    values = numpy.random.default_rng(0).integers(0, 256, 6 * _SPARSE_BLOCK, numpy.uint8)
    ends = numpy.cumsum([part.bytes for part in order])
    for part, end in zip(order, ends, strict=True):
        _write(context, part.address, values[end - part.bytes : end])
    whole = context.native.join(order)
    assert whole.bytes == values.size
    numpy.testing.assert_array_equal(_read(context, whole.address, values.size), values)
    border = int(ends[0]) - 5
    _write(context, whole.address + border, values[:11])
    values[border : border + 11] = values[:11].copy()
    whole.free()
    for part, end in zip(order, ends, strict=True):
        numpy.testing.assert_array_equal(_read(context, part.address, part.bytes), values[end - part.bytes : end])
        part.free()


@pytest.mark.usefixtures("sparse")
def test_a_kernel_works_over_the_borders(context: Context, add: Any) -> None:
    parts = [context.native.allocate_device(_SPARSE_BLOCK) for _ in range(3)]
    whole = context.native.join(parts)
    values = numpy.random.default_rng(0).standard_normal(whole.bytes // 4).astype(numpy.float32)
    _write(context, whole.address, values)
    place = DeviceBuffer(context, whole, int(whole.address), (values.size,), numpy.dtype("float32"))
    add((values.size // 64,), place, place, place, values.size)
    context.native.synchronize()
    for number, part in enumerate(parts):
        expected = 2 * values[number * _SPARSE_BLOCK // 4 :][: _SPARSE_BLOCK // 4]
        numpy.testing.assert_array_equal(_read(context, part.address, part.bytes).view(numpy.float32), expected)
    whole.free()


@pytest.mark.usefixtures("sparse")
def test_what_cannot_be_joined_is_refused(context: Context) -> None:
    whole, odd = context.native.allocate_device(_SPARSE_BLOCK), context.native.allocate_device(100)
    with pytest.raises(RuntimeError, match="an allocation of 100 bytes is no multiple of the [0-9]+ of the device's"):
        context.native.join([whole, odd])
    joined = context.native.join([whole])
    for unjoinable in (joined, odd):
        odd.free()
        with pytest.raises(ValueError, match="a buffer that is freed or joined has no memory to join"):
            context.native.join([whole, unjoinable])
    joined.free()


@pytest.mark.usefixtures("sparse")
def test_a_binding_that_does_not_end(faulty_layer: dict[str, str]) -> None:
    """What is bound is not destroyed under the driver. The device is not used again, but opened once more."""
    script = """
first = current().native
parts = [first.allocate_device(1 << 16) for _ in range(2)]
os.environ["FAULTY_PENDING"] = "1"
for call in (lambda: first.join(parts), lambda: first.allocate_device(4)):
    try:
        call()
    except RuntimeError as error:
        print(error, flush=True)
os.environ["FAULTY_PENDING"] = "0"
print(current().native is not first and current().native.allocate_device(4).bytes, flush=True)
os._exit(0)
"""
    first, second, third = _lines(
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + script,
        faulty_layer,
        FAULTY_PENDING="0",
        TRITON_SPIRV_TIMEOUT="60",
    )
    assert first == "memory was not bound within the time limit of 60000 ms (TRITON_SPIRV_TIMEOUT, in seconds)"
    assert second.startswith("this belongs to a device that failed earlier") and third == "4"


def test_memory_that_cannot_be_mapped_is_copied_from(faulty_layer: dict[str, str]) -> None:
    made = "from triton.backends.spirv.runtime import empty\nx = empty(4, 'uint8').fill(7).to_numpy().tolist()"
    script = made + "\nprint(current().native.allocate_device(1 << 20, read=True).host, x)"
    assert _lines(script, faulty_layer, FAULTY_MAP=str(1 << 20)) == ["0 [7, 7, 7, 7]"]
