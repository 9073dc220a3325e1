from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton.runtime import jit


def test_a_driver_may_repeat_a_launch_itself():

    @triton.jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    asked = []

    def relaunch(function, grid, args, keywords):
        asked.append((function, grid, args, keywords))
        return "launched"

    kernel.relaunch = relaunch
    assert kernel[(4,)]("out", BLOCK=8) == "launched"
    assert asked == [(kernel, (4,), ("out",), {"BLOCK": 8})]


def test_an_error_of_the_driver_s_is_the_launch_s_own():

    @triton.jit
    def kernel(out):
        tl.store(out, 1.0)

    def relaunch(*launch):
        raise ValueError("the grid is too large")

    kernel.relaunch = relaunch
    with pytest.raises(ValueError, match="the grid is too large"):
        kernel[(1,)]("out")


def test_a_driver_is_told_of_launches(monkeypatch):
    told = []

    class Driver:
        def remember_launch(self, *launch):
            told.append(launch)

    monkeypatch.setattr(jit, "driver", SimpleNamespace(active=Driver()))
    monkeypatch.setattr("triton.runtime.relaunch.driver", jit.driver)
    from triton.runtime.relaunch import remember_launch

    remember_launch("function", 0, "key", ("out",), {"BLOCK": 8})
    assert told == [("function", 0, "key", ("out",), {"BLOCK": 8})]
