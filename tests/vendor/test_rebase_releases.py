"""`rebase` on upstream's real releases: this repository's queue there and back, and a toy series whose fate is known.

Run alone with `pytest -m releases`. The wheels (0.7 GB) are fetched once, into build/cache/wheels.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import shutil
from pathlib import Path

import pytest
from toy_project import make_project, sources
from vendor_support import ROOT

from tools import registry, upstream
from tools.hold import hold
from tools.project import Project, ReleaseWheel
from tools.queue import series_names
from tools.verbs import rebase

pytestmark = [pytest.mark.releases, pytest.mark.skipif(platform.machine() != "x86_64", reason="wheels of x86-64")]

TOY_SERIES = Path(__file__).parent / "series-3.7.1"
COMMIT = "ab" * 20


@pytest.fixture(scope="module")
def wheels() -> dict[str, ReleaseWheel]:
    """The release wheels for this Python, from the registry or the cache."""
    project = Project(ROOT)
    lock = project.lock()
    found = {lock.version: lock.wheel_for_this_python()}
    for version in ("3.7.1", "3.8.0", "3.9.0"):
        if version not in found:
            found[version] = registry.wheel_for_this_python(lock.name, version, platform.machine())
        wheel = found[version]
        place = project.cache / "wheels" / wheel.file
        if not place.exists():
            with hold(project):
                upstream.fetch(project, dataclasses.replace(lock, version=version), wheel)
    return found


def share_cache(project: Project, wheels: dict[str, ReleaseWheel]) -> Project:
    """Give a project the fetched wheels without copying them."""
    folder = project.cache / "wheels"
    folder.mkdir(parents=True)
    for wheel in wheels.values():
        source = Project(ROOT).cache / "wheels" / wheel.file
        try:
            os.link(source, folder / wheel.file)
        except OSError:
            (folder / wheel.file).symlink_to(source)
    return project


def move(project: Project, version: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capfd.readouterr()
    status = rebase.run(project, ["--to", version, "--commit", COMMIT, "--no-test"])
    return status, capfd.readouterr().out.splitlines()


def go_on(project: Project, option: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capfd.readouterr()
    status = rebase.run(project, [option, "--no-test"])
    return status, capfd.readouterr().out.splitlines()


#: Patches of lines that 3.8.0 has in another form.
FOR_3_9_0_ALONE = ("interpreted-numbers.patch", "interpreted-backends.patch")
#: Files of the overlay that only these use, and the patch that does.
OVERLAYS_FOR_3_9_0_ALONE = {
    "interpreted_backends.py": "interpreted-backends.patch",
    "scalar_tensors.py": "interpreted-numbers.patch",
}


def table(names: list[str], **outcome: str) -> list[str]:
    """What a rebase prints of the overlay and the patches; ``outcome`` is that of FOR_3_9_0_ALONE."""
    width = max(map(len, ["overlay/", *names]))
    ends = dict.fromkeys(FOR_3_9_0_ALONE, outcome.get("others", "moved"))
    return [f"{name:<{width}}  {ends.get(name, 'moved')}" for name in ["overlay/", *names]]


def test_this_queue_on_3_8_0_and_back(
    tmp_path: Path, wheels: dict[str, ReleaseWheel], capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    for name in ("patches", "overlay"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitmodules", "pyproject.toml", "upstream.lock.toml"):
        shutil.copy(ROOT / name, root)
    project = share_cache(Project(root), wheels)
    assert project.lock().version == "3.9.0"
    at_home = sources(project)
    names = series_names(project)
    kept = [name for name in names if name not in FOR_3_9_0_ALONE]
    # The report says which patches are in conflict, and changes nothing.
    assert rebase.run(project, ["--to", "3.8.0", "--report"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[-len(names) - 1 :] == table(names, others="conflict")
    assert sources(project) == at_home
    # The others move.
    status, lines = move(project, "3.8.0", capfd)
    for name in FOR_3_9_0_ALONE:
        assert status == 1
        assert lines[0].startswith(f"conflict: patch {name}, ")
        status, lines = go_on(project, "--skip", capfd)
    left = [
        f"overlay/python/triton/runtime/{file} is left: only {patch}, which was skipped, used it; remove it, or bring "
        "the patch back"
        for file, patch in OVERLAYS_FOR_3_9_0_ALONE.items()
    ]
    said = [*table(names, others="skipped"), *left, "the queue is on triton 3.8.0 (v3.8.0) now"]
    assert (status, lines) == (0, said)
    on_3_8_0 = sources(project)
    assert series_names(project) == kept
    # A series that is written for 3.8.0 goes to 3.9.0 …
    status, lines = move(project, "3.9.0", capfd)
    assert (status, lines) == (0, [*table(kept), "the queue is on triton 3.9.0 (v3.9.0) now"])
    by_version = sources(project)
    overlay = {path for path in at_home if path.startswith("overlay/")}
    assert overlay
    assert {path: sources(project)[path] for path in overlay} == {path: at_home[path] for path in overlay}
    # … and back.
    assert move(project, "3.8.0", capfd)[0] == 0
    assert sources(project) == on_3_8_0
    # The release's wheel as a file gives the same queue, and a lock that names it alone.
    wheel = wheels["3.9.0"]
    status, lines = move(project, str(project.cache / "wheels" / wheel.file), capfd)
    assert (status, lines[-1]) == (0, f"the queue is on triton 3.9.0 ({wheel.file}) now")
    assert project.lock().wheels == (wheel,)
    lock = project.lock_file.name
    assert {**sources(project), lock: None} == {**by_version, lock: None}


CONFLICT_IN_3_8_0 = """\
conflict: patch conflicts-in-3.8.0.patch, python/triton/testing.py, hunk 1 of 2: @@ -36,7 +36,7 @@ def _quantile(a, q):
  upstream 3.8.0:
    |     return [get_quantile(qi) for qi in q]
  upstream 3.7.1, which the patch was written for:
    |     return [get_quantile(q) for q in q]
  the patch:
    |     return [get_quantile(fraction) for fraction in q]
