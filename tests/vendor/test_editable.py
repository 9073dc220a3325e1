"""Editable installations: Python files from the checkout, a native part that follows its sources."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_project import toy_project
from toy_runs import FULL, KILLED, both
from vendor_support import ROOT

from backend.settings import TOOLS_FAULT
from tools.packaging import editable, refresh
from tools.packaging.native import native_folder
from tools.packaging.plugins import load_plugin
from tools.project import Project

NATIVE_TOY = ROOT / "tests/vendor/plugins/native-toy"

# Where pip puts the toy's files in .venv; nothing is imported there.
SITE = "lib/python3/site-packages"

# `tools dev` on the toy.
DEV = """
import sys, zipfile
sys.path.insert(0, {root!r})
from pathlib import Path
from tools import installed
from tools.__main__ import reported
from tools.packaging import wheel
from tools.project import Project

project = Project(Path({project!r}))
wheel.STRIPPED = ()
wheel.find_strip_for = lambda arch: None

def pip(project, command, *arguments):
    if command == "install":
        zipfile.ZipFile(arguments[-1]).extractall(project.venv / {site!r})

installed.pip = pip
raise SystemExit(reported(lambda: installed.ensure_editable(project) or 0))
"""


class Checkout:
    """A checkout on the toy upstream that is a plugin with a native part."""

    def __init__(self, folder: Path) -> None:
        self.project = toy_project(folder / "repo")
        shutil.copytree(NATIVE_TOY, self.project.root, dirs_exist_ok=True)
        self.plugin = load_plugin(self.project.root)
        self.site = self.project.venv / SITE

    @property
    def stub(self) -> Path:
        return self.site / self.plugin.package / "__init__.py"

    @property
    def library(self) -> Path:
        (path,) = (native_folder(self.plugin, self.project.build) / "stage").glob("*.so")
        return path

    def dev(self, fault: str = "") -> subprocess.CompletedProcess[str]:
        code = DEV.format(root=str(ROOT), project=str(self.project.root), site=SITE)
        environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", TOOLS_FAULT.name: fault}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("editable"))
    done = checkout.dev()
    assert done.returncode == 0, done.stderr
    return checkout


def test_the_package_goes_on_in_the_checkout(built: Checkout) -> None:
    names = [path.name for path in (built.site / built.plugin.package).iterdir()]
    assert names == ["__init__.py"]
    text = built.stub.read_text()
    assert repr(str(built.project.root / "backend/__init__.py")) in text
    # The version says what it is.
    assert list(built.site.glob("triton-1.0+*.editable.dist-info"))
    # Files beside the package continue in the checkout, too.
    extra = built.site / "triton/language/extra/native_toy/__init__.py"
    assert str(built.project.root / "language/native_toy/__init__.py") in extra.read_text()


def run_stub(checkout: Checkout) -> dict[str, object]:
    """The stub's names after it ran, without the modules that it would import from triton."""
    spec = importlib.util.spec_from_file_location("stub", checkout.stub)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def test_a_changed_python_file_is_used_at_once(built: Checkout) -> None:
    initial = built.project.root / "backend/__init__.py"
    before = initial.read_text()
    try:
        initial.write_text(before + "\nCHANGED = 1\n")
        found = run_stub(built)
        assert found["CHANGED"] == 1
        assert found["__path__"] == [str(initial.parent), str(built.library.parent)]
        # Nothing has to be installed again for it.
        assert "step" not in built.dev().stderr
    finally:
        initial.write_text(before)


