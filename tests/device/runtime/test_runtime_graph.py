"""Graphs: launches that are captured once and replayed together."""

import gc
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.launching.benchmarking import do_bench_graph
from triton.backends.spirv.runtime import Graph, array, from_numpy
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.settings import ZERO_COPY

from tests.device.processes import run_script
from tests.device.runtime.graph_kernels import add_kernel
from tests.device.threads import together


@triton.jit
def scale_kernel(x_ptr, factor, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask) * factor, mask)


@triton.jit
def many_arguments_kernel(
    x_ptr,
    values,  # a tuple, whose elements are arguments each
):
    total = values[0]
    for number in tl.static_range(1, len(values)):
        total += values[number]
    tl.store(x_ptr, tl.load(x_ptr) + total)


SIZE = 1001
GRID = (4,)


def random(size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(size, dtype=np.float32)


def captured(x: Any, y: Any) -> Graph:
    """x ← 2 x + y."""
    graph = Graph()
    with graph.capture():
        scale_kernel[GRID](x, 2.0, SIZE, BLOCK=256)
        add_kernel[GRID](x, y, SIZE, BLOCK=256)
    return graph


def test_nothing_runs_before_the_replay_and_all_does_in_it() -> None:
    x, y = random(), random() + 1
    device_x, device_y = from_numpy(x), from_numpy(y)
    graph = captured(device_x, device_y)
    assert graph.launches == 2
    np.testing.assert_array_equal(device_x.to_numpy(), x)
    wanted = x
    for _ in range(3):
        graph.replay()
        wanted = wanted * np.float32(2) + y
        np.testing.assert_allclose(device_x.to_numpy(), wanted, rtol=1e-6)
    np.testing.assert_array_equal(device_y.to_numpy(), y)


def test_replays_in_a_row_and_launches_between_them_keep_their_order() -> None:
    x = from_numpy(np.ones(SIZE, np.float32))
    y = from_numpy(np.ones(SIZE, np.float32))
    graph = captured(x, y)
    wanted = 1.0
    for number in range(40):
        graph.replay()
        scale_kernel[GRID](x, 0.25, SIZE, BLOCK=256)
        wanted = (2 * wanted + 1) * 0.25
        if number % 3 == 0:
            graph.replay()
            wanted = 2 * wanted + 1
    np.testing.assert_allclose(x.to_numpy(), np.full(SIZE, wanted, np.float32), rtol=1e-5)


def test_memory_of_the_host_is_done_when_the_replay_returns() -> None:
    x = random()
    argument = array(x)
    graph = Graph()
    if current().host_memory != ZERO_COPY:
        with pytest.raises(RuntimeError, match="cannot capture a launch with argument 'x_ptr'"), graph.capture():
            scale_kernel[GRID](argument, 2.0, SIZE, BLOCK=256)
        return
    wanted = x * 2
    with graph.capture():
        scale_kernel[GRID](argument, 2.0, SIZE, BLOCK=256)
    graph.replay()
    np.testing.assert_array_equal(x, wanted)


def test_arguments_live_as_long_as_the_graph() -> None:
    x, y = random(), random() + 1
    graph = Graph()
    kept, dropped = from_numpy(x), from_numpy(y)
    with graph.capture():
        add_kernel[GRID](kept, dropped, SIZE, BLOCK=256)
    del dropped
    gc.collect()
    others = [from_numpy(np.zeros(SIZE, np.float32)) for _ in range(8)]
    graph.replay()
    np.testing.assert_allclose(kept.to_numpy(), x + y, rtol=1e-6)
    assert len(others) == 8


def test_argument_blocks_in_buffers_are_the_launches_own() -> None:
    x = from_numpy(np.zeros(1, np.int64))
    graph = Graph()
    first, second = range(1 << 33, (1 << 33) + 36), range(5 << 33, (5 << 33) + 36)
    with graph.capture():
        many_arguments_kernel[(1,)](x, tuple(first))
        many_arguments_kernel[(1,)](x, tuple(second))
    compiled = many_arguments_kernel[(1,)](x, tuple(first))
    assert compiled.metadata.argument_bytes > 36 * 8
    graph.replay()
    assert x.to_numpy()[0] == 2 * sum(first) + sum(second)


def test_other_threads_launch_as_ever() -> None:
    x, y = from_numpy(np.ones(SIZE, np.float32)), from_numpy(np.ones(SIZE, np.float32))
    scale_kernel[GRID](y, 1.0, SIZE, BLOCK=256)
    graph = Graph()
    with graph.capture():
        scale_kernel[GRID](x, 2.0, SIZE, BLOCK=256)
        thread = threading.Thread(target=lambda: scale_kernel[GRID](y, 3.0, SIZE, BLOCK=256))
        thread.start()
        thread.join()
    assert graph.launches == 1
    np.testing.assert_array_equal(y.to_numpy(), 3)
    np.testing.assert_array_equal(x.to_numpy(), 1)


def test_threads_replay_and_launch_at_once() -> None:
    buffers = [from_numpy(np.zeros(SIZE, np.float32)) for _ in range(4)]
    one = from_numpy(np.ones(SIZE, np.float32))
    graphs = []
    for buffer in buffers:
        graphs.append(Graph())
        with graphs[-1].capture():
            add_kernel[GRID](buffer, one, SIZE, BLOCK=256)

    def work(number: int) -> None:
        for _ in range(50):
            graphs[number].replay()
            add_kernel[GRID](buffers[number], one, SIZE, BLOCK=256)

    together(work, range(4))
    for buffer in buffers:
        np.testing.assert_array_equal(buffer.to_numpy(), 100)


def test_an_empty_graph_and_an_empty_grid() -> None:
    x = random()
    device = from_numpy(x)
    graph = Graph()
    with graph.capture():
        scale_kernel[(0,)](device, 2.0, SIZE, BLOCK=256)
    assert graph.launches == 0
    graph.replay()
    np.testing.assert_array_equal(device.to_numpy(), x)


def test_do_bench_graph_times_the_calls() -> None:
    x = from_numpy(random(1 << 20))
    calls = []

    def run() -> None:
        calls.append(1)
        scale_kernel[(1 << 10,)](x, 1.0, 1 << 20, BLOCK=1024)

    times = do_bench_graph(run, rep=2, return_mode="all")
    assert len(times) == 10 and all(time > 0 for time in times)
    low, high = do_bench_graph(run, rep=2, quantiles=[0.1, 0.9])
    assert 0 < low <= high
    assert len(calls) >= 2 * 7  # one to warm up, five to estimate, one at least to capture


def test_do_bench_graph_knows_the_modes_of_do_bench() -> None:
    with pytest.raises(ValueError, match="return_mode is one of min, max, mean, median, all, not 'nope'"):
        do_bench_graph(lambda: None, return_mode="nope")


def test_a_graph_keeps_its_kernels() -> None:
    @triton.jit
    def passing_kernel(x_ptr):
        tl.store(x_ptr, 1.0)

    x = from_numpy(np.zeros(1, np.float32))
    graph, other = Graph(), Graph()
    for one in (graph, other):
        with one.capture():
            passing_kernel[(1,)](x)
    kernel = passing_kernel[(1,)](x).module
    kernel.unload()
    x.fill(0)
    for one in (graph, other):
        x.fill(0)
        one.replay()
        assert x.to_numpy() == 1 and kernel.loaded
    del one, graph
    gc.collect()
    x.to_numpy()
    assert kernel.loaded
    del other
    gc.collect()
    x.to_numpy()
    assert not kernel.loaded


def test_a_kernel_that_is_unloaded_in_the_capture() -> None:
    @triton.jit
    def passing_kernel(x_ptr):
        tl.store(x_ptr, 2.0)

    x = from_numpy(np.zeros(1, np.float32))
    graph = Graph()
    with graph.capture():
        passing_kernel[(1,)](x).module.unload()
    graph.replay()
    assert x.to_numpy() == 2


def test_a_graph_outlives_its_device(add_file: Path) -> None:
    script = """
from triton.backends.spirv.runtime import Graph
kernel, x, graph = Kernel(current(), "test", module), buffers.full(64, 1, "float32"), Graph()
launch = make_launcher(current(), "test", ADD, indirect=False)
with graph.capture():
    launch(1, 1, 1, 0, kernel.handle, None, None, None, None, x, x, x, 64)
kernel.unload()
graph.replay()
current().close()
print(kernel.loaded)
try:
    graph.replay()
except RuntimeError as error:
    print(error)
del graph
"""
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE=os.environ["TRITON_SPIRV_VALIDATE"])
    assert (done.returncode, done.stdout) == (0, "False\nthe device is closed\n"), done.stderr
    assert "VUID" not in done.stderr


