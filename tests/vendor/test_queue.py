"""sync, apply, status, export and check on a toy upstream: a small release wheel, and two patches."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest
import toy_project as toy_project_module
from toy_project import ALPHA, FIRST, SECOND, snapshot, sources, toy_project, write_release

from tools.errors import ToolError
from tools.hold import hold
from tools.project import Project
from tools.queue import load_series, parse_patch, queue_hash
from tools.repository import Repository
from tools.upstream import sync
from tools.verbs import apply, check, export, status


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project on the toy upstream, synced and not yet applied."""
    project = toy_project(tmp_path / "repo")
    with hold(project):
        sync(project)
    return project


def git(project: Project, *arguments: str) -> str:
    return toy_project_module.git(project.tree, *arguments)


def codes(project: Project) -> list[str]:
    return [code for code, _ in check.faults(project)]


def test_sync_lays_the_wheel_out_and_is_idempotent(project: Project) -> None:
    assert (project.tree / "python/triton/alpha.py").read_text() == ALPHA
    assert (project.tree / "dist-info/METADATA").is_file()
    assert git(project, "ls-files").split() == ["python/triton/__init__.py", "python/triton/alpha.py"]
    before = project.tree.stat().st_ino
    sync(project)
    assert project.tree.stat().st_ino == before


def test_sync_refuses_a_wheel_with_another_hash(project: Project) -> None:
    (wheel,) = (project.cache / "wheels").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"x")
    (project.tree / "release.json").unlink()
    before = snapshot(project.tree)
    with pytest.raises(ToolError, match="sha256 is .* the file was not used"):
        sync(project)
    assert snapshot(project.tree) == before


@pytest.mark.parametrize("name", ["triton/../../../up.py", "/triton/up.py", "triton-1.0.dist-info/../up", "other/x.py"])
def test_sync_refuses_a_wheel_that_would_write_elsewhere(tmp_path: Path, name: str) -> None:
    # The hash is the lock's: this is a release that is evil itself.
    project = toy_project(tmp_path / "repo", evil=name)
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    with hold(project), pytest.raises(ToolError, match="unexpected member"):
        sync(project)
    after = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    assert after - before == {project.build / ".lock"}


def test_apply_makes_one_commit_a_patch_and_is_idempotent(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply.run(project, []) == 0
    subjects = git(project, "log", "--reverse", "--format=%s").splitlines()
    assert subjects == ["upstream", "overlay", "first: change the second line", "second: add a file"]
    tree = project.tree / "python/triton"
    assert (tree / "alpha.py").read_text().startswith("line 1\nline two\n")
    assert (tree / "gamma.py").read_text() == "GAMMA = 3"
    assert (tree / "layer.py").read_text() == "LAYER = 1\n"
    head, before = git(project, "rev-parse", "HEAD"), snapshot(project.tree)
    capsys.readouterr()
    assert apply.run(project, []) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert (git(project, "rev-parse", "HEAD"), snapshot(project.tree)) == (head, before)


def test_the_same_queue_gives_the_same_commits(project: Project) -> None:
    with Repository(project) as repository:
        assert repository.commit_queue() == repository.commit_queue()


def test_apply_follows_a_changed_queue(project: Project) -> None:
    apply.run(project, [])
    (project.patches / "series").write_text("first.patch  # the second one is dropped\n\n")
    (project.overlay / "python/triton/layer.py").write_text("LAYER = 2\n")
    apply.run(project, [])
    assert not (project.tree / "python/triton/gamma.py").exists()
    assert (project.tree / "python/triton/layer.py").read_text() == "LAYER = 2\n"
    assert (project.tree / "python/triton/_C/libtriton.so").read_bytes() == b"\x7fELF"


@pytest.mark.parametrize("change", ["edit", "new file"])
def test_apply_refuses_a_dirty_tree(project: Project, change: str) -> None:
    apply.run(project, [])
    name = {"edit": "alpha.py", "new file": "mine.py"}[change]
    (project.tree / "python/triton" / name).write_text("mine\n")
    before = snapshot(project.tree)
    with pytest.raises(ToolError, match=rf"uncommitted changes \(python/triton/{name}\)"):
        apply.run(project, [])
    assert snapshot(project.tree) == before
    assert "tree-dirty" in codes(project)


def test_apply_refuses_commits_that_were_not_exported(project: Project) -> None:
    apply.run(project, [])
    (project.tree / "python/triton/alpha.py").write_text("mine\n")
    git(project, "commit", "-qam", "mine")
    with pytest.raises(ToolError, match="commits that are not in patches/"):
        apply.run(project, [])
    assert "tree-ahead" in codes(project)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" line 35\n", " line 35 was never here\n", "python/triton/alpha.py, hunk 2 of 2: @@ -35,6 +35,7 @@ line 34"),
        ("-line 2\n", "-line B\n", "python/triton/alpha.py, hunk 1 of 2: @@ -1,5 +1,5 @@"),
        ("alpha", "missing", "python/triton/missing.py does not exist in the tree"),
    ],
)
def test_a_conflict_is_named_and_leaves_the_tree_as_it_was(project: Project, old: str, new: str, message: str) -> None:
    apply.run(project, [])
    head, before = git(project, "rev-parse", "HEAD"), snapshot(project.tree)
    (project.patches / "first.patch").write_text(FIRST.replace(old, new))
    with pytest.raises(ToolError) as caught:
        apply.run(project, [])
    assert str(caught.value).splitlines()[0] == f"patch first.patch does not apply: {message}"
    assert (git(project, "rev-parse", "HEAD"), snapshot(project.tree)) == (head, before)
    assert git(project, "status", "--porcelain") == ""
    assert "patch-conflict" in codes(project)


