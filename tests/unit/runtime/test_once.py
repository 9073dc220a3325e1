"""What a process finds out once, whatever threads ask for it."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from triton.backends.spirv.runtime.once import once_a_process

THREADS = 8


def test_threads_wait_for_the_first() -> None:
    calls: list[int] = []

    @once_a_process
    def find() -> object:
        """Finds it."""
        calls.append(threading.get_ident())
        time.sleep(0.05)
        return object()

    barrier = threading.Barrier(THREADS)

    def ask(_: int) -> object:
        barrier.wait()
        return find()

    with ThreadPoolExecutor(THREADS) as pool:
        found = set(pool.map(ask, range(THREADS)))
    assert len(found) == 1 and len(calls) == 1
    assert find.__doc__ == "Finds it."


def test_what_fails_is_asked_again() -> None:
    answers = iter([ValueError("not yet"), 3])

    @once_a_process
    def find() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="not yet"):
        find()
    assert find() == find() == 3


def test_a_forked_child_asks_again_though_a_thread_of_its_parent_was_asking() -> None:
    started, go_on = threading.Event(), threading.Event()

    @once_a_process
    def find() -> int:
        started.set()
        if os.getpid() == parent:
            go_on.wait()
        return os.getpid()

    parent = os.getpid()
    thread = threading.Thread(target=find)
    thread.start()
    started.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if find() == os.getpid() else 1)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert find() == parent
