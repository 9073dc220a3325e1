"""The parts of the compiler share the seconds that a kernel may take, which are of processor time."""

import contextlib
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv import compile_time, notices
from triton.backends.spirv.compile_time import (
    CompilingPart,
    Meter,
    Seconds,
    TooLong,
    begin,
    check,
    compiling,
    end,
    kernel_of_torch,
    left_for_driver,
)
from triton.backends.spirv.runtime.vulkan.compilations import Compilations


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of work; by the clock so much more that no busy machine reaches it."""
    monkeypatch.setenv("TRITON_SPIRV_COMPILE_TIMEOUT", "0.3")
    monkeypatch.setattr(compile_time, "CLOCK", 1000)
    begin()


def work(seconds: float, clock: Callable[[], float] = time.thread_time) -> None:
    """Takes processor time."""
    start = clock()
    while clock() - start < seconds:
        pass


def part(kernel: str, seconds: float) -> None:
    with compiling(kernel, "a part", lambda: "less of it helps"):
        work(seconds)
        check()


def test_a_second_part_has_what_the_first_left() -> None:
    part("k", 0.2)
    with pytest.raises(TooLong, match=r"kernel 'k': a part did not end within 0\.3 s: less of it helps"):
        part("k", 0.2)


def test_what_was_before_the_first_part_counts() -> None:
    work(0.35)
    with pytest.raises(TooLong):
        part("k", 0.0)


def test_the_driver_has_what_is_left_once() -> None:
    part("k", 0.2)
    end("k")
    assert left_for_driver("k").work <= 0.1
    assert left_for_driver("k") == Seconds(0.3, 300.0)


def test_another_kernel_is_loaded_in_all_of_the_time() -> None:
    part("k", 0.2)
    end("k")
    assert left_for_driver("other") == Seconds(0.3, 300.0)


def test_a_compilation_that_failed_is_over() -> None:
    with pytest.raises(TooLong):
        part("k", 0.4)
    part("k", 0.2)  # as if the next one began with a later stage
    end("k")
    assert left_for_driver("k") == Seconds(0.3, 300.0)


def test_waiting_is_no_work_but_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose processors do something else."""
    with compiling("k", "a part", lambda: "less of it helps"):
        time.sleep(0.6)
        check()
    monkeypatch.setattr(compile_time, "CLOCK", 10)
    with pytest.raises(
        TooLong, match=r"did not end within 3 s by the clock, 10 times TRITON_SPIRV_COMPILE_TIMEOUT: less"
    ):
        with compiling("k", "a part", lambda: "less of it helps"):
            time.sleep(2.5)
            check()


@pytest.mark.parametrize("name", ["add_kernel", "triton_poi_fused_add_0"])
def test_of_torchs_kernels_one_line_tells_for_all(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compile_time, "NOTICE", 0.1)
    monkeypatch.setattr(notices, "_told", set())
    monkeypatch.setenv("TRITON_SPIRV_QUIET", "0")
    monkeypatch.setenv("TRITON_SPIRV_COMPILE_TIMEOUT", "60")
    for number in range(3):
        with contextlib.nullcontext() if name.startswith("triton_") else kernel_of_torch():
            with compiling(f"{name}{number}", "a part", lambda: "num_warps=8 instead of 4"):
                time.sleep(0.3)
    (told,) = caplog.messages
    assert told.startswith("torch's kernels are compiled when they are first used") and "num_warps" not in told
    assert "has worked on it" not in capfd.readouterr().err
    with compiling("mine", "a part", lambda: "num_warps=8 instead of 4"):
        time.sleep(0.3)
    assert "kernel 'mine': a part has worked on it for 0.1 s" in capfd.readouterr().err


def test_many_short_kernels_of_torch_are_told_of_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = iter(range(9))
    monkeypatch.setattr(compile_time, "time", SimpleNamespace(monotonic=lambda: 0.1 * next(clock)))
    monkeypatch.setattr(compile_time, "_torch_took", 0.0)
    monkeypatch.setattr(compile_time, "NOTICE", 0.25)
    monkeypatch.setattr(notices, "_told", set())
    monkeypatch.setenv("TRITON_SPIRV_QUIET", "0")
    for number in range(4):
        with kernel_of_torch():
            pass
        assert len(caplog.messages) == (number >= 2)


def test_the_error_of_a_kernel_of_torchs_has_no_advice_about_it() -> None:
    with pytest.raises(
        TooLong, match=r"did not end within 0\.3 s: TRITON_SPIRV_COMPILE_TIMEOUT=<seconds> allows more$"
    ):
        part("triton_red_fused_sum_1", 0.5)


def driver(make: Callable[[Meter], Any], most: Seconds, of: Compilations | None = None) -> Any:
    return (of or Compilations()).wait(b"", make, CompilingPart("k", "the driver", lambda: "less of it helps"), most)


def test_a_driver_that_is_not_given_the_processor_is_waited_for() -> None:
    assert driver(lambda meter: time.sleep(0.6) or 7, Seconds(0.3, 60.0)) == 7
    with pytest.raises(TooLong, match="'k': the driver did not end within 300 s by the clock"):
        driver(lambda meter: time.sleep(0.9), Seconds(0.3, 0.5))


def test_a_driver_that_works_too_long_is_not() -> None:
    ended = threading.Event()
    with pytest.raises(TooLong, match=r"'k': the driver did not end within 0\.3 s: less"):
        driver(lambda meter: (work(0.6), ended.set()), Seconds(0.3, 60.0))
    assert ended.wait(60)


def test_what_is_waited_for_before_does_not_count() -> None:
    """A driver that compiles late begins behind what was launched before."""

    def make(meter: Meter) -> tuple[float, float]:
        meter.pause()
        work(0.5)
        began = time.monotonic() - meter.spent.clock  # what was before the pause counts
        meter.count(time.process_time)
        work(0.1, time.process_time)
        return meter.spent.clock, time.monotonic() - began

    counted, since = driver(make, Seconds(0.3, 60.0))
    assert 0.1 <= counted <= since


def test_whoever_comes_later_waits_for_as_long_again() -> None:
    compilations = Compilations()
    made = [0]

    def make(meter: Meter) -> int:
        made[0] += 1
        work(0.5)
        return 7

    with pytest.raises(TooLong):
        driver(make, Seconds(0.3, 60.0), compilations)
    assert compilations.go_on
    assert driver(make, Seconds(0.3, 60.0), compilations) == 7
    assert made == [1]
