"""A queue that no longer compiles, or of which a part is skipped, does not pass; conflicts are resolved once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_project import FIRST, git, make_project, write_release
from toy_runs import REBASE, Toy
from user_checkout import Checkout
from vendor_support import ROOT

from tools.project import Project

CODE = "def area(a, b):\n    return a * b\n#\n#\ndef ring(a, b):\n    return area(a, a) - area(b, b)\n"
PATCH = """\
From: A Person <a@example.org>
Subject: code: areas are floats

Why: the toy needs what python/triton/helper.py has.
Upstream-Status: not submitted
---
diff --git a/python/triton/code.py b/python/triton/code.py
--- a/python/triton/code.py
+++ b/python/triton/code.py
@@ -1,5 +1,6 @@
 def area(a, b):
-    return a * b
+    from .helper import number
+    return number(a * b)
 #
 #
 def ring(a, b):
"""
CONFLICTING = CODE.replace("return a * b", "return b * a")
RESOLVED = CODE.replace("return a * b", "from .helper import number\n    return number(b * a)")
BROKEN = RESOLVED.replace("number(b * a)", "number(b * a")


class CodeToy(Toy):
    """The toy with code in it; 1.1 changes a line that the patch changes, and so does 1.2."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "first")
        self.registry = folder / "registry"
        wheel = write_release(self.registry, "1.0", code=CODE)
        write_release(self.registry, "1.1", code=CONFLICTING)
        write_release(self.registry, "1.2", code=CONFLICTING.replace("def ring", "# a ring\ndef ring"))
        overlay = {"helper.py": "number = float\n", "layer.py": "LAYER = 1\n"}
        self.project = make_project(folder / "repo", {"code.patch": PATCH, "first.patch": FIRST}, overlay, wheel)
        self.environment["PIP_FIND_LINKS"] = str(self.registry)


@pytest.fixture
def toy(tmp_path: Path) -> CodeToy:
    return CodeToy(tmp_path)


def resolve(toy: Toy, text: str) -> None:
    (toy.project.build / "rebase/tree/python/triton/code.py").write_text(text)


def test_a_resolution_with_a_syntax_error_is_refused(toy: CodeToy) -> None:
    assert toy.run(*REBASE).returncode == 1
    resolve(toy, BROKEN)
    done = toy.run("rebase", "--continue", "--no-test")
    assert done.returncode == 1
    assert "code.py, line 3: '(' was never closed: mend it first" in done.stderr
    assert toy.project.lock().version == "1.0"
    resolve(toy, RESOLVED)
    assert "code.patch   moved, its conflict resolved by hand" in toy.ok("rebase", "--continue", "--no-test")
    toy.ok("apply")


def test_a_merge_that_does_not_compile_is_a_conflict(toy: CodeToy) -> None:
    # Upstream wraps the call in brackets around lines that the patch moves: git merges them without a conflict.
    new = CODE.replace("    return area(a, a) - area(b, b)\n", "    return (area(a, a)\n            - area(b, b))\n")
    patch = FIRST.split("diff --git")[0].replace("first:", "ring:")
    patch += """\
diff --git a/python/triton/far.py b/python/triton/far.py
--- a/python/triton/far.py
+++ b/python/triton/far.py
@@ -7,4 +7,5 @@
 # 6
 # 7
 # 8
+    return 2
 # 9
"""
    far = "def f():\n" + "".join(f"# {number}\n" for number in range(1, 10)) + "    return 1\n"
    far_now = far.replace("def f():\n", "def f(): return 1\n").replace("    return 1\n", "")
    project = toy.project
    wheel = write_release(toy.registry, "2.0", code=new, far=far)
    write_release(toy.registry, "2.1", code=new, far=far_now)
    fresh = make_project(project.root.parent / "far", {"far.patch": patch}, {}, wheel)
    toy.project = fresh
    done = toy.run("rebase", "--to", "2.1", "--commit", "cd" * 20, "--no-test")
    assert done.returncode == 1
    assert "conflict: patch far.patch, python/triton/far.py, line 10: unexpected indent" in done.stdout
    assert fresh.lock().version == "2.0"


