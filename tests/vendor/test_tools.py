"""The commands themselves: bootstrap, system packages, the lock's choice of a wheel, the wheel's tag."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy_project import git
from vendor_support import ROOT

from tools import commit_subjects, progress, system
from tools.__main__ import VERBS, reported
from tools.errors import ToolError
from tools.hold import hold
from tools.packaging import native, tags
from tools.packaging.archive import Archive
from tools.packaging.plugins import Plugin, load_plugin
from tools.packaging.strip import stripped
from tools.project import Lock, Project
from tools.system import Need
from tools.verbs import dev as dev_verb
from tools.verbs import test as test_verb

#: What pytest is given in a run of all tests.
ALL = ("tests", "--durations=30")


def run_tools(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tools on the standard library alone (-S: no site-packages)."""
    command = [sys.executable, "-S", "-m", "tools", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_usage_names_every_verb_and_needs_the_standard_library_only() -> None:
    done = run_tools("--help")
    assert done.returncode == 0, done.stderr
    assert all(f"  {verb} " in done.stdout for verb in VERBS)
    assert {path.stem.replace("_", "-") for path in (ROOT / "tools/verbs").glob("[a-z]*.py")} == set(VERBS)


@pytest.mark.parametrize("verb", ["check", "dev", "test", "packages"])
def test_help_of_a_verb_says_what_it_does_and_does_nothing(verb: str) -> None:
    done = run_tools(verb, "--help")
    assert (done.returncode, done.stdout) == (0, f"usage: python3 -m tools {verb}: {VERBS[verb][0]}\n")


def test_an_unknown_verb() -> None:
    done = run_tools("chekc")
    assert done.returncode == 2
    hint = "did you mean 'check'? `python3 -m tools help` lists them"
    assert done.stderr == f"error: there is no verb 'chekc': {hint}\n"


def test_an_argument_of_a_verb_that_takes_none() -> None:
    done = run_tools("apply", "--force")
    assert (done.returncode, done.stderr) == (2, "error: apply has no argument '--force'\n")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("develop", "error: setup.py develop is not supported: use `pip install -e .`"),
        ("install", "error: setup.py install is not supported: use `pip install .`"),
        ("biuld", "error: setup.py has no command biuld: did you mean build?"),
        ("test", "error: setup.py has no command test: there are build and bdist_wheel"),
    ],
)
def test_a_command_of_setup_py_that_there_is_not(command: str, line: str) -> None:
    done = subprocess.run([sys.executable, "setup.py", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{line}\n")


def missing(what: str, *packages: str) -> Need:
    return Need(what, packages, lambda: False)


NEEDS = (missing("a loader", "libloader1"), missing("a driver", "one-driver", "two-driver"))


def test_without_root_the_exact_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ToolError) as caught:
        system.ensure(NEEDS)
    assert str(caught.value) == (
        "missing on this system: a loader, a driver; type: sudo apt-get update && "
        "sudo apt-get install -y --no-install-recommends libloader1 one-driver two-driver"
    )


def test_without_apt_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda name: None)
    with pytest.raises(ToolError, match="a loader, a driver; install it with your package manager"):
        system.ensure(NEEDS)


def test_as_root_apt_get_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "log"
    apt = tmp_path / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    apt.chmod(0o755)
    monkeypatch.setattr(system.shutil, "which", lambda name: str(apt))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    need = Need("a log", ("log-package",), lambda: log.exists() and "install" in log.read_text())
    system.ensure((need,))
    system.ensure((need,))  # which needs nothing now
    lines = [line.replace("-qq ", "") for line in log.read_text().splitlines()]
    assert lines == ["update", "install -y --no-install-recommends log-package"]
    with pytest.raises(ToolError, match=r"but the system still lacks a ghost \(call one\)$"):
        system.ensure((Need("a ghost", ("ghost",), lambda: False, otherwise="call one"),))


@pytest.fixture(scope="module")
def lock() -> Lock:
    return Project(ROOT).lock()


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("python", "free_threaded", "tag"),
    [
        ((3, 11), False, "cp311-cp311"),
        ((3, 12), False, "cp312-abi3"),
        ((3, 13), False, "cp312-abi3"),
        ((3, 14), False, "cp312-abi3"),
        ((3, 14), True, "cp314-cp314t"),
    ],
)
def test_the_lock_has_a_wheel(lock: Lock, arch: str, python: tuple[int, int], free_threaded: bool, tag: str) -> None:
    wheel = lock.wheel_for(python, free_threaded, arch)
    assert f"-{tag}-" in wheel.file
    assert arch in wheel.file


