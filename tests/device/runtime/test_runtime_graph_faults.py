"""Graphs: what replays raise, what they notice, and what cannot be captured."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import Graph, OutOfBounds, from_numpy
from triton.backends.spirv.runtime.buffer import DeviceBuffer
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.reports.failures import KernelAssertionError
from triton.backends.spirv.runtime.streams import DeviceEvent, DeviceInterface
from triton.backends.spirv.settings import ZERO_COPY

from tests.device.processes import run_script
from tests.device.runtime.graph_kernels import add_kernel
from tests.device.threads import together

SIZE = 1001
GRID = (4,)


@triton.jit
def checked_kernel(x_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x_ptr + offsets, offsets < size, other=0)
    tl.device_assert(values < 3, "values stay below 3")
    tl.store(x_ptr + offsets, values + 1, offsets < size)


def random(size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(size, dtype=np.float32)


def captured(x: DeviceBuffer) -> Graph:
    """x ← 2 x."""
    graph = Graph()
    with graph.capture():
        add_kernel[GRID](x, x, SIZE, BLOCK=256)
    return graph


def test_reports_are_raised_by_the_replay() -> None:
    x = from_numpy(np.zeros(10, np.int32))
    graph = Graph()
    with graph.capture():
        checked_kernel[(1,)](x, 10, BLOCK=16, debug=True)
    for _ in range(3):
        graph.replay()
    np.testing.assert_array_equal(x.to_numpy(), 3)
    for _ in range(2):
        with pytest.raises(KernelAssertionError, match="values stay below 3"):
            graph.replay()


def test_bounds_are_checked_in_the_replay() -> None:
    x, y = from_numpy(random(100)), from_numpy(random(100))
    graph = Graph()
    with graph.capture():
        add_kernel[(1,)](x, y, 101, BLOCK=256, check_bounds=True)
    with pytest.raises(OutOfBounds, match="add_kernel"):
        graph.replay()


def test_every_failure_of_a_replay_is_told() -> None:
    x, y = from_numpy(np.full(100, 9, np.int32)), from_numpy(random(100))
    graph = Graph()
    with graph.capture():
        add_kernel[(1,)](y, y, 101, BLOCK=256, check_bounds=True)
        checked_kernel[(1,)](x, 101, BLOCK=128, debug=True, check_bounds=True)
        checked_kernel[(1,)](x, 100, BLOCK=128, debug=True)
    for value in (9, 11):
        with pytest.raises(OutOfBounds, match="kernel 'add_kernel'") as caught:
            graph.replay()
        outside, *failed = caught.value.__notes__
        assert "kernel 'checked_kernel': load out of bounds" in outside
        found = [
            re.search(r"values stay below 3; program \(0, 0, 0\), element \(\d+,\), value (\d+)$", one)
            for one in failed
        ]
        assert [one and int(one[1]) for one in found] == [value, value + 1]


def test_threads_that_replay_one_graph_each_see_its_failures() -> None:
    x = from_numpy(random(100))
    graph = Graph()
    with graph.capture():
        add_kernel[(1,)](x, x, 101, BLOCK=256, check_bounds=True)
    counts = []

    def work(_: int) -> None:
        for _ in range(50):
            try:
                graph.replay()
                counts.append(0)
            except OutOfBounds as error:
                counts.append(error.count)

    together(work, range(4))
    assert counts == [3] * 200


def test_another_thread_may_replay_while_reports_are_told() -> None:
    graph = captured(from_numpy(random()))
    told: list[int] = []

    def say() -> None:
        told.append(1)
        if len(told) == 1:
            thread = threading.Thread(target=graph.replay)
            thread.start()
            thread.join()

    graph.add_report(lambda: None, lambda: say)
    graph.replay()
    assert len(told) == 2


def free(tensor: DeviceBuffer) -> None:
    tensor.free()


def resize(tensor: Any) -> None:
    tensor.untyped_storage().resize_(1 << 24)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("change", "message"), [(free, "was freed"), (resize, "was resized after the capture")])
def test_tensors_that_change_are_noticed(change: Callable[[Any], None], message: str, inside: bool) -> None:
    """After the capture, and in it behind their launch."""
    if change is resize and current().host_memory != ZERO_COPY:
        pytest.skip("host memory is not the device's")
    y: Any = from_numpy(random()) if change is free else torch.ones(SIZE)
    graph = Graph()
    with graph.capture():
        add_kernel[GRID](y, y, SIZE, BLOCK=256)
        if inside:
            change(y)
    if not inside:
        change(y)
    others = [from_numpy(np.zeros(SIZE, np.float32)) for _ in range(4)]
    with pytest.raises(RuntimeError, match=message):
        graph.replay()
    assert all((other.to_numpy() == 0).all() for other in others)


def test_a_capture_whose_end_fails_leaves_nothing_to_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown:
        """No one can say what this is."""

        @property
        def data_ptr(self) -> None:
            raise ValueError("unknown")

    graph = Graph()
    monkeypatch.setattr(graph, "_recording", Recorded(graph, [(Unknown(), 0)]))
    x = from_numpy(random())
    with pytest.raises(ValueError, match="unknown"), graph.capture():
        add_kernel[GRID](x, x, SIZE, BLOCK=256)
    with pytest.raises(RuntimeError, match="not captured to its end"):
        graph.replay()
    add_kernel[GRID](x, x, SIZE, BLOCK=256)  # this thread launches as before
    np.testing.assert_array_equal(x.to_numpy(), 2 * random())


class Recorded:
    """A graph's recording, with other tensors."""

    def __init__(self, graph: Graph, tensors: list[tuple[object, int]]) -> None:
        self._recording, self.tensors = graph._recording, tensors

    def __getattr__(self, name: str) -> object:
        return getattr(self._recording, name)


