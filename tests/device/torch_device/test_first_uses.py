"""Any way to begin with the device will do: each of first_uses.py, in a process that has not used the device before."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("torch")

from tests.device.torch_device.first_uses import BEFORE_TRITON, USES


@contextmanager
def _server(*arguments: str) -> Iterator[Callable[[str], tuple[int, str]]]:
    command = [sys.executable, "-m", "tests.device.torch_device.first_uses", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def ask(name: str) -> tuple[int, str]:
            print(json.dumps(name), file=asked, flush=True)
            answer = answers.readline()
            assert answer, "the server has ended"
            status, said = json.loads(answer)
            return status, said

        yield ask
        asked.close()


@pytest.fixture(scope="module")
def begin() -> Iterator[Callable[[str], tuple[int, str]]]:
    """Gives how the process of a name ended: its exit status, and what it wrote last."""
    with _server() as ask:
        yield ask


@pytest.fixture(scope="module")
def begin_before_triton() -> Iterator[Callable[[str], tuple[int, str]]]:
    """The same of processes that have imported torch alone."""
    with _server("torch") as ask:
        yield ask


@pytest.mark.parametrize("name", USES)
def test_a_process_may_begin_with(begin: Callable[[str], tuple[int, str]], name: str) -> None:
    status, said = begin(name)
    assert status == 0, said


@pytest.mark.parametrize("name", BEFORE_TRITON)
def test_that_use_may_import_triton(begin_before_triton: Callable[[str], tuple[int, str]], name: str) -> None:
    status, said = begin_before_triton(name)
    assert status == 0, said
