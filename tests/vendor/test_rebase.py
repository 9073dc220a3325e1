"""`rebase` on toy releases and on a toy submodule."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from toy_project import ALPHA, COMMIT, FIRST, SECOND, TAGS, git, make_project, snapshot, sources, write_release
from vendor_support import ROOT

from tools import registry
from tools.__main__ import VERBS
from tools.errors import ToolError
from tools.project import Project, ReleaseWheel
from tools.queue import overlay_files, queue_hash, series_names
from tools.simple_index import pip_sources
from tools.verbs import apply, check, rebase, status

NEW_COMMIT = "cd" * 20
TO = ["--to", "1.1", "--commit", NEW_COMMIT, "--no-test"]


@pytest.fixture(autouse=True)
def folder_as_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip's settings name a folder alone."""
    (tmp_path / "registry").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "registry"))
    pip_sources.cache_clear()


def release(tmp_path: Path, version: str, cached: bool = True, **modules: str) -> ReleaseWheel:
    """Release a version of the toy; fetched already unless `cached` is False."""
    if cached:
        write_release(Project(tmp_path / "repo").cache / "wheels", version, **modules)
    return write_release(tmp_path / "registry", version, **modules)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The queue of two patches and an overlay file on 1.0, whose wheel is in the registry."""
    patches = {"first.patch": FIRST, "second.patch": SECOND}
    return make_project(tmp_path / "repo", patches, {"layer.py": "LAYER = 1\n"}, release(tmp_path, "1.0"))


def out(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return capfd.readouterr().out.splitlines()


def test_a_queue_moves(project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wheel = release(tmp_path, "1.1", cached=False, alpha="line 0\n" + ALPHA)
    assert rebase.run(project, TO) == 0
    assert out(capfd) == [
        "overlay/      moved",
        "first.patch   moved",
        "second.patch  moved",
        "the queue is on triton 1.1 (v1.1) now",
    ]
    lock = project.lock()
    assert (lock.version, lock.ref, lock.commit) == ("1.1", "v1.1", NEW_COMMIT)
    assert lock.wheels == (wheel,)
    assert lock.queue == queue_hash(project)
    first = (project.patches / "first.patch").read_text()
    assert "@@ -1,6 +1,6 @@\n line 0\n line 1\n-line 2\n" in first and "@@ -36,6 +36,7 @@ line 34\n" in first
    assert (project.patches / "second.patch").read_text() == SECOND
    assert not (project.build / "rebase").exists()
    assert apply.run(project, []) == 0
    assert (project.tree / "python/triton/alpha.py").read_text().startswith("line 0\nline 1\nline two\n")
    assert check.faults(project) == []


def test_there_and_back_gives_the_same_bytes(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1", alpha="line 0\n" + ALPHA)
    before = sources(project)
    assert rebase.run(project, TO) == 0
    assert sources(project) != before
    assert rebase.run(project, ["--to", "1.0", "--commit", COMMIT, "--no-test"]) == 0
    assert list(project.lock().commit_notes) == [COMMIT]  # it could not be checked, as there is no origin
    project.lock_file.write_text(dataclasses.replace(project.lock(), commit_notes={}).text())
    assert sources(project) == before


def test_the_submodule_entry_follows(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1")
    git(project.root, "init", "-q", ".")
    git(project.root, "update-index", "--add", "--cacheinfo", f"160000,{COMMIT},upstream")
    assert rebase.run(project, TO) == 0
    assert git(project.root, "ls-files", "--stage", "--", "upstream").split()[1] == NEW_COMMIT
    apply.run(project, [])
    assert check.faults(project) == []


def test_a_patch_that_upstream_took_is_dropped(
    project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    release(tmp_path, "1.1", gamma="GAMMA = 3", alpha=ALPHA.replace("line 2\n", "line two\n"))
    assert rebase.run(project, TO) == 0
    assert out(capfd)[1:3] == [
        "first.patch   moved; upstream has taken a part of it",
        "second.patch  dropped: upstream has taken it",
    ]
    assert series_names(project) == ["first.patch"]
    assert not (project.patches / "second.patch").exists()
    assert "line two" not in (project.patches / "first.patch").read_text().split("@@")[0]
    apply.run(project, [])
    assert check.faults(project) == []


def test_a_report_changes_nothing(project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    release(tmp_path, "1.1", alpha=ALPHA.replace("line 2\n", "line B\n"))
    apply.run(project, [])
    before = snapshot(project.root)
    capfd.readouterr()
    assert rebase.run(project, ["--to", "1.1", "--report"]) == 1
    lines = out(capfd)
    assert lines[0].startswith("conflict: patch first.patch, python/triton/alpha.py, hunk 1 of 2: @@ -1,5 +1,5 @@")
    assert lines[-3:] == ["overlay/      moved", "first.patch   conflict", "second.patch  moved"]
    assert snapshot(project.root) == before
    release(tmp_path, "1.2")
    assert rebase.run(project, ["--to", "newest", "--report"]) == 0


CONFLICT = [
    "conflict: patch first.patch, python/triton/alpha.py, hunk 2 of 2: @@ -35,6 +35,7 @@ line 34",
    "  upstream 1.1:",
    "    | line 37, changed",
    "  upstream 1.0, which the patch was written for:",
    "    | line 37",
    "  the patch:",
    "    | line 37",
    "    | line 37 and a half",
    "resolve it in build/rebase/tree and run `python3 -m tools rebase --continue`; "
    "--skip goes on without it, --abort gives up",
]


@pytest.fixture
def stopped(project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Project:
    """A rebase that stopped at a conflict in the second hunk of the first patch."""
    release(tmp_path, "1.1", alpha=ALPHA.replace("line 37\n", "line 37, changed\n"))
    before = sources(project)
    assert rebase.run(project, TO) == 1
    assert out(capfd) == CONFLICT
    assert sources(project) == before
    return project


def test_a_conflict_can_be_resolved(stopped: Project, capfd: pytest.CaptureFixture[str]) -> None:
    file = stopped.build / "rebase/tree/python/triton/alpha.py"
    before = sources(stopped)
    with pytest.raises(ToolError, match="alpha.py still has conflict marks"):
        rebase.run(stopped, ["--continue", "--no-test"])
    with pytest.raises(ToolError, match="a rebase is going on"):
        rebase.run(stopped, TO)
    assert sources(stopped) == before
    file.write_text(ALPHA.replace("line 2\n", "line two\n").replace("line 37\n", "line 37, changed\nline 37½\n"))
    assert rebase.run(stopped, ["--continue", "--no-test"]) == 0
    assert "first.patch   moved, its conflict resolved by hand" in out(capfd)
    assert "\n line 37, changed\n+line 37½\n" in (stopped.patches / "first.patch").read_text()
    apply.run(stopped, [])
    assert check.faults(stopped) == []


def test_status_tells_of_a_rebase(stopped: Project, capfd: pytest.CaptureFixture[str]) -> None:
    status.run(stopped, [])
    assert "rebase     onto 1.1, stopped at first.patch: go on with --continue, --skip or --abort" in out(capfd)


def test_a_conflict_can_be_skipped(stopped: Project, capfd: pytest.CaptureFixture[str]) -> None:
    assert rebase.run(stopped, ["--skip", "--no-test"]) == 0
    assert "first.patch   skipped" in out(capfd)
    assert series_names(stopped) == ["second.patch"]
    assert not (stopped.patches / "first.patch").exists()


def test_a_rebase_can_be_given_up(stopped: Project) -> None:
    before = sources(stopped)
    assert rebase.run(stopped, ["--abort"]) == 0
    assert sources(stopped) == before
    assert not (stopped.build / "rebase").exists()
    for option in ("--continue", "--skip", "--abort"):
        with pytest.raises(ToolError, match="no rebase is going on"):
            rebase.run(stopped, [option])


def test_a_file_that_upstream_dropped(project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    release(tmp_path, "1.1", alpha="")
    assert rebase.run(project, ["--to", "1.1", "--report"]) == 1
    lines = out(capfd)
    assert lines[0] == (
        "conflict: patch first.patch, python/triton/alpha.py: the patch changes it, 1.1 no longer has it"
    )
    assert "    | -line 2" in lines and "    | +line two" in lines


def test_an_overlay_file_that_upstream_has_now(
    project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    release(tmp_path, "1.1", layer="LAYER = 2\n")
    assert rebase.run(project, TO) == 1
    lines = out(capfd)
    assert lines[0].startswith("conflict: overlay/, python/triton/layer.py")
    assert "    | LAYER = 2" in lines and "    | LAYER = 1" in lines
    (project.build / "rebase/tree/python/triton/layer.py").write_text("LAYER = 3\n")
    assert rebase.run(project, ["--continue", "--no-test"]) == 0
    assert (project.overlay / "python/triton/layer.py").read_text() == "LAYER = 3\n"
    # It takes the place of a file of upstream: the lock says of which content, so that `check` sees a later change.
    assert list(project.lock().shadowed) == ["python/triton/layer.py"]
    apply.run(project, [])
    assert check.faults(project) == []
    release(tmp_path, "1.2", layer="LAYER = 4\n")
    assert rebase.run(project, ["--to", "1.2", "--commit", NEW_COMMIT, "--no-test"]) == 1
    assert rebase.run(project, ["--skip", "--no-test"]) == 0
    assert overlay_files(project) == {}
    assert project.lock().shadowed == {}


def test_the_same_overlay_file_upstream_is_dropped(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1", layer="LAYER = 1\n")
    assert rebase.run(project, TO) == 0
    assert overlay_files(project) == {}


def test_a_patch_of_compiled_code_is_refused_in_release_form(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1")
    (project.patches / "first.patch").write_text(FIRST.replace("python/triton/alpha.py", "lib/Dialect/Ops.cpp"))
    with pytest.raises(ToolError) as caught:
        rebase.run(project, TO)
    assert str(caught.value) == (
        "patch first.patch: lib/Dialect/Ops.cpp is not among the text files of the release wheel (python/triton/**); "
        "a change of compiled code needs the source form (--source)"
    )
    assert not (project.build / "rebase").exists()


def test_work_that_is_not_exported_is_refused(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1")
    apply.run(project, [])
    (project.tree / "python/triton/alpha.py").write_text("mine\n")
    with pytest.raises(ToolError, match="uncommitted changes"):
        rebase.run(project, TO)


def test_a_release_that_there_is_not(project: Project) -> None:
    with pytest.raises(ToolError, match="the registry has no triton 7.0 for this Python"):
        rebase.run(project, ["--to", "7.0", "--report"])


def test_a_download_that_is_not_what_the_registry_announced(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = release(tmp_path, "1.1", cached=False)
    other = ReleaseWheel(wheel.python, wheel.abi, wheel.arch, wheel.file, "0" * 64)
    monkeypatch.setattr(registry, "wheel_for_this_python", lambda *_: other)
    before = sources(project)
    with pytest.raises(ToolError, match="the file was not used"):
        rebase.run(project, TO)
    assert sources(project) == before
    assert not (project.build / "rebase").exists()


def test_the_commit_of_a_tag_is_looked_up(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1")
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", ".")
    git(origin, "commit", "-q", "--allow-empty", "-m", "one")
    git(origin, "tag", "-a", "-m", "a tag that is an object", "v1.1")
    for file in (project.lock_file, project.root / ".gitmodules"):
        file.write_text(file.read_text().replace("file:///nowhere/t.git", str(origin)))
    with pytest.raises(ToolError, match="v1.0 could not be looked up .*it has no tag v1.0.*give it as --commit"):
        rebase.run(project, ["--to", "1.0", "--no-test"])
    assert rebase.run(project, ["--to", "1.1", "--no-test"]) == 0
    assert project.lock().commit == git(origin, "rev-parse", "HEAD").strip()


def test_the_error_of_a_rebase_offline_has_the_command_that_prints_the_commit(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1")
    with pytest.raises(ToolError, match="could not be looked up") as raised:
        rebase.run(project, ["--to", "1.1", "--no-test"])
    (command,) = re.findall("`(git ls-remote [^`]*)`", str(raised.value))
    # The same command at a place that can be reached.
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", ".")
    git(origin, "commit", "-q", "--allow-empty", "-m", "one")
    git(origin, "tag", "-a", "-m", "a tag that is an object", "v1.1")
    words = [word.replace(project.lock().url, str(origin)) for word in shlex.split(command)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in lines if line.endswith("^{}")] == [git(origin, "rev-parse", "HEAD").strip()]


def test_the_contract_tests_are_run(project: Project, tmp_path: Path) -> None:
    release(tmp_path, "1.1")
    tests = project.root / rebase.CONTRACT_TESTS
    tests.parent.mkdir(parents=True)
    tests.write_text("def test_tree():\n    assert '1.1' in open('build/upstream/python/triton/__init__.py').read()\n")
    assert rebase.run(project, TO[:-1]) == 0
    tests.write_text("def test_fails():\n    assert False\n")
    assert rebase.run(project, ["--to", "1.0", "--commit", COMMIT]) == 1


# -- to a ref of the submodule ---------------------------------------------------------------------------------


@pytest.fixture
def submodule(project: Project, tmp_path: Path) -> Project:
    """The project with upstream/ checked out at the lock's commit; its origin's main is two commits ahead."""
    origin = tmp_path / "origin"
    (origin / "python/triton").mkdir(parents=True)
    (origin / "lib").mkdir()
    git(origin, "init", "-q", "-b", "main", ".")
    texts = [("1.0", ALPHA), ("1.1", "line 0\n" + ALPHA), ("1.1", ALPHA.replace("line 2\n", "line B\n"))]
    for version, alpha in texts:
        (origin / "setup.py").write_text(f'TRITON_VERSION = "{version}"\n')
        (origin / "python/triton/alpha.py").write_text(alpha)
        (origin / "lib/Ops.cpp").write_text(f"// {version}\nint a;\nint b;\nint c;\nint d;\n")
        git(origin, "add", "-A")
        git(origin, "commit", "-q", "-m", version)
    git(project.root, "clone", "-q", str(origin), "upstream")
    git(project.submodule, "checkout", "-q", "--detach", "HEAD~2")
    base = git(project.submodule, "rev-parse", "HEAD").strip()
    git(origin, "branch", "moved", "main~1")
    project.lock_file.write_text(project.lock_file.read_text().replace(COMMIT, base))
    return project


def test_a_queue_moves_to_a_ref(submodule: Project, capfd: pytest.CaptureFixture[str]) -> None:
    assert rebase.run(submodule, ["--to", "moved", "--no-test"]) == 0
    assert out(capfd)[-1] == "the queue is on triton 1.1 (moved) now"
    lock = submodule.lock()
    assert lock.commit == git(submodule.submodule, "rev-parse", "HEAD").strip()
    assert (lock.version, lock.ref, lock.wheels) == ("1.1", "moved", ())
    assert "line 0" in (submodule.patches / "first.patch").read_text()


def test_a_report_on_main(submodule: Project, capfd: pytest.CaptureFixture[str]) -> None:
    before = sources(submodule)
    assert rebase.run(submodule, ["--to", "main", "--report"]) == 1
    assert out(capfd)[0].startswith("conflict: patch first.patch, python/triton/alpha.py, hunk 1 of 2")
    assert sources(submodule) == before


def test_compiled_code_moves_in_the_submodule(submodule: Project) -> None:
    diff = "diff --git a/lib/Ops.cpp b/lib/Ops.cpp\n--- a/lib/Ops.cpp\n+++ b/lib/Ops.cpp\n@@ -3,3 +3,4 @@ int a;\n"
    diff += " int b;\n int c;\n int d;\n+int e;\n"
    (submodule.patches / "first.patch").write_text(FIRST[: FIRST.index("diff --git")] + diff)
    assert rebase.run(submodule, ["--to", "moved", "--no-test"]) == 0
    assert "+int e;\n" in (submodule.patches / "first.patch").read_text()


def test_a_shallow_submodule_will_do(submodule: Project, tmp_path: Path) -> None:
    commit = submodule.lock().commit
    shutil.rmtree(submodule.submodule)
    submodule.submodule.mkdir()
    git(submodule.submodule, "init", "-q", ".")
    git(submodule.submodule, "remote", "add", "origin", f"file://{tmp_path}/origin")
    git(submodule.submodule, "fetch", "-q", "--depth=1", "origin", commit)
    git(submodule.submodule, "checkout", "-q", "FETCH_HEAD")
    assert rebase.run(submodule, ["--to", "moved", "--no-test"]) == 0
    assert git(submodule.submodule, "show", "HEAD:setup.py") == 'TRITON_VERSION = "1.1"\n'


def test_refs_that_cannot_be_reached(submodule: Project, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="upstream/ has no ref nowhere"):
        rebase.run(submodule, ["--to", "nowhere", "--report"])
    (submodule.submodule / "setup.py").write_text("mine")
    with pytest.raises(ToolError, match="upstream/ has uncommitted changes"):
        rebase.run(submodule, ["--to", "main"])


def test_without_a_submodule_a_ref_is_refused(project: Project) -> None:
    with pytest.raises(ToolError, match="run `git clone --branch v1.0 file:///nowhere/t.git upstream`"):
        rebase.run(project, ["--to", "main"])


# -- to a file or a folder -------------------------------------------------------------------------------------


def test_a_queue_moves_to_a_wheel_file(project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wheel = write_release(tmp_path / "mine", "1.1", alpha="line 0\n" + ALPHA)
    assert rebase.run(project, ["--to", str(tmp_path / "mine" / wheel.file), "--no-test"]) == 0
    told = capfd.readouterr()
    assert told.out.splitlines()[-1] == f"the queue is on triton 1.1 ({wheel.file}) now"
    assert f"the lock names {wheel.file} alone" in told.err
    lock = project.lock()
    assert (lock.version, lock.ref, lock.commit, lock.wheels) == ("1.1", wheel.file, "0" * 40, (wheel,))
    shutil.rmtree(tmp_path / "mine")
    assert apply.run(project, []) == 0
    assert (project.tree / "python/triton/alpha.py").read_text().startswith("line 0\nline 1\nline two\n")
    assert [name for name, _ in check.faults(project)] == ["lock-commit"]
    release(tmp_path, "1.1", cached=False, alpha="line 0\n" + ALPHA)  # and then it is there
    assert rebase.run(project, TO) == 0
    assert (project.lock().ref, project.lock().commit) == ("v1.1", NEW_COMMIT)
    assert apply.run(project, []) == 0
    assert check.faults(project) == []


def test_a_build_of_a_commit_between_releases(project: Project, tmp_path: Path) -> None:
    wheel = write_release(tmp_path / "mine", "1.1+git12ab", **{"__init__": "__version__ = '1.1'\n"})
    place = str(tmp_path / "mine" / wheel.file)
    assert rebase.run(project, ["--to", place, "--commit", NEW_COMMIT, "--no-test"]) == 0
    assert apply.run(project, []) == 0
    assert (project.lock().version, project.lock().commit) == ("1.1+git12ab", NEW_COMMIT)
    assert check.faults(project) == []


def test_a_queue_moves_to_another_checkout(submodule: Project, tmp_path: Path) -> None:
    place = tmp_path / "origin"
    git(place, "checkout", "-q", "moved")
    (place / "python/triton/__init__.py").write_text("__version__ = '1.2'\n")
    git(place, "add", "-A")
    with pytest.raises(ToolError, match="the checkout has changes that are not committed"):
        rebase.run(submodule, ["--to", str(place), "--no-test"])
    git(place, "commit", "-q", "-m", "mine")
    before, commit = sources(submodule), git(place, "rev-parse", "HEAD").strip()
    assert rebase.run(submodule, ["--to", str(place), "--report"]) == 0
    assert sources(submodule) == before
    git(place, "checkout", "-q", "main")
    (place / "python/triton/alpha.py").write_text("neither this")
    assert rebase.run(submodule, ["--to", f"{place}@moved", "--no-test"]) == 0
    lock = submodule.lock()
    assert (lock.version, lock.commit, lock.wheels) == ("1.2", commit, ())
    assert (lock.ref, lock.commit_notes[commit].split(":")[1]) == ("origin@moved", " origin@moved")
    with pytest.raises(ToolError, match="origin has no commit none"):
        rebase.run(submodule, ["--to", f"{place}@none", "--no-test"])
    assert "line 0" in (submodule.patches / "first.patch").read_text()


@pytest.mark.parametrize(
    ("version", "name", "options", "message"),
    [
        ("1.1", "triton-1.1-cp27-cp27m-win32.whl", [], "by its name, no wheel for Python 3"),
        ("1.1", f"triton-1.2-{TAGS}.whl", [], "its package is triton 1.1, which its name does not say"),
        ("1.0", f"triton-1.0-{TAGS}.whl", [], "is another wheel of that name"),
        ("1.1", f"triton-1.1-{TAGS}.whl", ["--commit", "abc"], "not a full commit id"),
    ],
)
def test_a_wheel_that_will_not_do(
    project: Project, tmp_path: Path, version: str, name: str, options: list[str], message: str
) -> None:
    made = write_release(tmp_path / "mine", version, alpha="other")
    (tmp_path / "mine" / made.file).rename(tmp_path / "mine" / name)
    before = sources(project)
    with pytest.raises(ToolError, match=message):
        rebase.run(project, ["--to", str(tmp_path / "mine" / name), *options, "--no-test"])
    assert sources(project) == before
    assert not (project.build / "rebase").exists()


# -- each week -------------------------------------------------------------------------------------------------


def test_the_workflow_runs_commands_that_there_are() -> None:
    text = (ROOT / ".github/workflows/upstream.yml").read_text()
    commands = [words.split("|")[0].split() for words in re.findall(r"python3 -m tools (.*)", text)]
    assert {words[0] for words in commands} <= set(VERBS)
    reports = [rebase.parse(words[1:]) for words in commands if words[0] == "rebase"]
    assert [options.to for options in reports if options.report] == ["newest", "main"]
    assert re.search(r"^  schedule:\n    - cron: ", text, re.MULTILINE)
