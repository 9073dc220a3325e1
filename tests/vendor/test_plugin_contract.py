"""A broken plugin is refused with one line that says which and why, before anything is built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from vendor_support import ROOT, TOY_PLUGIN

from tools.errors import ToolError
from tools.packaging.plugins import load_plugin, load_plugins, plugin_folders

IN_TREE = frozenset({"nvidia", "amd"})


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A copy of the toy plugin, to break."""
    return Path(shutil.copytree(TOY_PLUGIN, tmp_path / "my-plugin", ignore=shutil.ignore_patterns("__pycache__")))


def test_a_whole_plugin_is_taken(plugin: Path) -> None:
    found = load_plugin(plugin)
    assert found.name == "toy"
    assert not found.has_native
    assert set(found.files()) == {
        "triton/backends/toy/__init__.py",
        "triton/backends/toy/compiler.py",
        "triton/backends/toy/driver.py",
        "triton/backends/toy/name.conf",
        "triton/language/extra/toy/__init__.py",
        "triton/tools/extra/toy/__init__.py",
    }


def test_language_and_tools_are_optional(plugin: Path) -> None:
    shutil.rmtree(plugin / "language")
    shutil.rmtree(plugin / "tools")
    assert all(path.startswith("triton/backends/toy/") for path in load_plugin(plugin).files())


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("", "there is no such folder"),
        ("backend", "there is no backend/ in it"),
        ("backend/name.conf", "backend/name.conf is missing"),
        ("backend/compiler.py", "backend/compiler.py is missing"),
        ("backend/driver.py", "backend/driver.py is missing"),
    ],
)
def test_a_missing_part(plugin: Path, missing: str, message: str) -> None:
    gone = plugin / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    with pytest.raises(ToolError) as caught:
        load_plugin(plugin)
    assert str(caught.value) == f"plugin {plugin}: {message}"


@pytest.mark.parametrize("name", ["", "my-plugin", "1st", "a b", "../up", "naïve", "a\nb"])
def test_a_name_that_is_no_c_identifier(plugin: Path, name: str) -> None:
    (plugin / "backend/name.conf").write_text(f"{name}\n")
    with pytest.raises(ToolError, match="is not a C identifier") as caught:
        load_plugin(plugin)
    assert str(plugin) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_a_name_of_upstreams_own(plugin: Path, name: str) -> None:
    (plugin / "backend/name.conf").write_text(name)
    with pytest.raises(ToolError, match=f"the name '{name}' belongs to a backend of upstream"):
        load_plugins([plugin], IN_TREE)


def test_two_of_one_name(plugin: Path) -> None:
    with pytest.raises(ToolError) as caught:
        load_plugins([TOY_PLUGIN, plugin], IN_TREE)
    assert str(caught.value) == f"plugin {plugin}: {TOY_PLUGIN} has the name 'toy' too"


def test_two_that_claim_one_extra(plugin: Path) -> None:
    (plugin / "backend/name.conf").write_text("other")
    with pytest.raises(ToolError, match="triton/language/extra/toy/__init__.py also comes from the plugin 'toy'"):
        load_plugins([TOY_PLUGIN, plugin], IN_TREE)


def test_a_relative_folder() -> None:
    with pytest.raises(ToolError, match="takes absolute paths"):
        load_plugin(Path("tests/vendor/plugins/toy-backend"))


def test_a_link_that_leads_out(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (plugin / "backend/leak").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolError, match="leads out of the plugin"):
        load_plugin(plugin).files()


def test_a_folder_that_is_a_link(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (plugin / "language/leak").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="language/leak is a link that leads out of the plugin"):
        load_plugin(plugin).files()
    (plugin / "language/leak").unlink()
    (plugin / "language/again").symlink_to(plugin / "language/toy")
    with pytest.raises(ToolError, match="is a link to a folder, which is not followed"):
        load_plugin(plugin).files()


def test_the_variable_names_the_folders() -> None:
    default = Path("/default")
    assert plugin_folders({}, default) == [default]
    assert plugin_folders({"TRITON_PLUGIN_DIRS": ""}, default) == []
    assert plugin_folders({"TRITON_PLUGIN_DIRS": "/a; /b-c;"}, default) == [Path("/a"), Path("/b-c")]


def test_a_folder_is_named_by_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "plugin").mkdir()
    value = f"{tmp_path}/there/../plugin/;{tmp_path}/link/../plugin;../plugin"
    assert plugin_folders({"TRITON_PLUGIN_DIRS": value}, tmp_path) == [tmp_path / "plugin"] * 2 + [Path("../plugin")]


def test_folders_that_a_colon_separates(plugin: Path) -> None:
    with pytest.raises(ToolError) as caught:
        load_plugin(Path(f"{plugin}:{ROOT}"))
    assert str(caught.value) == f"TRITON_PLUGIN_DIRS separates folders by ';': write {plugin};{ROOT}"


@pytest.mark.parametrize("command", ["bdist_wheel", "build"])
def test_setup_py_says_it_in_one_line_and_builds_nothing(plugin: Path, tmp_path: Path, command: str) -> None:
    (plugin / "backend/driver.py").unlink()
    target = tmp_path / "out"
    where = {"bdist_wheel": "--dist-dir", "build": "--build-lib"}[command]
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", command, where, str(target)],
        cwd=ROOT,
        env={**os.environ, "TRITON_PLUGIN_DIRS": f"{TOY_PLUGIN};{plugin}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == f"error: plugin {plugin}: backend/driver.py is missing"
    assert not target.exists()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TRITON_WHEEL_NAME", "no good!", "is not a distribution name"),
        ("TRITON_WHEEL_VERSION_SUFFIX", "+a/b", "is not a version"),
    ],
)
def test_a_bad_name_or_suffix(variable: str, value: str, message: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "TRITON_PLUGIN_DIRS": str(TOY_PLUGIN), variable: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert variable in line and message in line
    assert not list(tmp_path.iterdir())
