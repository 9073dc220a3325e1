"""`test`: set everything up, then run the linters, `check` and the test suite against the installed wheel.

A run of the whole suite compiles the native part for Windows, too, and says which tests took longest.

What tests/vulkan_part.py lists is run twice: on the machine's own device, and on Mesa's CPU driver. Where the arguments
name tests, or TRITON_SPIRV_DEVICE a device, there is one run.

Of the large matrices of tests, those of tests/each_value.py, a run of the whole suite has cells with each value of each
parameter; `test --whole`, and a run of tests that are named, all cells.

`test --fast` runs pytest alone, in one process, against the checkout itself (an editable installation, as of `dev`).
`test --for FILE` does so with the tests of a file of backend/: those that have its name, those that import it, and
its room's sections of text; of a C++ file all of its folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from backend.settings import DEVICE, WHEEL

from .. import system
from ..errors import ToolError
from ..hold import hold
from ..installed import ensure_editable, ensure_installed
from ..packaging import windows
from ..packaging.native import build_native
from ..packaging.plugins import load_plugin
from ..progress import note, step
from ..project import Project
from . import check

FAST, WHOLE, FOR = "--fast", "--whole", "--for"
#: pytest's argument, tests/each_value.py.
EACH_VALUE = "--each-value"
_SLOWEST = "--durations=30"
#: The Vulkan device of the second run.
VULKAN_DEVICE = "llvmpipe"
#: The tests of C++ files by their folder in backend/native/; of those outside of these, all of them.
_OF_NATIVE = {"cpu": "unit/runtime_cpu", "vulkan": "device/runtime", "torch": "device/torch_device"}


def _linters(project: Project) -> dict[str, list[str]]:
    """What each linter is run with, from the project's root."""
    with_rooms, examples = ("backend/native", "backend/include"), ("examples/vulkan_app", "examples/cpu_app")
    paths = [path for folder in with_rooms for path in (project.root / folder).rglob("*")]
    paths += [path for folder in examples for path in (project.root / folder).iterdir()]  # one may have been built
    native = sorted(str(path) for path in paths if path.suffix in (".cpp", ".h", ".hpp"))
    module = [sys.executable, "-m"]
    return {
        "ruff check": [*module, "ruff", "check"],
        "ruff format": [*module, "ruff", "format", "--check", "--quiet"],
        "clang-format": [str(Path(sys.executable).with_name("clang-format")), "--dry-run", "--Werror", *native],
        "mypy": [*module, "mypy"],
    }


def _lint(project: Project) -> list[str]:
    """Run the linters; returns the names of those that found faults."""
    failed: list[str] = []
    for name, command in _linters(project).items():
        with step(name, quiet_child=False):
            done = subprocess.run(command, cwd=project.root, stdout=sys.stderr, check=False)
        if done.returncode:
            failed.append(name)
    return failed


def _for_windows(project: Project) -> list[str]:
    """Compile the native part for Windows, none of which is run; returns what found faults."""
    if reason := windows.refusal():
        note(f"nothing is compiled for Windows: {reason}")
        return []
    try:
        with hold(project):
            build_native(load_plugin(project.root), project.build, windows.MACHINE)
    except ToolError as error:
        note(str(error))
        return ["the compiler for Windows"]
    return []


def _names_tests(argument: str) -> bool:
    return not argument.startswith("-") and Path(argument.split("::", 1)[0]).exists()


def tests_of(root: Path, file: Path) -> list[str]:
    """The files of tests that have the name of a file of backend/, or import it, and that of its room's sections; of a
    C++ file, also the folder of its tests. Raises ToolError."""
    try:
        parts = file.resolve().relative_to(root.resolve() / "backend").with_suffix("").parts
    except ValueError:
        raise ToolError(f"{FOR} wants a file of backend/, and {file} is none") from None
    *folders, name = parts[:-1] if parts[-1] == "__init__" else parts
    package = "".join(rf"\.{folder}" for folder in folders)
    imports = re.compile(rf"spirv{package}(?:\.{name}\b| import (?:\(\s*)?(?:\w+,\s*)*{name}\b)")
    files = sorted((root / "tests").rglob("test_*.py"))
    texts = [path for path in files if path.name == "test_text.py" and folders[:1] == [path.parent.name]]
    found = [path for path in files if path.stem == f"test_{name}" or imports.search(path.read_text("utf-8"))] + texts
    if folders[:1] == ["native"]:
        found += [
            root / "tests" / path for room, path in _OF_NATIVE.items() if room in folders or folders == ["native"]
        ]
    if not found:
        raise ToolError(f"no test has the name of {file} or imports it: CONTRIBUTING.md says where such tests are")
    return [str(path) for path in found]


def _workers(arguments: list[str]) -> list[str]:
    """One pytest worker a processor, a file of tests at a time, unless the arguments choose or want a terminal."""
    if any(argument.startswith(("-n", "--dist", "--pdb", "-s", "--collect-only")) for argument in arguments):
        return []
    return ["-n", str(os.cpu_count() or 1), "--dist", "loadfile"]


def run(project: Project, arguments: list[str]) -> int:
    system.ensure(system.BUILD + system.RUN + system.TEST)
    environment = dict(os.environ)
    # The workers, and the processes that tests start, import modules that one of them has compiled.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    failed: list[str] = []
    if FOR in arguments:
        place = arguments.index(FOR)
        if place + 1 == len(arguments):
            raise ToolError(f"{FOR} wants a file of backend/")
        arguments[place : place + 2] = [FAST, *tests_of(project.root, Path(arguments[place + 1]))]
    fast = FAST in arguments
    every_cell = WHOLE in arguments
    arguments = [argument for argument in arguments if argument not in (FAST, WHOLE)]
    if fast:
        ensure_editable(project)
    else:
        environment[WHEEL.name] = str(ensure_installed(project))
        failed = _lint(project)
        if check.run(project, []):
            failed.append("tools check")
    whole = not any(map(_names_tests, arguments))
    if whole and not fast:
        failed += _for_windows(project)
    of_all = ["tests", _SLOWEST, *([] if every_cell else [EACH_VALUE])]
    selection = [*of_all, *arguments] if whole else arguments
    command = [sys.executable, "-m", "pytest", *([] if fast else _workers(arguments)), *selection]
    status = subprocess.run(command, cwd=project.root, env=environment, check=False).returncode
    if whole and not fast and not environment.get(DEVICE.name):
        environment[DEVICE.name] = VULKAN_DEVICE
        again = subprocess.run([*command, "--vulkan-part"], cwd=project.root, env=environment, check=False).returncode
        status = status or again
    if failed:
        raise ToolError(f"{' and '.join(failed)} found faults: see above")
    return status
