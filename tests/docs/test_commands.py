"""The commands on the pages are there, and take the options that are shown. None is run further than its parser."""

import argparse
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pytest
from triton.backends.spirv import cli

from tests.upstream.__main__ import main as upstream_tests
from tools.__main__ import ALONE, VERBS
from tools.project import ROOT as PROJECT_ROOT
from tools.project import Project
from tools.verbs import fuzz, rebase

from .pages import PAGES, ROOT, Command, commands

_COMMANDS = [command for page in PAGES for command in commands(page)]


class _Parsed(Exception):
    """The command line was read: the program goes no further."""


class _Wrong(Exception):
    """What a parser says of a command line."""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any], bool], None]:
    """Calls a program up to the end of its parser. If the command is not ``whole``, arguments may be missing."""
    parse = argparse.ArgumentParser.parse_args

    def stop(self: argparse.ArgumentParser, args: Sequence[str] | None = None, namespace: Any = None) -> NoReturn:
        parse(self, args, namespace)
        raise _Parsed

    def error(self: argparse.ArgumentParser, message: str) -> NoReturn:
        raise _Wrong(message)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(argparse.ArgumentParser, "error", error)

    def call(program: Callable[[], Any], whole: bool) -> None:
        try:
            program()
        except _Parsed:
            return
        except _Wrong as wrong:
            if whole or "required" not in str(wrong):
                raise
            return
        raise AssertionError("the program has read no command line")

    return call


def _options(words: Sequence[str]) -> list[str]:
    return [word.split("=")[0] for word in words if word.startswith("-")]


def _run_tools(words: Sequence[str], command: Command, parsed: Callable[..., None]) -> None:
    if not words or words == ("…",):
        return
    verb, *rest = words
    assert verb in VERBS, f"tools has no verb {verb}"
    programs: dict[str, Callable[[list[str]], Any]] = {
        "fuzz": lambda arguments: fuzz.run(Project(PROJECT_ROOT), arguments),
        "rebase": rebase.parse,
        "upstream-tests": upstream_tests,
    }
    if verb in programs and rest:
        parsed(lambda: programs[verb](list(rest)), command.whole)
    elif verb == "wheel":
        _setup(("bdist_wheel", *rest))
    elif verb == "test":
        _pytest([word for word in rest if word not in ("--fast", "--whole", "--for")])
    else:
        assert not rest or verb not in ALONE, f"{verb} has no arguments"
        for option in _options(rest):
            assert option in VERBS[verb][0], f"{verb} has no option {option}"


def _setup(words: Sequence[str]) -> None:
    known = runpy.run_path(str(ROOT / "setup.py"))["_COMMANDS"]
    name, *rest = words
    if name == "…":
        return
    options = {f"--{long.rstrip('=')}": f"-{short}" if short else "" for long, short, _ in known[name].user_options}
    for option in _options(rest):
        assert option in options or option in options.values(), f"setup.py {name} has no option {option}"


def _pytest(words: Sequence[str]) -> None:
    """Files and folders are there; what follows -k or -m is pytest's."""
    for before, word in zip(("", *words), words, strict=False):
        if "/" in word and before not in ("-k", "-m"):
            assert (ROOT / word).exists(), f"{word} is not there"


def _module(name: str, rest: Sequence[str], command: Command, parsed: Callable[..., None]) -> None:
    path = ROOT / name.replace(".", "/")
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    assert file.is_file(), f"there is no module {name}"
    source = file.read_text(encoding="utf-8")
    assert "__main__" in source or file.stem == "__main__", f"{name} is not a program"
    if not rest or "sys.argv" in source:
        return
    if not command.whole:  # imports can take seconds, and a sentence names an option or two
        for option in _options(rest):
            assert f'"{option}"' in source, f"{name} has no option {option}"
        return

    def run() -> None:
        argv = sys.argv
        sys.argv = [str(file), *rest]
        try:
            runpy.run_module(name, run_name="__main__")
        finally:
            sys.argv = argv

    parsed(run, command.whole)


def _python(words: Sequence[str], command: Command, parsed: Callable[..., None]) -> None:
    first, *rest = words
    if first == "-m":
        name, *rest = rest
        if name == "tools":
            _run_tools(tuple(rest), command, parsed)
        elif name == "pytest":
            _pytest(rest)
        elif name != "venv":  # Python's own
            _module(name, rest, command, parsed)
    elif first == "setup.py":
        _setup(rest)
    else:
        source = (ROOT / first).read_text(encoding="utf-8")
        for option in _options(rest):
            assert option in source, f"{first} has no option {option}"


@pytest.mark.parametrize("command", _COMMANDS, ids=str)
def test_a_command_is_there_with_its_options(command: Command, parsed: Callable[..., None]) -> None:
    program, *rest = command.words
    if program == "triton-spirv":
        parsed(lambda: cli.main(rest), command.whole)
    elif program == "torchrun":
        _module(rest[rest.index("-m") + 1], [], command, parsed)
    else:
        _python(rest, command, parsed)


@pytest.mark.parametrize(
    "wrong",
    [
        "triton-spirv inspekt",
        "triton-spirv compile kernel.py:add --signatures x",
        "python3 -m tools tests",
        "python3 -m tools rebase --onto 3.9.0",
        "python3 -m tools status --all",
        "python -m benchmarks.gpus",
        "python -m benchmarks.gpu --fast",
        "python setup.py bdist_wheel --plugin",
        "python -m pytest tests/device/test_nothing.py",
    ],
)
def test_a_wrong_command_is_found(wrong: str, parsed: Callable[..., None]) -> None:
    command = Command("a page", 1, tuple(wrong.split()), whole=True)
    with pytest.raises((AssertionError, _Wrong)):
        test_a_command_is_there_with_its_options(command, parsed)


def test_commands_are_found_on_pages() -> None:
    """A page whose commands are no longer read would pass unseen."""
    pages = {command.page for command in _COMMANDS}
    assert {
        "README.md",
        "CONTRIBUTING.md",
        "docs/internals/building.md",
        "docs/internals/rebasing.md",
        "docs/inspecting.md",
    } <= pages
    assert re.search("--signature", " ".join(" ".join(command.words) for command in _COMMANDS if command.whole))
