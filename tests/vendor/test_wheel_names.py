"""Name and version of a wheel tell what is in it; plugins are imported before a wheel is written."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from toy_project import git, toy_project
from vendor_support import ROOT, TOY_PLUGIN

from tools.errors import ToolError
from tools.packaging import plugin_wheel
from tools.packaging.facts import check_release, facts_of
from tools.packaging.metadata import Kind, identity
from tools.packaging.plugin_check import check_classes
from tools.packaging.plugins import Plugin, load_plugin
from tools.project import Project

TTIR_ONLY = ROOT / "examples/plugins/ttir-only"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TRITON_WHEEL_NAME", "TRITON_WHEEL_VERSION_SUFFIX"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout on the toy upstream that is a plugin itself, as this repository is."""
    project = toy_project(tmp_path / "repo")
    shutil.copytree(TOY_PLUGIN / "backend", project.root / "backend")
    (project.root / "backend/name.conf").write_text("own")
    return project


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return load_plugin(Path(shutil.copytree(TOY_PLUGIN, tmp_path / "toy-backend")))


def version(project: Project, *plugins: Plugin, backends: tuple[str, ...] = ()) -> str:
    return identity(project, list(plugins), backends).version


def test_what_goes_in_makes_the_version(project: Project, plugin: Plugin) -> None:
    own = load_plugin(project.root)
    seen = [version(project, own), version(project, own, plugin), version(project, plugin), version(project)]
    seen.append(version(project, own, backends=("own",)))
    digest = "h[0-9a-f]{8}"
    patterns = ["own.0.1.0", "own.0.1.0.toy", "toy", "patched", "own.0.1.0.only.own"]
    for text, pattern in zip(seen, patterns, strict=True):
        assert re.fullmatch(rf"1\.0\+{re.escape(pattern)}\.{digest}", text), text
    assert len({text.rsplit(".", 1)[1] for text in seen[:4]}) == 4


@pytest.mark.parametrize(
    "file",
    [
        "backend/compiler.py",
        "patches/first.patch",
        "overlay/python/triton/layer.py",
        "upstream.lock.toml",
        "src/a.cc",
        "native.cpp",
    ],
)
def test_another_source_is_another_version(project: Project, file: str) -> None:
    (project.root / "CMakeLists.txt").touch()
    (project.root / "src").mkdir()
    (project.root / "src/a.cc").touch()
    (project.root / "native.cpp").touch()
    before = version(project, load_plugin(project.root))
    assert version(project, load_plugin(project.root)) == before
    path = project.root / file
    path.write_text(path.read_text() + "\n")
    assert version(project, load_plugin(project.root)) != before