def test_a_changed_source_is_noticed(built: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = native_folder(built.plugin, built.project.build)
    asked: list[list[str]] = []

    def build(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command[1:])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", build)
    assert refresh.is_current(built.project.root, folder)
    run_stub(built)
    assert asked == []
    source = next((built.project.root / "src").glob("library.cc"))
    before = source.read_text()
    try:
        source.write_text(before + "\n")
        assert not refresh.is_current(built.project.root, folder)
        with pytest.raises(ImportError, match="is older than its sources, and building it failed"):
            run_stub(built)
        assert asked == [["-m", "tools", "dev", "--native"]]
    finally:
        source.write_text(before)


def _compiled(built: Checkout) -> int:
    """When the library's source was compiled last."""
    (compiled,) = native_folder(built.plugin, built.project.build).rglob("library.cc.o")
    return compiled.stat().st_mtime_ns


def test_a_source_with_another_time_alone_is_not_compiled_again(built: Checkout) -> None:
    root, folder = built.project.root, native_folder(built.plugin, built.project.build)
    source = root / "src/library.cc"
    assert refresh.is_current(root, folder)
    before, compiled = source.stat().st_mtime_ns, _compiled(built)
    os.utime(source)
    assert source.stat().st_mtime_ns != before
    assert refresh.is_current(root, folder)
    assert source.stat().st_mtime_ns == before
    # A build for another source's sake leaves it alone, too.
    os.utime(source)
    (root / "src/other.h").write_text("// new\n")
    try:
        assert not refresh.is_current(root, folder)
        assert built.dev().returncode == 0
        assert _compiled(built) == compiled
    finally:
        (root / "src/other.h").unlink()


def test_an_old_time_does_not_hide_other_content(built: Checkout) -> None:
    root, folder = built.project.root, native_folder(built.plugin, built.project.build)
    source = root / "src/library.cc"
    text, time, compiled = source.read_text(), source.stat().st_mtime_ns, _compiled(built)
    source.write_text(text + "// more\n")
    os.utime(source, ns=(time, time))
    try:
        assert not refresh.is_current(root, folder)
        assert built.dev().returncode == 0
        assert _compiled(built) > compiled
    finally:
        source.write_text(text)


def test_a_build_that_failed_is_not_taken_for_the_one_before(built: Checkout) -> None:
    root, folder = built.project.root, native_folder(built.plugin, built.project.build)
    source = root / "src/library.cc"
    assert built.dev().returncode == 0
    text, time = source.read_text(), source.stat().st_mtime_ns
    source.write_text(text + "an error\n")
    assert built.dev().returncode != 0
    source.write_text(text)
    os.utime(source, ns=(time, time))
    assert not refresh.is_current(root, folder)
    done = built.dev()
    assert done.returncode == 0, done.stderr
    assert refresh.is_current(root, folder)


def test_a_checkout_that_is_gone(built: Checkout, tmp_path: Path) -> None:
    text = built.stub.read_text().replace(str(built.project.root), str(tmp_path / "nowhere"))
    (tmp_path / "stub.py").write_text(text)
    done = subprocess.run([sys.executable, tmp_path / "stub.py"], capture_output=True, text=True, check=False)
    assert "is gone: install triton again, with `pip install -e .` in a checkout" in done.stderr


@pytest.mark.parametrize(("point", "how"), both("dev"))
def test_dev_that_is_stopped_goes_on(built: Checkout, point: str, how: str) -> None:
    # As after a change of everything: sources of the native part, and the queue.
    source = next((built.project.root / "src").glob("library.cc"))
    source.write_text(source.read_text() + "// again\n")
    layer = built.project.overlay / "python/triton/layer.py"
    layer.write_text(layer.read_text() + "\n")
    fault = point if how == KILLED else f"{point}:{FULL}"
    assert built.dev(fault).returncode != 0
    done = built.dev()
    assert done.returncode == 0, done.stderr
    assert refresh.is_current(built.project.root, native_folder(built.plugin, built.project.build))
    assert (built.site / "triton/layer.py").read_text() == layer.read_text()
    assert built.library.is_file()
    assert "step" not in built.dev().stderr


def test_stubs_are_for_files_of_the_plugin_alone() -> None:
    texts = editable.stubs(Project(ROOT), load_plugin(ROOT), Path("/native"))
    assert "triton/backends/spirv/__init__.py" in texts
    assert not [
        name for name in texts if name.startswith("triton/backends/spirv/") and not name.endswith("__init__.py")
    ]
    for name, text in texts.items():
        compile(text, name, "exec")
