"""The parts of the compiler share the seconds that a kernel may take."""

from __future__ import annotations

import time

import pytest
from triton.backends.spirv.patience import TooLong, begin, check, compiling, end, left_for_driver


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_COMPILE_TIMEOUT", "0.3")
    begin()


def part(kernel: str, seconds: float) -> None:
    with compiling(kernel, "a part", lambda: "less of it helps"):
        time.sleep(seconds)
        check()


def test_a_second_part_has_what_the_first_left() -> None:
    part("k", 0.2)
    with pytest.raises(TooLong, match=r"kernel 'k': a part did not end within 0\.3 s: less of it helps"):
        part("k", 0.2)


def test_what_was_before_the_first_part_counts() -> None:
    time.sleep(0.35)
    with pytest.raises(TooLong):
        part("k", 0.0)


def test_the_driver_has_what_is_left_once() -> None:
    part("k", 0.2)
    end("k")
    assert left_for_driver("k") <= 0.1
    assert left_for_driver("k") == 0.3


def test_another_kernel_is_loaded_in_all_of_the_time() -> None:
    part("k", 0.2)
    end("k")
    assert left_for_driver("other") == 0.3


def test_a_compilation_that_failed_is_over() -> None:
    with pytest.raises(TooLong):
        part("k", 0.4)
    part("k", 0.2)  # as if the next one began with a later stage
    end("k")
    assert left_for_driver("k") == 0.3
