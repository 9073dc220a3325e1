"""What Windows has in another way is in backend/system.py, backend/native/platform/, files that are named for it,
two headers of backend/include/triton_spirv/, and CMakeLists.txt alone."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from triton.backends.spirv import system

from tools.errors import ToolError
from tools.packaging import targets, windows, windows_checks
from tools.project import Project

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "backend" / "native"

#: Headers that mingw-w64 lacks, or has with less in them.
UNIX = re.compile(r"(dlfcn|elf|semaphore|ucontext|unistd|cxxabi)\.h|sys/.*\.h|linux/.*\.h")
#: Headers with a part for each system.
BOTH = {ROOT / "backend/include/triton_spirv" / name for name in ("elf.hpp", "pages.hpp", "processor.hpp")}
#: Python's names that Windows lacks.
LACKING = {
    "os": {"register_at_fork", "sched_getaffinity", "RTLD_NOLOAD", "fork", "getuid", "geteuid", "killpg", "setsid"},
    "signal": {"SIGKILL", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGHUP", "alarm", "setitimer", "pthread_kill"},
    # A file that is open under its name cannot be opened again there.
    "tempfile": {"NamedTemporaryFile"},
}
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "pty"}


def compiled_on_windows() -> list[Path]:
    """The files that CMakeLists.txt compiles there, by its two lists and what WIN32 adds to them."""
    text = (ROOT / "CMakeLists.txt").read_text()
    common = text[text.index("set(native_files") : text.index("else()", text.index("if(WIN32)"))]
    return [NATIVE / name for name in re.findall(r'\$\{TRITON_SPIRV_NATIVE\}/([\w/]+\.cpp)"', common)]


def includes(file: Path, seen: dict[Path, set[str]]) -> None:
    """Adds the file, and the project's headers that it includes, with the system headers of each."""
    if file in seen:
        return
    seen[file] = set()
    for name in re.findall(r'^#include [<"]([^>"]+)[>"]', file.read_text(), re.MULTILINE):
        ours = [
            folder / name for folder in (file.parent, NATIVE, ROOT / "backend/include") if (folder / name).is_file()
        ]
        if ours:
            includes(ours[0], seen)
        else:
            seen[file].add(name)


def test_what_is_compiled_for_windows_includes_no_header_of_unix() -> None:
    seen: dict[Path, set[str]] = {}
    for file in compiled_on_windows():
        includes(file, seen)
    assert NATIVE / "platform/windows.cpp" in seen and NATIVE / "vulkan/vulkan_device.h" in seen
    assert (
        NATIVE / "platform/linux.cpp" not in seen and NATIVE / "cpu/windows_faults.cpp" in seen and BOTH <= seen.keys()
    )
    wrong = {
        str(file): names
        for file, found in seen.items()
        if file not in BOTH and (names := {n for n in found if UNIX.fullmatch(n)})
    }
    assert not wrong


def test_both_halves_of_the_platform_define_the_same() -> None:
    def defined(name: str) -> set[str]:
        return set(
            re.findall(r"^[\w* ]*?\*?\b(k?\w+)(?:\(| =)", (NATIVE / "platform" / name).read_text(), re.MULTILINE)
        )

    declared = set(re.findall(r"\b(k?\w+)(?:\(.*\))?;", (NATIVE / "platform/platform.h").read_text()))
    assert "load_library" in declared and "kVulkanLoader" in declared
    assert declared <= defined("linux.cpp") and declared <= defined("windows.cpp")


def test_python_that_windows_lacks_is_in_one_file() -> None:
    wrong = []
    for path in sorted((ROOT / "backend").rglob("*.py")):
        if path == ROOT / "backend/system.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.attr in LACKING.get(node.value.id, ()):
                    wrong.append(f"{place} {node.value.id}.{node.attr}")
            elif isinstance(node, ast.Import):
                wrong += [f"{place} {alias.name}" for alias in node.names if alias.name in MODULES]
            elif isinstance(node, ast.ImportFrom) and node.module in {*MODULES, *LACKING}:
                wrong += [f"{place} {a.name}" for a in node.names if a.name in LACKING.get(node.module, {a.name})]
    assert not wrong