def test_a_conflict_shows_what_is_expected_and_what_is_there(project: Project) -> None:
    apply.run(project, [])
    (project.patches / "first.patch").write_text(FIRST.replace(" line 36\n", " line thirty-six\n"))
    with pytest.raises(ToolError) as caught:
        apply.run(project, [])
    assert str(caught.value).splitlines()[1:] == [
        "  the patch expects:",
        *(f"    | line {number}" for number in (35, "thirty-six", 37, 38, 39, 40)),
        "  found at line 35:",
        *(f"    | line {number}" for number in range(35, 41)),
        "Where upstream changed these lines: with the version that the patches were written for in upstream.lock.toml, "
        "`python3 -m tools rebase --to VERSION` merges them three-way.",
    ]


def test_no_conflict_is_told_against_another_release(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    apply.run(project, [])
    # The lock moved by hand to a release with other text, whose tree is not laid out yet.
    wheel = write_release(project.cache / "wheels", "1.1", alpha="nothing of it is left\n")
    project.lock_file.write_text(dataclasses.replace(project.lock(), version="1.1", wheels=(wheel,)).text())
    assert codes(project) == ["tree-version"]
    capsys.readouterr()
    status.run(project, [])
    text = capsys.readouterr().out
    assert "tree       build/upstream is version 1.0, the lock says 1.1" in text
    assert "applied" not in text


def test_a_tree_that_is_behind(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    apply.run(project, [])
    whole = snapshot(project.tree)
    git(project, "reset", "-q", "--hard", "HEAD~1")
    assert codes(project) == ["tree-behind"]
    capsys.readouterr()
    status.run(project, [])
    text = capsys.readouterr().out
    assert "second.patch: not applied" in text and "first.patch: applied" in text
    assert "commits    1 applied ones are gone" in text and "not in patches/" not in text
    apply.run(project, [])
    assert snapshot(project.tree) == whole
    git(project, "reset", "-q", "--hard", "HEAD~1")
    export.run(project, [])
    assert codes(project) == []
    assert not (project.patches / "second.patch").exists()


def test_status_of_a_patch_that_changed_on_disk(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    apply.run(project, [])
    capsys.readouterr()
    (project.patches / "first.patch").write_text(FIRST.replace("line two", "line deux"))
    status.run(project, [])
    assert "first.patch: changed since it was applied" in capsys.readouterr().out
    (project.patches / "first.patch").write_text(FIRST.replace("-line 2\n", "-line B\n"))
    status.run(project, [])
    text = capsys.readouterr().out
    assert "first.patch: does not apply: python/triton/alpha.py, hunk 1 of 2" in text
    assert "second.patch: applied" in text


@pytest.mark.parametrize(
    ("message", "lacks"),
    [
        ("third", "`Why:` and `Upstream-Status:`"),
        ("third\n\nWhy: a test.", "`Upstream-Status:`"),
        ("third\n\nWhy:\nUpstream-Status: none", "`Why:`"),
    ],
)
def test_export_refuses_a_commit_that_does_not_say_why(project: Project, message: str, lacks: str) -> None:
    apply.run(project, [])
    before = sources(project)
    (project.tree / "python/triton/alpha.py").write_text("mine\n")
    git(project, "commit", "-qam", message)
    with pytest.raises(ToolError, match=f"the commit 'third' has no {lacks} in its message"):
        export.run(project, [])
    assert sources(project) == before


def test_a_patch_that_adds_a_file_that_is_there(project: Project) -> None:
    (project.overlay / "python/triton/gamma.py").write_text("taken\n")
    with pytest.raises(ToolError, match=r"patch second.patch does not apply: python/triton/gamma.py already exists"):
        apply.run(project, [])


def test_an_apply_that_was_killed_is_finished_by_the_next_run(project: Project) -> None:
    with Repository(project) as repository:
        target = repository.commit_queue()[-1]
        repository._write_state(moving_to=target, queue=queue_hash(project), head=target)
    # As a kill in the middle of git's reset leaves it: one file of the new state, and the index locked.
    (project.tree / "python/triton/alpha.py").write_text("half")
    (project.tree / ".git/index.lock").write_text("")
    assert apply.run(project, []) == 0
    assert (project.tree / "python/triton/gamma.py").exists()
    assert git(project, "status", "--porcelain") == ""


def test_export_gives_the_same_bytes(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    apply.run(project, [])
    before = {**snapshot(project.patches), **snapshot(project.overlay)}
    assert export.run(project, []) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert {**snapshot(project.patches), **snapshot(project.overlay)} == before


def test_export_from_an_empty_patches_folder_gives_the_same_bytes(project: Project) -> None:
    apply.run(project, [])
    with Repository(project) as repository:
        overlay, patches = export.collect(repository)
    assert {patch.name: patch.text() for patch in patches} == {"first.patch": FIRST, "second.patch": SECOND}
    assert overlay == {"python/triton/layer.py": b"LAYER = 1\n"}


def test_export_takes_a_new_commit_as_a_new_patch(project: Project) -> None:
    apply.run(project, [])
    (project.tree / "python/triton/alpha.py").write_text(ALPHA.replace("line 20", "line twenty"))
    git(project, "commit", "-qam", "third: A new one!\n\nWhy: a test.\nUpstream-Status: none")
    assert export.run(project, []) == 0
    assert (project.patches / "series").read_text() == "first.patch\nsecond.patch\nthird-a-new-one.patch\n"
    patch = parse_patch("third", (project.patches / "third-a-new-one.patch").read_text())
    assert (patch.header("Why"), patch.header("Upstream-Status")) == ("a test.", "none")
    assert codes(project) == []
    assert apply.run(project, []) == 0


def test_export_drops_a_patch_whose_commit_is_gone(project: Project) -> None:
    apply.run(project, [])
    git(project, "reset", "-q", "--hard", "HEAD^")
    assert export.run(project, []) == 0
    assert (project.patches / "series").read_text() == "first.patch\n"
    assert not (project.patches / "second.patch").exists()
    assert codes(project) == []


def test_export_refuses_where_patches_changed_since(project: Project) -> None:
    apply.run(project, [])
    (project.patches / "series").write_text("first.patch\n")
    with pytest.raises(ToolError, match="changed since the last apply"):
        export.run(project, [])
    assert (project.patches / "second.patch").exists()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("python/triton/../../../etc/x.py", "is not a plain path inside the source tree"),
        ("/etc/x.py", "is not a plain path inside the source tree"),
        ("lib/Dialect/Triton/IR/Ops.cpp", "needs the source form"),
        ("python/triton/_C/libtriton.so", "needs the source form"),
    ],
)
def test_a_patch_cannot_write_elsewhere(project: Project, path: str, message: str) -> None:
    (project.patches / "first.patch").write_text(FIRST.replace("python/triton/alpha.py", path))
    with pytest.raises(ToolError, match=message):
        apply.run(project, [])


@pytest.mark.parametrize(
    "header",
    [
        "similarity index 100%\nrename from python/triton/alpha.py\nrename to python/triton/../../../up.py\n",
        "similarity index 100%\ncopy from python/triton/alpha.py\ncopy to /tmp/up.py\n",
        "--- a/python/triton/alpha.py\n+++ b/../../up.py\n",
    ],
)
def test_a_patch_cannot_write_elsewhere_by_another_header(project: Project, header: str) -> None:
    start = FIRST.index("--- a/")
    (project.patches / "first.patch").write_text(FIRST[:start] + header + FIRST[FIRST.index("@@ -1,5") :])
    with pytest.raises(ToolError, match="is not a plain path inside the source tree"):
        apply.run(project, [])


def test_compiled_code_may_be_patched_for_the_source_form_only(project: Project) -> None:
    (project.patches / "first.patch").write_text(FIRST.replace("python/triton/alpha.py", "lib/Dialect/Ops.cpp"))
    assert [patch.name for patch in load_series(project, compiled=True)] == ["first.patch", "second.patch"]
    with pytest.raises(ToolError, match="a change of compiled code needs the source form"):
        load_series(project)


def test_an_overlay_folder_that_is_a_link_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project.overlay / "python/triton/sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="overlay/python/triton/sub is a link"):
        apply.run(project, [])


def test_a_patch_cannot_make_a_link(project: Project) -> None:
    (project.patches / "second.patch").write_text(SECOND.replace("mode 100644", "mode 120000"))
    with pytest.raises(ToolError, match="adds a link"):
        apply.run(project, [])


def test_an_overlay_link_is_refused(project: Project) -> None:
    (project.overlay / "python/triton/link.py").symlink_to("/etc/passwd")
    with pytest.raises(ToolError, match="is a link"):
        apply.run(project, [])


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def _change(project: Project, what: str) -> None:
    lock = project.lock_file
    match what:
        case "lock-unusable":
            lock.write_text("[upstream")
        case "lock-commit":
            _edit(lock, "ab" * 20, "abc")
        case "lock-sha256":
            _edit(lock, 'sha256 = "', 'sha256 = "x')
            _edit(lock, '[queue]\nsha256 = "x', '[queue]\nsha256 = "')
        case "lock-file-name":
            _edit(lock, 'file = "triton-1.0', 'file = "triton-1.1')
        case "submodule-url":
            _edit(project.root / ".gitmodules", "nowhere", "elsewhere")
        case "submodule-unreadable":
            subprocess.run(["git", "init", "-q", str(project.root)], check=True)
            (project.root / ".git/index").write_text("no index")
        case "submodule-commit":
            subprocess.run(["git", "init", "-q", str(project.root)], check=True)
            entry = f"160000,{'cd' * 20},upstream"
            command = ["git", "-C", str(project.root), "update-index", "--add", "--cacheinfo", entry]
            subprocess.run(command, check=True)
        case "submodule-version":
            subprocess.run(["git", "init", "-q", str(project.root)], check=True)
            project.submodule.mkdir()
            (project.submodule / "setup.py").write_text('TRITON_VERSION = "2.0"\n')
        case "overlay-shadows":
            (project.overlay / "python/triton/__init__.py").write_text("__version__ = '1.0'\nmore = 1\n")
        case "overlay-outdated":
            # As after a new upstream: the lock has the hash of an older file.
            (project.overlay / "python/triton/__init__.py").write_text("__version__ = '1.0'\nmore = 1\n")
            shadowed = {"python/triton/__init__.py": "0" * 64}
            lock.write_text(dataclasses.replace(project.lock(), shadowed=shadowed).text())
        case "lock-shadowed":
            shadowed = {"python/triton/layer.py": "0" * 64}
            lock.write_text(dataclasses.replace(project.lock(), shadowed=shadowed).text())
        case "patch-unlisted":
            (project.patches / "stray.patch").write_text(FIRST)
        case "patch-missing":
            (project.patches / "second.patch").unlink()
        case "patch-malformed":
            _edit(project.patches / "first.patch", "Subject:", "Topic:")
        case "patch-no-why":
            _edit(project.patches / "first.patch", "Why:", "Because:")
        case "patch-no-upstream-status":
            _edit(project.patches / "first.patch", "Upstream-Status:", "Status:")
        case "series-unusable":
            (project.patches / "series").write_text("first.patch\nfirst.patch\n")
        case "queue-hash" | "tree-stale":
            (project.overlay / "python/triton/layer.py").write_text("LAYER = 3\n")
        case "tree-missing":
            project.tree.rename(project.build / "elsewhere")
        case "tree-version":
            _edit(lock, 'version = "1.0"', 'version = "1.1"')
        case "export-differs":
            _edit(project.patches / "first.patch", "@@ -35,6 +35,7 @@", "@@ -30,6 +30,7 @@")
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(
    "code",
    [
        "lock-unusable",
        "lock-commit",
        "lock-sha256",
        "lock-file-name",
        "submodule-url",
        "submodule-unreadable",
        "submodule-commit",
        "patch-unlisted",
        "patch-missing",
        "patch-malformed",
        "patch-no-why",
        "patch-no-upstream-status",
        "series-unusable",
        "queue-hash",
        "tree-stale",
        "tree-missing",
        "tree-version",
        "export-differs",
        "submodule-version",
        "overlay-shadows",
        "overlay-outdated",
        "lock-shadowed",
    ],
)
def test_check_gives_a_reason_code(project: Project, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    apply.run(project, [])
    capsys.readouterr()
    assert check.run(project, []) == 0
    assert capsys.readouterr().out == "ok: lock, series and tree agree\n"
    _change(project, code)
    assert check.run(project, []) == 1
    lines = capsys.readouterr().out.splitlines()
    assert code in [line.split(":", 1)[0] for line in lines]


def test_export_notes_what_an_overlay_file_hides(project: Project) -> None:
    (project.overlay / "python/triton/__init__.py").write_text("__version__ = '1.0'\nmore = 1\n")
    apply.run(project, [])
    assert "overlay-shadows" in codes(project)
    export.run(project, [])
    assert list(project.lock().shadowed) == ["python/triton/__init__.py"]
    assert codes(project) == []


def test_status_tells_what_is_applied(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    status.run(project, [])
    assert "first.patch: not applied" in capsys.readouterr().out
    apply.run(project, [])
    (project.tree / "python/triton/alpha.py").write_text("mine\n")
    status.run(project, [])
    text = capsys.readouterr().out
    assert "second.patch: applied" in text
    assert "changed    python/triton/alpha.py" in text
