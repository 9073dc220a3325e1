"""The parts of the compiler share the seconds that a kernel may take."""

from __future__ import annotations

import time

import pytest
from triton.backends.spirv.patience import TooLong, begin, check, compiling, left


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_COMPILE_TIMEOUT", "0.3")
    begin("")


def part(kernel: str, seconds: float) -> None:
    with compiling(kernel, "a part", lambda: "less of it helps"):
        time.sleep(seconds)
        check()


def test_a_second_part_has_what_the_first_left() -> None:
    begin("k")
    part("k", 0.2)
    assert left("k") <= 0.1
    with pytest.raises(TooLong, match=r"kernel 'k': a part did not end within 0\.3 s: less of it helps"):
        part("k", 0.2)


def test_another_kernel_and_another_compilation_begin_anew() -> None:
    begin("k")
    part("k", 0.2)
    assert left("other") == 0.3
    part("other", 0.2)
    begin("k")
    assert left("k") == 0.3


def test_nothing_is_left_below_zero() -> None:
    begin("k")
    with pytest.raises(TooLong):
        part("k", 0.4)
    assert left("k") == 0.0
