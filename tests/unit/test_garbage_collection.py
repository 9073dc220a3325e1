"""Python's garbage collector while stages of the compiler run."""

import gc
import threading

import pytest
from triton.backends.spirv.garbage_collection import paused_collector


def test_it_is_off_inside_and_as_before_behind_an_error() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="x"), paused_collector():
        assert not gc.isenabled()
        raise ValueError("x")
    assert gc.isenabled()


def test_it_stays_off_where_the_program_turned_it_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_of_several_threads_turns_it_on() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with paused_collector():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with paused_collector():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join(10)
    assert gc.isenabled()