""".splitlines()

SECOND_CONFLICT_IN_3_9_0 = """\
conflict: patch conflicts-in-3.8.0.patch, python/triton/testing.py, hunk 1 of 1: @@ -110,7 +110,7 @@ {function}
  upstream 3.9.0:
    |{blank}
    |     assert return_mode in ["min", "max", "mean", "median", "all"]
  upstream 3.8.0, which the patch was written for:
    |     assert return_mode in ["min", "max", "mean", "median", "all"]
  the patch:
    |     assert return_mode in ("min", "max", "mean", "median", "all")
""".format(
    function="def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mod", blank=" "
).splitlines()

CONFLICT_IN_3_9_0 = """\
conflict: patch conflicts-in-3.9.0.patch, python/triton/compiler/compiler.py, hunk 1 of 1: {header}
  upstream 3.9.0:
    |     if ext in ("ttir", "glir", "ttgir"):
  upstream 3.8.0, which the patch was written for:
    |     if ext == "ttir" or ext == "ttgir":
  the patch:
    |     if ext in ("ttir", "ttgir"):
""".format(header="@@ -136,7 +136,7 @@ def max_shared_mem(device):").splitlines()


def test_a_toy_series_across_three_releases(
    tmp_path: Path, wheels: dict[str, ReleaseWheel], capfd: pytest.CaptureFixture[str]
) -> None:
    names = (TOY_SERIES / "series").read_text().split()
    patches = {name: (TOY_SERIES / name).read_text() for name in names}
    project = share_cache(make_project(tmp_path / "repo", patches, {}, wheels["3.7.1"]), wheels)
    # 3.7.1 → 3.8.0: one patch is upstream's own by now, one is in conflict.
    status, lines = move(project, "3.8.0", capfd)
    assert status == 1
    assert lines[:-1] == CONFLICT_IN_3_8_0
    file = project.build / "rebase/tree/python/triton/testing.py"
    text = file.read_text()
    start, end = text.index("<<<<<<<"), text.index(">>>>>>>")
    end = text.index("\n", end) + 1
    file.write_text(text[:start] + "    return [get_quantile(qi) for qi in q]\n" + text[end:])
    status, lines = go_on(project, "--continue", capfd)
    assert (status, lines) == (
        0,
        [
            "moves.patch               moved",
            "taken-in-3.8.0.patch      dropped: upstream has taken it",
            "conflicts-in-3.8.0.patch  moved, its conflict resolved by hand",
            "conflicts-in-3.9.0.patch  moved",
            "the queue is on triton 3.8.0 (v3.8.0) now",
        ],
    )
    assert series_names(project) == ["moves.patch", "conflicts-in-3.8.0.patch", "conflicts-in-3.9.0.patch"]
    # 3.8.0 → 3.9.0: two conflicts, one skipped, one resolved.
    before = sources(project)
    status, lines = move(project, "3.9.0", capfd)
    assert (status, lines[:-1]) == (1, SECOND_CONFLICT_IN_3_9_0)
    status, lines = go_on(project, "--skip", capfd)
    assert (status, lines[:-1]) == (1, CONFLICT_IN_3_9_0)
    assert sources(project) == before
    # Given up, nothing has changed; and the report tells of both conflicts at once.
    assert rebase.run(project, ["--abort"]) == 0
    capfd.readouterr()
    assert rebase.run(project, ["--to", "3.9.0", "--report"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines == [
        *SECOND_CONFLICT_IN_3_9_0,
        *CONFLICT_IN_3_9_0,
        "moves.patch               moved",
        "conflicts-in-3.8.0.patch  conflict",
        "conflicts-in-3.9.0.patch  conflict",
    ]
    assert sources(project) == before


def test_the_registry_has_what_the_lock_has() -> None:
    lock = Project(ROOT).lock()
    assert set(registry.release_wheels(lock.name, lock.version)) == set(lock.wheels)