def test_each_verb_runs_under_wine() -> None:
    verbs = set(re.findall(r'verbs\.add_parser\("(\w+)"', (ROOT / "backend/cli.py").read_text()))
    assert "inspect" in verbs
    checks = [check.arguments for check in windows_checks.CHECKS + windows_checks.TORCH]
    assert {arguments[2] for arguments in checks if arguments[0] == "-m"} == verbs
    probes = {path.name for path in Path(windows_checks.__file__).parent.glob("windows_*probe.py")}
    assert {arguments[0] for arguments in checks if arguments[0] != "-m"} == probes


@pytest.mark.parametrize(
    "check, wanted",
    [
        (windows_checks.Check(("-c", "print('it ran')"), "it ran"), ""),
        (windows_checks.Check(("-c", "print('it ran'); exit(3)"), "it ran", status=3), ""),
        (windows_checks.Check(("-c", "print('it ran'); exit(3)"), "it ran"), "ended with status 3, and not with 0"),
        (windows_checks.Check(("-c", "print('it failed')"), "it ran"), "and 'it ran':\nit failed"),
        (windows_checks.Check(("-c", "import os; print(os.environ['TRITON_SPIRV_DEVICE'])"), "a GPU"), ""),
        (windows_checks.Check(("-c", "import os; print(os.environ['TRITON_SPIRV_DEVICE'])"), "cpu", "cpu"), ""),
    ],
)
def test_a_check_that_fails_is_told(check: windows_checks.Check, wanted: str, tmp_path: Path) -> None:
    found = windows_checks.failure(check, tmp_path, "a GPU")
    assert wanted in found if wanted else not found


def test_what_linux_installs_is_named_in_one_file() -> None:
    """offline.py is about Mesa's compilers, which it loads on Linux alone."""
    elsewhere = {path for path in (ROOT / "backend").rglob("*.py") if "apt-get" in path.read_text()}
    assert elsewhere == {ROOT / "backend/system.py", ROOT / "backend/inspection/offline.py"}


def test_processors_are_those_that_this_process_may_use() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from triton.backends.spirv import system; print(system.usable_processors())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1", done.stderr


def test_a_file_that_another_process_has_open_is_replaced_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, refusals = os.replace, [PermissionError("sharing violation")] * 3

    def refusing(source: object, target: object) -> None:
        if refusals:
            raise refusals.pop()
        own(source, target)  # type: ignore[arg-type]

    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(system, "WINDOWS", True)
    monkeypatch.setattr(system, "_NAP", 0.0)
    monkeypatch.setattr(os, "replace", refusing)
    system.replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "new" and not refusals


@pytest.mark.parametrize(
    ("windows_", "status", "text"),
    [(False, 0, None), (False, 3, None), (False, -11, "SIGSEGV"), (False, -99, "signal 99"), (True, 1, None)]
    + [(True, 0xC0000005, "exception 0xc0000005"), (True, -1073741819, "exception 0xc0000005")],
)
def test_how_a_process_was_ended(
    windows_: bool, status: int, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "WINDOWS", windows_)
    assert system.ending_of(status) == text


def test_libraries_that_are_loaded() -> None:
    assert system.is_loaded("libc.so.6") and not system.is_loaded("libnothing.so.1")


def test_an_import_library_names_functions_and_marks_data() -> None:
    listed = (
        "00000000000a1b20 T PyObject_Call\n00000000003f0000 B PyExc_RuntimeError\n"
        "0000000000000010 D _Py_NoneStruct\n0000000000001000 T main\n                 U malloc\n"
    )
    assert windows.definitions(listed, "python311.dll") == (
        "LIBRARY python311.dll\nEXPORTS\n    PyExc_RuntimeError DATA\n    PyObject_Call\n    _Py_NoneStruct DATA\n"
    )
    with pytest.raises(ToolError, match="no functions of Python were found to import from python311"):
        windows.definitions("0000000000001000 T main\n", "python311.dll")


def test_a_target_of_another_python_is_refused() -> None:
    from tools.packaging import plugin_wheel

    with pytest.raises(ToolError, match="--plugin-only builds for .*, not for cp39-win_amd64"):
        plugin_wheel.build_wheel(Project(ROOT), target=targets.parse("cp39-win_amd64"))