def test_kernels_that_measure_the_device_run_and_are_not_captured(tmp_path: Path) -> None:
    """The first kernel for a device asks for what was measured of it, here while it is captured."""
    script = """
from tests.device.runtime.test_runtime_graph import captured, from_numpy, random
x = from_numpy(random())
graph = captured(x, x)
graph.replay()
print(graph.launches, numpy.array_equal(x.to_numpy(), random() * 4))
"""
    done = run_script(script, TRITON_CACHE_DIR=str(tmp_path))
    assert done.stdout == "2 True\n", done.stderr


def test_tensors_without_elements_are_captured(add_file: Path, way: str) -> None:
    """Wherever they lie: nothing of them is copied."""
    script = """
from triton.backends.spirv.runtime import Graph
add, graph = load(), Graph()
empty, x = array(numpy.zeros(0, numpy.float32)), buffers.full(64, 1, "float32")
with graph.capture():
    add((1, 1, 1), empty, empty, x, 0)
    add((1, 1, 1), x, x, x, 64)
graph.replay()
print(graph.launches, set(x.to_numpy().tolist()))
host = array(numpy.zeros(64, numpy.float32))
try:
    with Graph().capture():
        add((1, 1, 1), empty, host, x, 0)
    print(current().host_memory)
except RuntimeError as error:
    print(error)
"""
    done = run_script(script, add_file, TRITON_SPIRV_HOST_MEMORY=way)
    first, second = done.stdout.splitlines() or pytest.fail(done.stderr)
    assert first == "2 {2.0}"
    assert second == ZERO_COPY or second.startswith("kernel 'test': a graph cannot capture a launch with argument 'y',")
