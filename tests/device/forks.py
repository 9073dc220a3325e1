"""Programs of the tests in forks of a process that has imported torch and has not used a device: the import takes two
seconds. For tests of what such a program does, not of what is imported when.

As a program this is the server: it reads the program and its environment, forks, and answers in a line with how the
fork ended and what it wrote. ``run_python`` does that with a command, in forks of a process that has imported triton
and this compiler, too: what a first kernel imports takes another second.
"""

import atexit
import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path

#: After these a fork is ended that does not end by itself.
SECONDS = 240

Run = Callable[..., subprocess.CompletedProcess[str]]

#: Variables that are read when they matter, not when torch or triton is imported: a fork may have others than its
#: server. All others make a server of their own.
_READ_LATER = ("TRITON_SPIRV_", "TRITON_CACHE_DIR", "TRITON_DEFAULT_FP_FUSION", "PYTEST_CURRENT_TEST", "VK_")
_READ_AT_IMPORT = ("TRITON_SPIRV_TORCH_DEVICE", "TRITON_SPIRV_BACKEND")
#: Modules that import most of what compiles and launches a first kernel.
_OF_A_KERNEL = (
    "triton.backends.spirv.cpu.module_translation",
    "triton.backends.spirv.launching.launcher",
    "triton.backends.spirv.lowering.entry_point",
    "triton.backends.spirv.runtime.device_choice",
    "triton.backends.spirv.stages",
    "triton.experimental.gluon",
)
_SERVERS = ExitStack()
atexit.register(_SERVERS.close)


@contextmanager
def _serving(environment: Mapping[str, str], *arguments: str) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Gives what asks a server, whose environment is that in which torch is imported."""
    command = [sys.executable, "-m", "tests.device.forks", *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=environment,
        start_new_session=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def ask(*question: object) -> tuple[int, str, str]:
            print(json.dumps(question), file=asked, flush=True)
            answer = answers.readline()
            assert answer, "the server has ended"
            status, out, err = json.loads(answer)
            return status, out, err

        yield ask
        asked.close()


@contextmanager
def torch_server(**environment: str) -> Iterator[Run]:
    """Gives ``run(script, **environment)``. The environment of the server is that in which torch is imported."""
    with _serving(os.environ | environment) as ask:
        yield lambda script, **changed: subprocess.CompletedProcess(script, *ask(script, changed))


@cache
def _triton_server(environment: frozenset[tuple[str, str]]) -> Callable[..., tuple[int, str, str]]:
    """Asks a server that this process has, for each environment that matters when torch and triton are imported."""
    return _SERVERS.enter_context(_serving(dict(environment), "triton"))


def run_python(
    arguments: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs what ``python ARGUMENTS`` runs (``-c``, ``-m``, or a file), in a fork that has imported torch, triton and
    the compiler: not for tests of what is imported, of signals, or of the interpreter's options."""
    environment = dict(os.environ if env is None else env)
    at_import = frozenset(
        (name, value)
        for name, value in environment.items()
        if name in _READ_AT_IMPORT or not name.startswith(_READ_LATER)
    )
    status, out, err = _triton_server(at_import)(list(arguments), environment, str(cwd or Path.cwd()))
    return subprocess.CompletedProcess(list(arguments), status, out, err)


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


def _command(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """What an interpreter does with such a command, from its start to its end."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    kind, *rest = arguments
    status = 0
    try:
        if kind == "-c":
            sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
            main = sys.modules["__main__"] = type(sys)("__main__")
            exec(compile(rest[0], "<string>", "exec"), vars(main))
        elif kind == "-m":
            sys.argv, sys.path[0] = ["-m", *rest[1:]], folder
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = arguments, str(Path(kind).resolve().parent)
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:  # as the interpreter tells it
        traceback.print_exception(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def main() -> None:
    """The server."""
    import torch  # noqa: F401  so that no fork imports it again

    assert "triton" not in sys.modules
    body: Callable[..., None] = _program
    if sys.argv[1:] == ["triton"]:
        import triton.language  # noqa: F401

        for name in _OF_A_KERNEL:
            import_module(name)
        body = _command
    for line in sys.stdin:
        print(json.dumps(forked(partial(body, *json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
