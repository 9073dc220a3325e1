"""Programs of the tests in forks of a process that has imported torch and has not used a device: the import takes two
seconds. For tests of what such a program does, not of what is imported when.

As a program this is the server: it reads the program and its environment, forks, and answers in a line with how the
fork ended and what it wrote.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

#: After these a fork is ended that does not end by itself.
SECONDS = 240

Run = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def torch_server(**environment: str) -> Iterator[Run]:
    """Gives ``run(script, **environment)``. The environment of the server is that in which torch is imported."""
    command = [sys.executable, "-m", "tests.device.forks"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def run(script: str, **changed: str) -> subprocess.CompletedProcess[str]:
            print(json.dumps([script, changed]), file=asked, flush=True)
            answer = answers.readline()
            assert answer, "the server has ended"
            return subprocess.CompletedProcess(script, *json.loads(answer))

        yield run
        asked.close()


def forked(body: Callable[[], object]) -> tuple[int, str, str]:
    """The exit status of a fork that calls ``body``, and what it wrote to stdout and to stderr."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            signal.alarm(SECONDS)
            failed = 1
            try:
                body()
                failed = 0
            except BaseException:  # told to the test, whatever it is
                traceback.print_exc()
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(failed)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def _program(script: str, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    exec(script, {"__name__": "__main__"})


def main() -> None:
    """The server."""
    import torch  # noqa: F401  so that no fork imports it again

    assert "triton" not in sys.modules
    for line in sys.stdin:
        print(json.dumps(forked(partial(_program, *json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