def test_a_vendor_s_native_sources_may_lie_anywhere(project: Project, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TOY_PLUGIN.parent / "native-toy", tmp_path / "native-toy"))
    plugin = load_plugin(folder)
    seen = [version(project, plugin)]
    for name in ("native.cpp", "kernels/table.inc", "lib/libvendor.so"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1")
        seen.append(version(project, plugin))
    assert len(set(seen)) == 4
    for name in ("build/CMakeCache.txt", ".git/index", "backend/_native.abi3.so", "x.egg-info/PKG-INFO"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1")
    assert version(project, plugin) == seen[-1]


def test_a_release_has_no_digest_and_is_the_commit_of_its_tag(project: Project, plugin: Plugin) -> None:
    own = load_plugin(project.root)
    assert identity(project, [own], kind=Kind.RELEASE).version == "1.0+own.0.1.0"
    git(project.root, "init", "-q", ".")
    (project.root / ".gitignore").write_text("build/\n")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "one")
    with pytest.raises(ToolError, match="the commit that is checked out has no tag v0.1.0"):
        check_release(project, [own])
    git(project.root, "tag", "v0.1.0")
    check_release(project, [own])
    (project.root / "backend/compiler.py").write_text("")
    with pytest.raises(ToolError, match="not committed, such as backend/compiler.py"):
        check_release(project, [own])
    git(project.root, "checkout", "-q", "backend/compiler.py")
    # A vendor's plugin is released from its own tag, and its version is in the wheel's.
    with pytest.raises(ToolError, match="toy-backend has no version: put one into the table .project."):
        identity(project, [own, plugin], kind=Kind.RELEASE)
    facts = plugin.folder / "pyproject.toml"
    facts.write_text('[project]\nname = "triton-toy"\nversion = "7.2rc1"\n')
    assert identity(project, [own, plugin], kind=Kind.RELEASE).version == "1.0+own.0.1.0.toy.7.2rc1"
    with pytest.raises(ToolError, match="toy-backend is not in a git repository"):
        check_release(project, [own, plugin])
    git(plugin.folder, "init", "-q", ".")
    git(plugin.folder, "add", "-A")
    git(plugin.folder, "commit", "-q", "-m", "one")
    with pytest.raises(ToolError, match="plugin .*toy-backend: the commit that is checked out has no tag v7.2rc1"):
        check_release(project, [own, plugin])
    git(plugin.folder, "tag", "v7.2rc1")
    check_release(project, [own, plugin])
    (plugin.folder / "backend/new.py").touch()
    with pytest.raises(ToolError, match="plugin .*toy-backend: .* not committed, such as backend/new.py"):
        check_release(project, [own, plugin])


def test_a_plugin_s_own_wheel_has_its_own_name_and_version(project: Project, plugin: Plugin) -> None:
    with pytest.raises(ToolError, match="needs a name and a version: put them into the table .project."):
        plugin_wheel.identity(project, plugin)
    (plugin.folder / "pyproject.toml").write_text(
        '[project]\nname = "triton-toy"\nversion = "7.2"\nlicense = "Apache-2.0"\ndependencies = ["numpy>=2"]\n'
    )
    who = plugin_wheel.identity(project, plugin)
    assert who.name == "triton-toy"
    assert re.fullmatch(r"7\.2\+h[0-9a-f]{8}", who.version)
    facts = facts_of(project, plugin)
    assert (facts.licence, facts.dependencies) == ("Apache-2.0", ("numpy>=2",))
    (plugin.folder / "pyproject.toml").write_text("[project\n")
    with pytest.raises(ToolError, match="pyproject.toml is not TOML"):
        facts_of(project, plugin)


# -- what a plugin's import finds, in the patched tree of this repository -----------------------------------------


@pytest.fixture
def tree(tmp_path: Path, wheel: Path) -> Project:
    """This repository's patched tree, with a build folder of the test's own."""
    project = Project(tmp_path / "checkout")
    project.build.mkdir(parents=True)
    (project.root / "patches").symlink_to(ROOT / "patches")
    (project.root / "overlay").symlink_to(ROOT / "overlay")
    project.tree.symlink_to(Project(ROOT).tree)
    return project


def append(plugin: Plugin, part: str, text: str) -> None:
    path = plugin.folder / "backend" / part
    path.write_text(path.read_text() + text)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("compiler.py", "\n\ndef broken(:\n", r"backend/compiler.py, line \d+: invalid syntax"),
        ("helper.py", "x = = 1\n", "backend/helper.py, line 1: invalid syntax"),
        ("driver.py", "\n1 / 0\n", r"driver.py cannot be imported: driver.py, line \d+: ZeroDivisionError"),
        ("driver.py", "\nraise SystemExit(3)\n", "driver.py cannot be imported: driver.py, line .*SystemExit: 3"),
        (
            "compiler.py",
            "\n\nclass Another(ToyBackend):\n    pass\n",
            r"compiler.py has 2 concrete subclasses of BaseBackend \(Another, ToyBackend\), and must have exactly one",
        ),
        (
            "driver.py",
            "\nfrom abc import abstractmethod\nclass Part(ToyDriver):\n    @abstractmethod\n    def todo(self): ...\n"
            "del ToyDriver\n",
            "driver.py has no concrete subclass of DriverBase: Part lacks todo",
        ),
        ("compiler.py", "\nimport os\nos._exit(5)\n", "its import ended the interpreter: exit status 5"),
        ("compiler.py", "\nimport triton.no_such\n", "cannot be imported: .*No module named 'triton.no_such'"),
    ],
)
def test_a_plugin_with_a_mistake_is_refused(tree: Project, plugin: Plugin, part: str, text: str, message: str) -> None:
    (plugin.folder / "backend" / part).touch()
    append(plugin, part, text)
    with pytest.raises(ToolError, match=message) as caught:
        check_classes(tree, plugin, {})
    assert str(caught.value).startswith(f"plugin {plugin.folder}: ")
    assert "\n" not in str(caught.value)


def test_a_plugin_that_needs_what_is_not_here_is_told(
    tree: Project, plugin: Plugin, capfd: pytest.CaptureFixture[str]
) -> None:
    append(plugin, "driver.py", "\nimport no_such_package.part\n")
    check_classes(tree, plugin, {})
    assert "it imports no_such_package, which is not installed here" in capfd.readouterr().err
    with pytest.raises(ToolError, match="it imports no_such_package, which is not installed here: install .*--strict"):
        check_classes(tree, plugin, {}, strict=True)


def test_a_plugin_is_checked_once(tree: Project, plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes(tree, plugin, {})
    monkeypatch.setattr(subprocess, "run", None)
    check_classes(tree, plugin, {})
    append(plugin, "driver.py", "\nraise ValueError\n")
    with pytest.raises(TypeError):  # it would be run again
        check_classes(tree, plugin, {})