def test_what_cannot_be_captured_is_refused() -> None:
    x = from_numpy(random())
    refused, interface = "a graph is being captured", DeviceInterface()
    before = DeviceEvent()
    before.record()
    other = captured(x)
    for action in (
        other.replay,
        lambda: x.fill(0),
        lambda: x.to_numpy(),
        lambda: from_numpy(np.ones(4)),
        lambda: DeviceEvent(enable_timing=True).record(),
        lambda: DeviceEvent().record(),
        interface.synchronize,
        interface.current_stream().synchronize,
        current().native.synchronize,
    ):
        graph = Graph()
        with pytest.raises(RuntimeError, match=refused), graph.capture():
            action()
        with pytest.raises(RuntimeError, match="not captured to its end"):
            graph.replay()
    with Graph().capture():  # what tells of earlier work, and waits for it, is as ever
        before.synchronize()
        assert before.query() and interface.current_stream().query()
        interface.current_stream().wait_stream(interface.Stream())
    with Graph().capture(), pytest.raises(RuntimeError, match="already"), Graph().capture():
        pass
    graph = captured(x)
    with pytest.raises(RuntimeError, match="captured already"), graph.capture():
        pass
    add_kernel[GRID](x, x, SIZE, BLOCK=256)  # this thread launches as before
    x.to_numpy()


def test_a_graph_whose_capture_failed_before_its_first_launch_is_not_captured_again() -> None:
    """Its command buffer cannot be begun twice (VUID-vkBeginCommandBuffer-commandBuffer-00050)."""
    graph = Graph()
    with pytest.raises(KeyError), graph.capture():
        raise KeyError
    with pytest.raises(RuntimeError, match="captured already: make a new one"), graph.capture():
        pass


@pytest.mark.only_on("Vulkan", "a forked child can use the CPU device")
def test_a_child_that_is_forked_in_a_capture_captures_nothing(add_file: Path) -> None:
    script = """
from triton.backends.spirv.runtime import Graph
add, x, graph = load(), buffers.full(64, 1, "float32"), Graph()
pid = None
try:
    with graph.capture():
        add((1, 1, 1), x, x, x, 64)
        pid = os.fork()
        if pid == 0:
            try:
                add((1, 1, 1), x, x, x, 64)
            except RuntimeError as error:
                print("launch:", error, graph.launches, flush=True)
except RuntimeError as error:
    print("end:", error, flush=True)
if pid == 0:
    del graph
    os._exit(0)
print("child:", os.waitpid(pid, 0)[1])
graph.replay()
print("parent:", x.to_numpy()[0])
"""
    done = run_script(script, add_file)
    first, second, third, fourth = done.stdout.splitlines() or pytest.fail(done.stderr)
    assert first.startswith("launch: the device was opened before this process was forked")
    assert first.endswith(" 1") and second.startswith("end: the device was opened before")
    assert (third, fourth) == ("child: 0", "parent: 2.0")
