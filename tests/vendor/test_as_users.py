"""The tools as a user starts them: in processes of their own, by an interpreter that is not .venv's."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from toy_project import git, sources
from user_checkout import PYTHON, Checkout

from tools.project import Project


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def commit_a_change(project: Project, text: str) -> None:
    """A commit in build/upstream that `export` writes to patches/."""
    (project.tree / "python/triton/beta.py").write_text(text)
    git(project.tree, "add", "--all")
    git(project.tree, "commit", "-q", "-m", "third: add beta\n\nWhy: the toy.\nUpstream-Status: not submitted\n")


@pytest.fixture
def half_done(checkout: Checkout) -> tuple[Checkout, dict[str, bytes]]:
    """A checkout whose export was killed, and what it was like before."""
    checkout.ok("apply")
    before = sources(checkout.project)
    commit_a_change(checkout.project, "BETA = 1\n")
    done = checkout.run("export", fault="journal-half")
    assert done.returncode == -signal.SIGKILL, done.stderr
    return checkout, before


def relevant(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path.startswith(("patches/", "overlay/", "upstream.lock"))}


def test_recover_takes_back_what_was_half_done(half_done: tuple[Checkout, dict[str, bytes]]) -> None:
    checkout, before = half_done
    assert relevant(sources(checkout.project)) != relevant(before)
    assert "taken back" in checkout.ok("recover")
    assert relevant(sources(checkout.project)) == relevant(before)


def test_status_tells_of_what_is_half_done_and_changes_nothing(half_done: tuple[Checkout, dict[str, bytes]]) -> None:
    checkout, _ = half_done
    found = relevant(sources(checkout.project))
    told = checkout.ok("status")
    assert "unfinished a change of patches/, overlay/ and the lock" in told
    assert "`recover` takes it back" in told
    assert relevant(sources(checkout.project)) == found
    assert "taken back" in checkout.ok("recover")
    assert "unfinished" not in checkout.ok("status")


def test_status_leaves_an_apply_as_it_is(checkout: Checkout) -> None:
    assert checkout.run("apply", fault="apply-moving").returncode == -signal.SIGKILL
    assert "unfinished an apply" in checkout.ok("status")
    assert "build/upstream is as it was" in checkout.ok("recover")


def test_a_pipe_that_is_closed_is_no_traceback(checkout: Checkout) -> None:
    checkout.ok("apply")
    command = [PYTHON, "-u", "-m", "tools", "status"]
    for buffered in (False, True):
        environment = checkout.environment | ({} if buffered else {"PYTHONUNBUFFERED": "1"})
        with subprocess.Popen(
            command, cwd=checkout.project.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            assert child.stdout is not None and child.stderr is not None
            child.stdout.close()
            assert child.stderr.read().decode() == ""


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null/x"])
def test_a_folder_that_cannot_be_made_is_one_line(checkout: Checkout, place: str) -> None:
    done = checkout.run("new-plugin", "x", place)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.startswith(f"error: {place} cannot be written: ")
