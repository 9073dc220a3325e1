"""Each verb works on a checkout whose index has the submodule entry of upstream/, and on one whose index lacks it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from toy_project import COMMIT, TAG, git
from toy_runs import NEW_COMMIT, REBASE, Toy, build

from tools.errors import ToolError
from tools.packaging import source_form
from tools.project import Project
from tools.submodule import CHECK_OUT, entry_of
from tools.verbs import demo
from tools.verbs import test as test_verb

ROOT = Path(__file__).parents[2]
NOTE = "note: the index has no submodule entry for upstream/: `python3 -m tools submodule` adds it\n"
OK = "ok: lock, series and tree agree\n"


@pytest.fixture(params=["with the entry", "without it"])
def toy(request: pytest.FixtureRequest, tmp_path: Path) -> Toy:
    """A git repository on the toy upstream."""
    toy = Toy(tmp_path)
    git(toy.project.root, "init", "-q", ".")
    (toy.project.root / ".gitignore").write_text("/build/\n/dist/\n")
    git(toy.project.root, "add", ".")
    if request.param == "with the entry":
        git(toy.project.root, "update-index", "--add", "--cacheinfo", f"160000,{COMMIT},upstream")
        toy.project.submodule.mkdir()
    git(toy.project.root, "commit", "-q", "-m", "the toy")
    return toy


def expected(toy: Toy) -> str:
    """What `check` prints where nothing is wrong."""
    return OK if entry_of(toy.project.root) else NOTE + OK


def status_of(toy: Toy) -> str:
    """What git calls changed."""
    return git(toy.project.root, "status", "--porcelain")


def test_the_queue(toy: Toy) -> None:
    before = entry_of(toy.project.root)
    toy.ok("sync")
    toy.ok("apply")
    assert "second.patch: applied" in toy.ok("status")
    assert toy.ok("check") == expected(toy)
    git(toy.project.tree, "commit", "-q", "--amend", "-m", "second: add it\n\nWhy: so.\nUpstream-Status: not submitted")
    toy.ok("export")
    assert toy.ok("check") == expected(toy)
    assert toy.ok("recover") == "nothing is unfinished\n"
    assert entry_of(toy.project.root) == before


def test_a_rebase_moves_the_entry_that_is_there(toy: Toy) -> None:
    had = entry_of(toy.project.root)
    toy.ok(*REBASE)
    assert entry_of(toy.project.root) == (NEW_COMMIT if had else "")
    toy.ok("apply")
    assert toy.ok("check") == expected(toy)


def test_a_rebase_that_is_taken_back(toy: Toy) -> None:
    had = entry_of(toy.project.root)
    toy.stop(*REBASE, point="journal-carried-out", how="killed")
    assert "taken back" in toy.ok("recover")
    assert entry_of(toy.project.root) == had
    assert status_of(toy) == ""


def test_a_wheel(toy: Toy) -> None:
    toy.ok("apply")
    done = build(toy, "build_wheel")
    assert done.returncode == 0, done.stderr
    (wheel,) = toy.project.dist.glob("*.whl")
    assert TAG in wheel.name


def test_tests_and_demo(toy: Toy, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """With the installation and the linters left out: kernels cannot run from a toy wheel."""
    project = toy.project
    toy.ok("apply")
    for verb in (test_verb, demo):
        monkeypatch.setattr(verb, "ensure_installed", lambda project: project.dist / "toy.whl")
    monkeypatch.setattr(test_verb, "_lint", lambda project: [])
    (project.root / "test_toy.py").write_text("def test_toy():\n    assert True\n")
    assert test_verb.run(project, [str(project.root / "test_toy.py"), "-n0", "-c", "/dev/null"]) == 0
    assert expected(toy) in capfd.readouterr().out
    (project.root / "examples").mkdir()
    (project.root / "examples/demo.py").write_text("print('the demo ran')\n")
    assert demo.run(project, []) == 0
    assert "the demo ran" in capfd.readouterr().out


def test_the_verb_pins_upstream_to_the_lock_s_commit(toy: Toy) -> None:
    toy.ok("apply")
    for _ in range(2):
        assert f"the index pins upstream/ to v1.0, commit {COMMIT}" in toy.ok("submodule")
        assert entry_of(toy.project.root) == COMMIT
        assert toy.ok("check") == OK
    assert status_of(toy) in ("", "A  upstream\n")
    with (toy.project.root / ".gitmodules").open("a") as file:
        file.write("\tupdate = none\n")  # as in clones that leave it out
    assert toy.ok("check") == OK


def test_an_entry_of_another_commit_is_a_fault(toy: Toy) -> None:
    toy.ok("apply")
    git(toy.project.root, "update-index", "--add", "--cacheinfo", f"160000,{NEW_COMMIT},upstream")
    done = toy.run("check")
    told = f"submodule-commit: upstream/ is pinned to {NEW_COMMIT[:12]}, upstream.lock.toml to {COMMIT[:12]}\n"
    assert (done.returncode, done.stdout) == (1, told)
    toy.ok("submodule")
    assert toy.ok("check") == OK


def test_what_needs_upstream_says_how_to_have_it(toy: Toy) -> None:
    command = CHECK_OUT
    if not entry_of(toy.project.root):
        command = f"python3 -m tools submodule && {command}"
    done = toy.run("rebase", "--to", "main")
    assert (done.returncode, f"run `{command}`; a release can be named" in done.stderr) == (1, True)
    with pytest.raises(ToolError, match=re.escape(f"upstream/ is not checked out: run `{command}` (if")):
        source_form.check_submodule(toy.project, toy.project.lock())


def test_it_is_checked_out_though_clones_leave_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``update = none`` keeps a recursive clone from upstream's whole history."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    upstream, project, clone = (tmp_path / name for name in ("triton", "project", "clone"))
    for folder in (upstream, project):
        folder.mkdir()
        git(folder, "init", "-q", ".")
    (upstream / "setup.py").write_text("")
    git(upstream, "add", "setup.py")
    git(upstream, "commit", "-q", "-m", "upstream")
    modules = f'[submodule "upstream"]\n\tpath = upstream\n\turl = {upstream}\n\tupdate = none\n'
    (project / ".gitmodules").write_text(modules)
    git(project, "add", ".gitmodules")
    commit = git(upstream, "rev-parse", "HEAD").strip()
    git(project, "update-index", "--add", "--cacheinfo", f"160000,{commit},upstream")
    git(project, "commit", "-q", "-m", "project")
    git(tmp_path, "clone", "-q", "--recurse-submodules", str(project), str(clone))
    assert list((clone / "upstream").iterdir()) == []
    git(clone, *CHECK_OUT.split()[1:])
    assert (clone / "upstream/setup.py").is_file()


def test_clones_of_this_project_leave_it_out() -> None:
    """If the checkout has the entry, it is the lock's commit."""
    project = Project(ROOT)
    assert git(ROOT, "config", "--file", ".gitmodules", "submodule.upstream.update").strip() == "none"
    assert entry_of(ROOT) in ("", project.lock().commit)


def test_upstream_s_files_are_not_taken_out_of_the_index(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    git(toy.project.root, "init", "-q", ".")
    toy.project.submodule.mkdir()
    (toy.project.submodule / "setup.py").write_text('TRITON_VERSION = "1.0"\n')
    git(toy.project.root, "add", "upstream")
    toy.ok("apply")
    assert toy.ok("check") == NOTE + OK
    done = toy.run("submodule")
    assert done.returncode == 1
    assert "upstream/ has files in the index: take them out with `git rm -r --cached upstream` first" in done.stderr
    assert git(toy.project.root, "ls-files", "upstream") == "upstream/setup.py\n"


def test_an_archive_and_a_copy_inside_another_repository(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    git(tmp_path, "init", "-q", ".")
    toy.ok("apply")
    assert toy.ok("check") == OK  # it has no index that could have the entry
    toy.ok(*REBASE)
    done = toy.run("submodule")
    assert (done.returncode, "is not a git repository of its own" in done.stderr) == (1, True)
    shutil.rmtree(tmp_path / ".git")
    toy.ok("apply")
    assert toy.ok("check") == OK
