"""A change that cannot be carried out is taken back; `recover` undoes what a killed run left unfinished."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from toy_project import COMMIT, git, sources
from toy_runs import NEW_COMMIT, REBASE, Toy, both, clean

from tools import faults
from tools.errors import ToolError
from tools.goal import goal_of
from tools.hold import hold
from tools.journal import Change, commit
from tools.verbs import apply, check


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """The toy in a git repository with a submodule entry for upstream/."""
    toy = Toy(tmp_path)
    git(toy.project.root, "init", "-q", ".")
    git(toy.project.root, "update-index", "--add", "--cacheinfo", f"160000,{COMMIT},upstream")
    return toy


def lock_index(toy: Toy) -> Path:
    """Keep git from writing the index, as another git process or a mistake would."""
    lock = toy.project.root / ".git/index.lock"
    lock.touch()
    return lock


def test_a_commit_that_is_none_is_refused_before_anything_changes(toy: Toy) -> None:
    before = sources(toy.project)
    done = toy.run("rebase", "--to", "1.1", "--commit", "abc", "--no-test")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: --commit 'abc' is not a full commit id (40 hexadecimal digits, in lower case)"
    )
    assert sources(toy.project) == before
    toy.ok("apply")
    toy.ok("check")


@pytest.mark.parametrize("bad", ["v1.1", "CD" * 20, NEW_COMMIT + "0", "--force"])
def test_other_commits_that_are_none(toy: Toy, bad: str) -> None:
    with pytest.raises(ToolError, match="is not a full commit id"):
        goal_of(toy.project, "1.1", bad)


def test_a_commit_does_not_go_with_a_ref(toy: Toy) -> None:
    with pytest.raises(ToolError, match="'main' is a ref, which names its own commit"):
        goal_of(toy.project, "main", NEW_COMMIT)


def test_a_commit_that_cannot_be_checked_is_warned_about(toy: Toy) -> None:
    done = toy.run(*REBASE)
    assert done.returncode == 0, done.stderr
    assert f"--commit {NEW_COMMIT[:12]} is not checked: v1.1 could not be looked up at file:///nowhere" in done.stderr


def test_the_tag_s_own_commit_is_wanted(toy: Toy, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", ".")
    git(origin, "commit", "-q", "--allow-empty", "-m", "one")
    git(origin, "tag", "v1.1")
    for file in (toy.project.lock_file, toy.project.root / ".gitmodules"):
        file.write_text(file.read_text().replace("file:///nowhere/t.git", str(origin)))
    before = sources(toy.project)
    done = toy.run(*REBASE)
    head = git(origin, "rev-parse", "HEAD").strip()
    assert done.returncode == 1
    assert f"v1.1 at {origin} is commit {head}, --commit names {NEW_COMMIT}: leave --commit out" in done.stderr
    assert sources(toy.project) == before
    toy.ok("rebase", "--to", "1.1", "--commit", head, "--no-test")


def test_a_change_that_git_refuses_is_taken_back(toy: Toy) -> None:
    before = sources(toy.project)
    lock = lock_index(toy)
    done = toy.run(*REBASE)
    assert done.returncode == 1
    assert "error: git cannot pin upstream/ to cdcdcdcdcdcd" in done.stderr
    assert "the change was taken back: lock, patches/ and overlay/ are as they were" in done.stderr
    assert sources(toy.project) == before
    assert not (toy.project.build / "journal").exists()
    toy.ok("status")  # other verbs are not held up
    lock.unlink()
    toy.ok("rebase", "--continue", "--no-test")
    assert toy.project.lock().version == "1.1"
    assert git(toy.project.root, "ls-files", "--stage", "--", "upstream").split()[1] == NEW_COMMIT


@pytest.mark.parametrize(("point", "how"), both("rollback"))
def test_a_rollback_that_is_stopped_goes_on(toy: Toy, point: str, how: str) -> None:
    before = sources(toy.project)
    lock = lock_index(toy)
    toy.stop(*REBASE, point=point, how=how)
    lock.unlink()
    done = toy.run("apply")
    assert done.returncode == 0, done.stderr
    assert "a change that could not be carried out was taken back" in done.stderr
    assert sources(toy.project) == before
    assert clean(toy.project)
    toy.ok("rebase", "--continue", "--no-test")
    assert toy.project.lock().version == "1.1"


@pytest.mark.parametrize(("point", "how"), both("journal")[1:])
def test_recover_takes_back_what_the_next_verb_would_finish(toy: Toy, point: str, how: str) -> None:
    before = sources(toy.project)
    toy.stop(*REBASE, point=point, how=how)
    assert "taken back" in toy.ok("recover")
    assert sources(toy.project) == before
    assert git(toy.project.root, "ls-files", "--stage", "--", "upstream").split()[1] == COMMIT
    # The rebase itself is still going on: a second `recover` gives it up, a third finds nothing.
    assert "the rebase is given up" in toy.ok("recover")
    assert toy.ok("recover") == "nothing is unfinished\n"
    assert sources(toy.project) == before
    assert clean(toy.project)


@pytest.mark.parametrize("point", faults.POINTS["rollback"])
def test_recover_that_is_killed_goes_on(toy: Toy, point: str) -> None:
    before = sources(toy.project)
    toy.stop(*REBASE, point="journal-half", how="killed")
    done = toy.run("recover", fault=point)
    assert done.returncode == -signal.SIGKILL
    toy.ok("recover")
    assert sources(toy.project) == before


@pytest.mark.parametrize("point", ["apply-moving", "apply-reset"])
def test_recover_undoes_an_apply(toy: Toy, point: str) -> None:
    project = toy.project
    apply.run(project, [])
    before = toy.tree()
    (project.patches / "series").write_text("first.patch\n")
    toy.stop("apply", point=point, how="killed")
    assert "build/upstream is as it was" in toy.ok("recover")
    assert toy.tree() == before
    (project.patches / "series").write_text("first.patch\nsecond.patch\n")
    assert check.faults(project) == []


def test_a_journal_that_cannot_be_read_does_not_hold_up_the_tools(toy: Toy) -> None:
    toy.stop(*REBASE, point="journal-half", how="killed")
    shutil.rmtree(toy.project.build / "journal/objects")
    done = toy.run("apply")
    assert done.returncode == 1
    assert "git checkout -- upstream.lock.toml patches overlay" in done.stderr
    assert toy.run("sync").returncode == 0


def test_a_gitlink_that_is_no_commit_is_refused(toy: Toy) -> None:
    before = sources(toy.project)
    with hold(toy.project), pytest.raises(ToolError, match="'abc' is not a full commit id; nothing was changed"):
        commit(toy.project, Change({"upstream.lock.toml": b""}, "abc"))
    assert sources(toy.project) == before


def test_what_is_noted_of_a_commit_survives_a_round_trip(toy: Toy) -> None:
    lock = toy.project.lock_file
    lock.write_text(lock.read_text() + f'\n[commit_notes]\n{COMMIT} = "not confirmed"\n')
    toy.ok(*REBASE)
    notes = dict(toy.project.lock().commit_notes)
    assert notes.pop(NEW_COMMIT).startswith("not checked: v1.1 could not be looked up at file:///nowhere")
    assert notes == {COMMIT: "not confirmed"}
    toy.ok("rebase", "--to", "1.0", "--commit", COMMIT, "--no-test")
    assert toy.project.lock().commit_notes == {COMMIT: "not confirmed"}
    after = lock.read_text()
    toy.ok(*REBASE)
    toy.ok("rebase", "--to", "1.0", "--commit", COMMIT, "--no-test")
    assert lock.read_text() == after


def test_an_abandoned_rebase_is_given_up(toy: Toy) -> None:
    before = sources(toy.project)
    toy.stop(*REBASE, point="rebase-started", how="killed")
    assert "rebase     onto 1.1, stopped at overlay/" in toy.ok("status")
    assert "the rebase is given up" in toy.ok("recover")
    assert sources(toy.project) == before
    assert clean(toy.project)
