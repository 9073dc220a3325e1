"""A run that is killed, or runs out of disk, at any step leaves the old state or the new one; the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import zipfile
from pathlib import Path

import pytest
from toy_project import ALPHA, snapshot, sources
from toy_runs import FULL, KILLED, REBASE, Toy, both, build, clean

from tools import faults
from tools.hold import hold
from tools.repository import Repository
from tools.upstream import sync
from tools.verbs import apply, check


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


@pytest.mark.parametrize(("point", "how"), both("sync"))
def test_sync(tmp_path: Path, point: str, how: str) -> None:
    toy = Toy(tmp_path, cached=False)
    toy.stop("sync", point=point, how=how)
    done = point == "sync-exchanged"
    assert toy.project.tree.exists() == done
    toy.ok("sync")
    with Repository(toy.project) as repository:
        assert repository.status().dirty == ()
    assert (toy.project.tree / "python/triton/alpha.py").read_text() == ALPHA
    assert clean(toy.project)
    assert not list((toy.project.cache / "wheels").glob(".*"))


@pytest.mark.parametrize("how", [KILLED, FULL])
def test_sync_over_an_older_tree(toy: Toy, how: str) -> None:
    apply.run(toy.project, [])
    before = toy.tree()
    (toy.project.tree / "release.json").write_text("{}")  # as of another release
    toy.stop("sync", point="sync-created", how=how)
    assert toy.tree() == before | {"release.json": b"{}"}
    toy.stop("sync", point="sync-exchanged", how=how)
    toy.ok("apply")
    assert toy.tree() == before


@pytest.mark.parametrize(("point", "how"), both("apply"))
def test_apply(toy: Toy, point: str, how: str) -> None:
    sync(toy.project)
    stock = toy.tree()
    toy.stop("apply", point=point, how=how)
    if point != "apply-reset":
        assert toy.tree() == stock
    # Whatever command comes next finishes what was begun, or starts from what was there.
    with Repository(toy.project) as repository:
        assert repository.status().dirty == ()
    assert (toy.tree() == stock) == (point == "apply-committed")
    toy.ok("apply")
    assert toy.tree() == stock | {
        "python/triton/alpha.py": stock["python/triton/alpha.py"]
        .replace(b"line 2\n", b"line two\n")
        .replace(b"line 37\n", b"line 37\nline 37 and a half\n"),
        "python/triton/gamma.py": b"GAMMA = 3",
        "python/triton/layer.py": b"LAYER = 1\n",
    }
    assert check.faults(toy.project) == []


@pytest.mark.parametrize(("point", "how"), both("rebase", "journal"))
def test_rebase(toy: Toy, point: str, how: str) -> None:
    old = sources(toy.project)
    toy.stop(*REBASE, point=point, how=how)
    if point in ("journal-written", *faults.POINTS["rebase"][:-1]):
        assert sources(toy.project) == old
    # The next command, whatever it is, settles a change that was begun.
    with hold(toy.project):
        now = sources(toy.project)
    version = toy.project.lock().version
    assert version in ("1.0", "1.1")
    assert (now == old) == (version == "1.0")
    assert version == ("1.1" if point in ("rebase-finished", *faults.POINTS["journal"][1:]) else "1.0")
    if version == "1.0":
        toy.ok(*(REBASE if point == "rebase-prepared" else ("rebase", "--continue", "--no-test")))
    assert toy.project.lock().version == "1.1"
    assert not (toy.project.build / "rebase").exists()
    apply.run(toy.project, [])
    assert (toy.project.tree / "python/triton/alpha.py").read_text().startswith("line 0\nline 1\nline two\n")
    assert check.faults(toy.project) == []
    assert clean(toy.project)


@pytest.mark.parametrize(("point", "how"), both("journal"))
def test_export(toy: Toy, point: str, how: str) -> None:
    apply.run(toy.project, [])
    alpha = toy.project.tree / "python/triton/alpha.py"
    alpha.write_text(alpha.read_text().replace("line 20\n", "line twenty\n"))
    git = ["git", "-C", str(toy.project.tree), "-c", "user.name=me", "-c", "user.email=me@here"]
    subprocess.run([*git, "commit", "-qam", "third: change\n\nWhy: a test.\nUpstream-Status: none"], check=True)
    old = sources(toy.project)
    toy.stop("export", point=point, how=how)
    if point == "journal-written":
        assert sources(toy.project) == old
    toy.ok("export")
    assert check.faults(toy.project) == []
    assert "third-change.patch" in (toy.project.patches / "series").read_text()


@pytest.fixture
def toy_wheel(toy: Toy) -> Toy:
    """The toy applied, so that a wheel can be built of it."""
    apply.run(toy.project, [])
    return toy


@pytest.mark.parametrize(("point", "how"), both("wheel"))
def test_wheel(toy_wheel: Toy, point: str, how: str) -> None:
    project = toy_wheel.project
    assert build(toy_wheel, "build_wheel").returncode == 0
    (wheel,) = project.dist.iterdir()
    old = wheel.read_bytes()
    done = build(toy_wheel, "build_wheel", fault=point if how == KILLED else f"{point}:{FULL}")
    assert done.returncode == (-signal.SIGKILL if how == KILLED else 1), done.stderr
    # What stands under the wheel's name is whole: the old one, which is also the new one.
    assert wheel.read_bytes() == old
    assert build(toy_wheel, "build_wheel").returncode == 0
    assert [path.name for path in project.dist.iterdir()] == [wheel.name]
    assert wheel.read_bytes() == old
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize(("point", "how"), both("build"))
def test_build_tree(toy_wheel: Toy, point: str, how: str) -> None:
    project = toy_wheel.project
    assert build(toy_wheel, "build_tree").returncode == 0
    old = snapshot(project.build / "lib")
    assert old
    done = build(toy_wheel, "build_tree", fault=point if how == KILLED else f"{point}:{FULL}")
    assert done.returncode == (-signal.SIGKILL if how == KILLED else 1), done.stderr
    assert snapshot(project.build / "lib") == old
    assert build(toy_wheel, "build_tree").returncode == 0
    assert clean(project)


def test_a_file_size_limit_is_a_full_disk(toy: Toy) -> None:
    # Not a fault that is made up: the system itself refuses to write more than 4 KB to a file.
    old = sources(toy.project)
    command = ["bash", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "bash", *toy.command(*REBASE)]
    done = subprocess.run(command, env=toy.environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sources(toy.project) == old
    toy.ok(*(REBASE if not (toy.project.build / "rebase").exists() else ("rebase", "--continue", "--no-test")))


def test_two_runs_at_once(toy: Toy) -> None:
    runs = [
        subprocess.Popen(
            toy.command("apply"), env=toy.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    outputs = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outputs
    # One did it, the others waited and found it done.
    assert sorted(out.split()[0] for out, _ in outputs) == ["applied", "nothing", "nothing"]
    assert check.faults(toy.project) == []


def test_a_second_run_waits_for_the_first(toy: Toy) -> None:
    sync(toy.project)
    with hold(toy.project):
        second = subprocess.Popen(
            toy.command("apply"), env=toy.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert second.stderr is not None
        # It says whom it waits for, at once.
        assert f"(process {os.getpid()})" in second.stderr.readline()
        assert second.poll() is None
    out, _ = second.communicate(timeout=120)
    assert second.returncode == 0 and out.startswith("applied")
