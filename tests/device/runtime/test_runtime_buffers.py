"""Device buffers: values, views, launches that do not wait, events, memory that was given back."""

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch
from triton.backends.spirv.driver import SPIRVDriver
from triton.backends.spirv.runtime import OutOfDeviceMemory
from triton.backends.spirv.runtime import buffer as buffers
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.streams import DeviceInterface


def test_values_come_back(context: Context) -> None:
    random = numpy.random.default_rng(0)
    for shape, dtype in [
        ((), "float32"),
        (1, "int8"),
        ((3, 5), "float16"),
        (0, "int64"),
        ((2, 0, 3), "bool"),
        ((1000, 1001), "float64"),
        (7, ml_dtypes.bfloat16),
    ]:
        values = (random.standard_normal(shape) * 10).astype(dtype) if shape != () else numpy.array(2.5, dtype)
        held = buffers.from_numpy(values, context)
        numpy.testing.assert_array_equal(held.to_numpy(), values)
        assert (held.shape, held.numel(), held.nbytes) == (values.shape, values.size, values.nbytes)
        assert (
            held.stride() == tuple(step // values.itemsize for step in numpy.zeros(values.shape, dtype).strides)
            or values.size == 0
        )


def test_transfers_longer_than_a_chunk(context: Context) -> None:
    """Uploads and downloads go through staging buffers of 8 MiB, in turn."""
    values = numpy.arange(9 << 20, dtype=numpy.int32)
    held = buffers.from_numpy(values, context)
    numpy.testing.assert_array_equal(held.to_numpy(), values)
    part = held[1 : (8 << 20) + 7]
    numpy.testing.assert_array_equal(part.to_numpy(), values[1 : (8 << 20) + 7])
    part.copy_from(values[: part.numel()])
    values[1 : (8 << 20) + 7] = values[: part.numel()].copy()
    numpy.testing.assert_array_equal(held.to_numpy(), values)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", -1.5),
        ("int8", 7),
        ("float16", 0.1),
        ("int64", 0),
        ("int64", -1),
        ("int64", 5),
        ("float64", 1 / 3),
        ("bool", True),
    ],
)
@pytest.mark.parametrize("part", [slice(0, 64), slice(1, 64), slice(3, 12), slice(5, 5)])
def test_fill_touches_the_view_alone(dtype: str, value: Any, part: slice) -> None:
    values = numpy.zeros(64, dtype)
    held = buffers.zeros(64, dtype)
    held[part].fill(value)
    values[part] = value
    numpy.testing.assert_array_equal(held.to_numpy(), values)


def test_views_and_shapes() -> None:
    values = numpy.arange(24, dtype=numpy.int32).reshape(4, 6)
    held = buffers.from_numpy(values)
    numpy.testing.assert_array_equal(held[-1].to_numpy(), values[-1])
    numpy.testing.assert_array_equal(held[1:3].to_numpy(), values[1:3])
    numpy.testing.assert_array_equal(held.reshape(3, 8).to_numpy(), values.reshape(3, 8))
    assert held[2].data_ptr() == held.data_ptr() + 48
    assert len(held) == 4
    with pytest.raises(IndexError, match="index 4 is out of range for 4 rows"):
        held[4]
    with pytest.raises(ValueError, match="has step 1, not 2"):
        held[::2]
    with pytest.raises(ValueError, match="24 elements have no shape"):
        held.reshape(5, 5)
    with pytest.raises(ValueError, match="does not fit a device buffer"):
        held.copy_from(values[:2])
    with pytest.raises(ValueError, match="does not fit a device buffer"):
        held.copy_from(values.astype("float32"))
    with pytest.raises(TypeError, match="cannot point at complex64"):
        buffers.empty(3, "complex64")
    with pytest.raises(ValueError, match="no negative sizes"):
        buffers.empty((2, -1), "int8")


def test_copies_between_buffers_come_after_earlier_kernels(add: Any, context: Context) -> None:
    x, y = (buffers.full(64, value, "float32", context) for value in (1, 2))
    z, copied = buffers.zeros(64, "float32", context), buffers.zeros(64, "float32", context)
    add((1,), x, y, z, 64)
    copied.copy_from(z)
    add((1,), z, z, z, 64)
    assert (copied.to_numpy() == 3).all() and (z.to_numpy() == 6).all()
    with pytest.raises(ValueError, match="overlap"):
        z[:32].copy_from(z[16:48])