@pytest.mark.parametrize("what", ["patches/code.patch", "overlay/python/triton/helper.py"])
def test_apply_and_check_refuse_what_does_not_compile(toy: CodeToy, what: str) -> None:
    toy.ok("apply")
    path = toy.project.root / what
    path.write_text(path.read_text().replace("number(a * b)", "number(a * b").replace("= float", "= = float"))
    name = "patch code.patch" if what.endswith(".patch") else "overlay/"
    done = toy.run("check")
    assert done.returncode == 1
    assert f"patch-syntax: {name}: python/triton/" in done.stdout
    done = toy.run("apply")
    assert done.returncode == 1
    assert f"error: {name}: python/triton/" in done.stderr


def test_export_refuses_what_does_not_compile(toy: CodeToy) -> None:
    toy.ok("apply")
    before = (toy.project.patches / "code.patch").read_text()
    code = toy.project.tree / "python/triton/code.py"
    code.write_text(code.read_text() + "def\n")
    git(toy.project.tree, "commit", "-qam", "bad\n\nWhy: w\nUpstream-Status: none\n")
    done = toy.run("export")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "error: patch bad.patch: python/triton/code.py, line 8: invalid syntax",
    )
    assert (toy.project.patches / "code.patch").read_text() == before


def test_a_resolution_is_remembered(toy: CodeToy) -> None:
    assert toy.run(*REBASE).returncode == 1
    resolve(toy, RESOLVED)
    toy.ok("rebase", "--continue", "--no-test")
    moved = (toy.project.patches / "code.patch").read_text()
    (toy.project.patches / "code.patch").write_text(PATCH)
    wheel = write_release(toy.registry, "1.0", code=CODE)
    again = make_project(
        toy.project.root.parent / "again", {"code.patch": PATCH}, {"helper.py": "number = float\n"}, wheel
    )
    (again.cache).mkdir(parents=True)
    (toy.project.cache / "resolutions").rename(again.cache / "resolutions")
    toy.project = again
    told = toy.ok("rebase", "--to", "1.2", "--commit", "cd" * 20, "--no-test")
    assert "code.patch  moved, its conflict resolved as it was before" in told
    assert [line for line in (again.patches / "code.patch").read_text().splitlines() if line[:1] in "+-"] == [
        line for line in moved.splitlines() if line[:1] in "+-"
    ]


def test_overlay_files_of_a_skipped_patch_are_named(toy: CodeToy) -> None:
    assert toy.run(*REBASE).returncode == 1
    told = toy.ok("rebase", "--skip", "--no-test")
    lines = [line for line in told.splitlines() if line.startswith("overlay/python")]
    assert lines == [
        "overlay/python/triton/helper.py is left: only code.patch, which was skipped, used it; remove it, or bring the "
        "patch back"
    ]


def test_a_commit_that_was_not_checked_is_noted(toy: Toy) -> None:
    assert toy.run(*REBASE).returncode == 1
    toy.ok("rebase", "--skip", "--no-test")
    (note,) = toy.project.lock().commit_notes.values()
    assert note.startswith("not checked: v1.1 could not be looked up at file:///nowhere/t.git")


WHEELS: tuple[tuple[str, ...], ...] = (("wheel",), ("wheel", "--plugin-only"), ("wheel", "--backends", "own"))


@pytest.fixture
def own_backend(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `setup.py bdist_wheel` in a checkout that is a plugin itself, on a release of upstream that is too old."""
    checkout = Checkout(tmp_path)
    project: Project = checkout.project
    for name in ("compiler.py", "driver.py"):
        (project.root / "backend" / name).touch()
    (project.root / "backend/name.conf").write_text("own")
    for name in ("setup.py", "LICENSE", "pyproject.toml"):
        (project.root / name).write_bytes((ROOT / name).read_bytes())
    return checkout.run


@pytest.mark.parametrize("arguments", WHEELS, ids=lambda arguments: "-".join(arguments))
def test_a_release_that_is_too_old_for_the_backend_is_refused(
    own_backend: Callable[..., subprocess.CompletedProcess[str]], arguments: tuple[str, ...]
) -> None:
    done = own_backend(*arguments)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: no wheel with this backend in it can be built: the backend needs triton 3.9 or newer, and "
        "upstream.lock.toml names 1.0; `rebase --to` moves the queue"
    )