@pytest.mark.parametrize(
    ("python", "free_threaded", "arch"),
    [((3, 10), False, "x86_64"), ((3, 13), True, "x86_64"), ((3, 12), False, "riscv64")],
)
def test_the_lock_has_no_wheel(lock: Lock, python: tuple[int, int], free_threaded: bool, arch: str) -> None:
    with pytest.raises(ToolError, match=f"has no release wheel for Python 3.{python[1]}.* on {arch}; it has cp311"):
        lock.wheel_for(python, free_threaded, arch)


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        ([], "upstream"),
        ([28], "upstream"),
        ([17, 5], "upstream"),
        ([34, 29], "manylinux_2_34_x86_64"),
        ([34, None], "linux_x86_64"),
    ],
)
def test_the_platform_tag(monkeypatch: pytest.MonkeyPatch, needed: list[int | None], expected: str) -> None:
    libraries = {Path(f"lib{number}.so"): value for number, value in enumerate(needed)}
    monkeypatch.setattr(tags, "needed_glibc", lambda library, *_: libraries[library])
    monkeypatch.setattr(tags.platform, "machine", lambda: "x86_64")
    assert tags.platform_tag("upstream", list(libraries)) == expected


def test_a_library_that_manylinux_does_not_allow(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int other(void) { return 1; }\n")
    (tmp_path / "own.c").write_text("int other(void); int own(void) { return other(); }\n")
    for command in (
        ["cc", "-shared", "-fPIC", "-o", "libother.so", "other.c"],
        ["cc", "-shared", "-fPIC", "-o", "libown.so", "own.c", "-L.", "-lother"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    found = tags.needed_glibc(tmp_path / "libother.so")
    assert found is not None and found < 28
    assert tags.needed_glibc(tmp_path / "libown.so") is None


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name in (".sync-1", ".apply-2", ".lib-3", ".source-4"):
        (project.build / name / "half").mkdir(parents=True)
    (project.build / "lib").mkdir()
    with hold(project):
        assert sorted(path.name for path in project.build.iterdir()) == [".lock", "lib"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.EROFS, "Read-only file system", "build"),
            "error: .*'build': .* in the checkout, so it must be writable",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "build"), "error: .* so it must be writable: copy it"),
        (OSError(errno.ENOSPC, "No space left on device"), "error: no room on the disk .*: make some and run it again"),
    ],
)
def test_what_the_system_refuses_is_one_line(error: OSError, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise error

    assert reported(fail) == 1
    err = capsys.readouterr().err
    assert re.match(line, err), err
    assert len(err.splitlines()) == 1


def test_a_wrong_setting_is_one_line() -> None:
    environment = {**os.environ, "TRITON_SPIRV_TOOLS_IN_PLACE": "perhaps"}
    command = [sys.executable, "-m", "tools", "status"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: TRITON_SPIRV_TOOLS_IN_PLACE must be 0 or 1, not 'perhaps'\n"


@pytest.mark.parametrize("home", [None, "/nonexistent"])
def test_without_a_home(home: str | None) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "HOME"} | {
        "TRITON_SPIRV_TOOLS_IN_PLACE": "1"
    }
    environment |= {"HOME": home} if home else {}
    command = [sys.executable, "-m", "tools", "status"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("upstream   triton ")


def test_a_long_step_tells_how_far_it_is_in_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    told = ""
    with progress.step("build it") as how_far:
        how_far.at(3, 40)
        while "3 of 40" not in told:
            time.sleep(0.01)
            told += capsys.readouterr().err
    lines = re.sub(r"[\d.]+ s$", "", told + capsys.readouterr().err, flags=re.MULTILINE).splitlines()
    number = progress.steps()
    assert lines[0] == f"[tools] step {number}: build it …"
    assert f"[tools] step {number}: build it: 3 of 40, " in lines[1:-1]
    assert lines[-1] == f"[tools] step {number}: build it: done in "


def test_one_clock_at_a_time_is_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.step("compile"):  # as another thread does meanwhile
        with progress.step("fetch"):
            progress.note("a word")
    shown = [line.rpartition("\r\033[K")[2] for line in terminal.getvalue().split("\n")[:-1]]
    assert [re.sub(r"step \d+: |[\d.]+ s", "", line) for line in shown] == [
        "[tools] fetch …",
        "[tools] a word",
        "[tools] fetch: done in ",
        "[tools] compile: done in ",
    ]


def test_plugins_are_compiled_beside_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    laid_out = threading.Event()

    def build_native(plugin: Plugin, build: Path) -> dict[str, Path]:
        assert laid_out.wait(60)
        if plugin.name == "wrong":
            raise ToolError("it does not compile")
        return {plugin.name: build}

    monkeypatch.setattr(native, "build_native", build_native)
    plugins: list[Any] = [SimpleNamespace(name=name) for name in ("right", "wrong")]
    with native.building(plugins, tmp_path) as native_of:
        laid_out.set()
        assert native_of(plugins[0]) == {"right": tmp_path}
        with pytest.raises(ToolError, match="it does not compile"):
            native_of(plugins[1])


def test_a_build_that_fails_names_what_the_system_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CMake stops at the first thing that it does not find."""
    (tmp_path / "backend").mkdir()
    (tmp_path / "backend/name.conf").write_text("toy")
    for name in ("compiler.py", "driver.py"):
        (tmp_path / "backend" / name).touch()
    (tmp_path / "CMakeLists.txt").write_text('message(FATAL_ERROR "no headers")\n')
    monkeypatch.setattr(system, "BUILD", NEEDS)
    with pytest.raises(ToolError, match=r"failed; its output is above; missing on this system: a loader, .*one-driver"):
        native.build_native(load_plugin(tmp_path), tmp_path / "build")


@pytest.mark.parametrize(
    ("arguments", "runs", "builds"),
    [
        ([], [[*ALL, "--each-value"], [*ALL, "--each-value", "--vulkan-part"]], ["win_amd64"]),
        (["--whole", "-x"], [[*ALL, "-x"], [*ALL, "-x", "--vulkan-part"]], ["win_amd64"]),
        (["tests/lowering", "-k", "dot"], [["tests/lowering", "-k", "dot"]], []),
        (["--fast"], [[*ALL, "--each-value"]], []),
    ],
)
@pytest.mark.parametrize("compiles", [True, False])
def test_the_suite_is_run_for_each_value_unless_the_whole_is_asked_for(
    arguments: list[str], runs: list[list[str]], builds: list[str], compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole runs compile for Windows; where that fails, they fail behind the tests."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        made.append([word for word in command[3:] if word not in workers])
        return subprocess.CompletedProcess(command, 0)

    def build_native(_: object, __: Path, system: str) -> None:
        built.append(system)
        if not compiles:
            raise ToolError("it does not compile")

    made, built = list[list[str]](), list[str]()
    workers = ["-n", str(os.cpu_count() or 1), "--dist", "loadfile"]
    monkeypatch.delenv("TRITON_SPIRV_DEVICE", raising=False)
    for name, value in (("ensure_installed", "a.whl"), ("ensure_editable", None), ("_lint", [])):
        monkeypatch.setattr(test_verb, name, lambda *_, value=value: value)
    monkeypatch.setattr(test_verb.system, "ensure", lambda needs: None)
    monkeypatch.setattr(test_verb.check, "run", lambda *_: 0)
    monkeypatch.setattr(test_verb.subprocess, "run", run)
    monkeypatch.setattr(test_verb, "build_native", build_native)
    monkeypatch.setattr(test_verb.windows, "refusal", lambda: "")
    monkeypatch.chdir(ROOT)
    with contextlib.nullcontext() if compiles or not builds else pytest.raises(ToolError, match="for Windows found"):
        assert test_verb.run(Project(ROOT), arguments) == 0
    assert (made, built) == (runs, builds)


def test_the_tests_of_a_file_have_its_name_or_import_it() -> None:
    found = {Path(path).name for path in test_verb.tests_of(ROOT, ROOT / "backend/transforms/gpu/prefetch.py")}
    assert {"test_prefetch.py", "test_meaning.py", "test_text.py"} <= found and len(found) < 8
    by_import, of_cpp = (ROOT / "backend" / name for name in ("transforms/rewriting.py", "native/cpu/pool.cpp"))
    assert str(ROOT / "tests/unit/transforms/test_rewriting.py") in test_verb.tests_of(ROOT, by_import)
    assert str(ROOT / "tests/unit/runtime_cpu") in test_verb.tests_of(ROOT, of_cpp)
    with pytest.raises(ToolError, match="wants a file of backend/"):
        test_verb.tests_of(ROOT, ROOT / "setup.py")


@pytest.mark.parametrize(
    ("subject", "is_right"),
    [
        ("tests/device: what a kernel leaves", True),
        ("docs, tests: whole sentences", True),
        ("Fixed it", False),
        ("docs: " + "long " * 14, False),
    ],
)
def test_the_subject_of_a_commit(
    subject: str, is_right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", subject)
    monkeypatch.chdir(tmp_path)
    assert commit_subjects.main([]) == (not is_right)
    assert (subject.strip() in capsys.readouterr().out) != is_right


@pytest.mark.parametrize("present", [True, False])
def test_dev_says_what_tests_lack(
    present: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system, "BUILD", ())
    monkeypatch.setattr(system, "TEST", (Need("spirv-val", ("spirv-tools",), lambda: present),))
    monkeypatch.setattr("tools.installed.ensure_editable", lambda project: None)
    assert dev_verb.run(Project(ROOT), []) == 0
    assert (
        "note: some tests need what is missing on this system: spirv-val; " in capsys.readouterr().out
    ) is not present


@pytest.mark.parametrize("packed", [True, False])
def test_a_stripped_library_is_packed_for_a_wheel_alone(tmp_path: Path, packed: bool) -> None:
    library = ROOT / "build/upstream/python/triton/_C/libproton.so"
    found, stream = [stripped(tmp_path, library, "digest", packed=packed) for _ in range(2)][1]  # from the cache
    with (tmp_path / "x.whl").open("wb") as out, Archive(out, (1980, 1, 1, 0, 0, 0)) as archive:
        archive.add_stream("x.so", stream, True)
    with zipfile.ZipFile(tmp_path / "x.whl") as wheel:
        assert wheel.read("x.so") == found.read_bytes() and len(found.read_bytes()) < library.stat().st_size
        assert (wheel.getinfo("x.so").compress_type == zipfile.ZIP_DEFLATED) is packed