def test_launches_in_order_without_copies(add: Any, context: Context) -> None:
    n = 10_000
    x = buffers.full(n, 1, "float32", context)
    total = buffers.zeros(n, "float32", context)
    metadata = SimpleNamespace(data={})
    for _ in range(500):  # more than the ring of command buffers holds
        add((-(-n // 64),), x, total, total, n, launch_metadata=metadata, hooks=(None, lambda metadata: None))
    assert (total.to_numpy() == 500).all()
    assert metadata.data["transfers"] == add.launcher.transfers == dict.fromkeys("xyz", "device")


def test_host_and_device_memory_in_one_launch(add: Any, context: Context) -> None:
    x, z = buffers.full(64, 1, "float32", context), buffers.zeros(64, "float32", context)
    host = torch.full((64,), 2.0)
    add((1,), x, host, z, 64)
    assert (z.to_numpy() == 3).all()
    add((1,), x, z, host, 64)
    assert (host == 4).all()
    assert add.launcher.transfers == {"x": "device", "y": "device", "z": context.host_memory}


def test_freed_buffers_are_refused(add: Any, context: Context) -> None:
    x = buffers.full(64, 1, "float32", context)
    view = x[:32]
    x.free()
    x.free()
    for freed in (x, view):
        with pytest.raises(RuntimeError, match=r"DeviceBuffer\(.*\) was freed"):
            add((1,), freed, freed, freed, 1)
        with pytest.raises(RuntimeError, match="was freed"):
            freed.to_numpy()


def test_another_devices_tensor_is_refused(add: Any, context: Context) -> None:
    other = SimpleNamespace(
        data_ptr=lambda: 64,
        dtype="float32",
        is_cpu=False,
        device=SimpleNamespace(type="spirv", index=context.index + 1),
    )
    fine = buffers.zeros(64, "float32", context)
    with pytest.raises(ValueError, match=r"argument 'y' \(\*fp32\): .*the kernel was launched on 'spirv:0'"):
        add((1,), fine, other, fine, 1)


def test_addresses_that_are_no_memory_are_refused(context: Context) -> None:
    held = buffers.zeros(8, "int32", context)
    native = context.native
    assert native.owns(held.data_ptr(), 32)
    assert not native.owns(16, 4)
    for call in (
        lambda: native.fill(16, 4, 0),
        lambda: native.copy(held.data_ptr(), 16, 4),
        lambda: native.upload(16, 0, 4),
        lambda: native.download(0, held.data_ptr(), 1 << 50),
    ):
        with pytest.raises(ValueError, match="are not memory of this device, or were freed"):
            call()
    with pytest.raises(ValueError, match="multiples of 4"):
        native.fill(held.data_ptr(), 3, 0)


def test_out_of_device_memory(context: Context) -> None:
    before = context.memory.pool.reserved
    most = (
        r"the device has no room for .*(the device's buffers have at most \d+ bytes|the system has no memory for \d+)"
    )
    with pytest.raises(OutOfDeviceMemory, match=most):
        buffers.empty(1 << 60, "int8", context)
    context.raise_validation_errors()
    assert context.memory.pool.reserved <= before
    assert (buffers.full(8, 3, "int8", context).to_numpy() == 3).all()


def test_events_bound_the_work_between_them(add: Any, context: Context) -> None:
    if context is not current():
        return  # events are the current context's
    interface = DeviceInterface()
    n = 1 << 20
    x, z = buffers.full(n, 1, "float32"), buffers.zeros(n, "float32")
    start, middle, end = (interface.Event(enable_timing=True) for _ in range(3))
    with pytest.raises(RuntimeError, match="two recorded events"):
        start.elapsed_time(end)
    assert not start.query()
    start.record()
    for _ in range(3):
        add((-(-n // 64),), x, z, z, n)
    middle.record()
    add((-(-n // 64),), x, z, z, n)
    end.record()
    end.synchronize()
    assert start.query() and middle.query() and end.query()
    first, second = start.elapsed_time(middle), middle.elapsed_time(end)
    assert first > 0 and second > 0
    assert start.elapsed_time(end) == pytest.approx(first + second)
    assert end.elapsed_time(start) == pytest.approx(-(first + second))
    plain = interface.Event()
    plain.record()
    plain.synchronize()
    assert plain.query()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        plain.elapsed_time(end)


def test_streams(context: Context) -> None:
    interface = DeviceInterface()
    stream = interface.Stream()
    assert interface.current_stream() == interface.default_stream() == interface.ExternalStream(5) != stream
    with interface.stream(stream), interface.device(0):
        assert interface.current_stream() == stream
        event = stream.record_event()
    stream.wait_event(event)
    stream.wait_stream(interface.default_stream())
    stream.synchronize()
    interface.synchronize()
    assert stream.query() and event.query()
    assert interface.device_count() >= 1 and interface.current_device() == 0


def test_benchmark_cache_is_written() -> None:
    driver = SPIRVDriver()
    for cache in (driver.get_empty_cache_for_benchmark(), buffers.full(1024, 9, "uint8")):
        driver.clear_cache(cache)
        values = cache.to_numpy() if isinstance(cache, buffers.DeviceBuffer) else numpy.frombuffer(cache, "uint8")
        assert not values.any()


@pytest.mark.only_on("Vulkan", "pipelines are Vulkan's")
def test_pipeline_cache_is_replaced_where_it_is_damaged(tmp_path: Any, context: Context) -> None:
    from triton.backends.spirv.runtime.vulkan.pipeline_cache import PipelineCache, unpack

    path = tmp_path / "folder" / "device.bin"
    for contents in (None, b"", b"damaged", b"triton-spirv pipelines 1\n" + bytes(100)):
        if contents is not None:
            path.write_bytes(contents)
        cache = PipelineCache(context.opened.handle, path)
        cache._saved_bytes = -1  # as if a pipeline had been added
        cache.save()
        cache.destroy()
        assert unpack(path.read_bytes())
        assert [entry.name for entry in path.parent.iterdir()] == ["device.bin"]
    foreign = PipelineCache(context.opened.handle, tmp_path / "missing" / "x.bin")
    foreign.save()
    assert not (tmp_path / "missing").exists()
    foreign.destroy()
