"""CUDA's streams go on where the Vulkan device that they wait for fails; the thread that launched gets the error."""

import threading
from typing import Any

import pytest
from triton.backends.spirv.runtime.cuda.stream_watch import StreamWatch, raise_in

#: Seconds after which a test has failed; no step takes nearly as long.
LIMIT = 60


class Device:
    """Work ends, or fails, once ``ends`` is set."""

    def __init__(self, fails: bool) -> None:
        self.ends, self.waited, self.failed, self._fails = threading.Event(), threading.Event(), False, fails

    def done(self, value: int) -> bool:
        return self.ends.is_set() and not self._fails

    def synchronize(self) -> None:
        self.waited.set()
        assert self.ends.wait(LIMIT)
        if self._fails:
            self.failed = True
            raise RuntimeError("add.py:7: kernel 'add' did not end")


def test_the_thread_that_launched_gets_the_error_before_its_stream_goes_on() -> None:
    device, stream, released = Device(fails=True), threading.Event(), list[int]()

    def release(value: int) -> None:
        released.append(value)
        stream.set()

    watch = StreamWatch(device, lambda: False, release)
    for value in (6, 7):
        watch.expect(value)
    assert device.waited.wait(LIMIT)
    with pytest.raises(RuntimeError, match="add.py:7: kernel 'add' did not end"):
        device.ends.set()
        assert stream.wait(LIMIT)  # as torch.cuda.synchronize() would
        while True:
            pass
    assert stream.wait(LIMIT) and released == [7]


def test_an_error_that_another_thread_has_is_not_raised_again() -> None:
    device, stream = Device(fails=True), threading.Event()
    watch = StreamWatch(device, lambda: True, lambda value: stream.set())
    watch.expect(1)
    assert device.waited.wait(LIMIT)
    device.ends.set()
    assert stream.wait(LIMIT)
    for _ in range(1000):  # an exception would show here
        pass


def test_work_that_ends_releases_nothing() -> None:
    device = Device(fails=False)
    watch = StreamWatch(device, lambda: False, lambda value: pytest.fail(f"{value} was released"))
    watch.expect(1)
    assert device.waited.wait(LIMIT)
    device.waited.clear()
    device.ends.set()
    watch.expect(2)
    device.ends.clear()
    watch.expect(3)
    assert device.waited.wait(LIMIT)  # the watch goes on
    device.ends.set()


def test_the_watch_ends_with_its_device() -> None:
    device = Device(fails=False)
    watch = StreamWatch(device, lambda: False, lambda value: pytest.fail(f"{value} was released"))
    watch.expect(1)
    thread = watch._watching
    assert device.waited.wait(LIMIT) and thread is not None and thread.is_alive()
    device.ends.set()
    watch.end()
    assert not thread.is_alive()


def test_an_error_for_a_thread_that_ended_is_the_main_threads() -> None:
    ended: Any = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    with pytest.raises(RuntimeError, match="^lost; .*TRITON_SPIRV_CHECK_BOUNDS=1 finds it$"):
        raise_in(ended.ident, RuntimeError("lost"))
        while True:
            pass
