"""The source form: what it says where something is missing, and what it hands to upstream.

Upstream is a setup.py that only notes what it is given; test_contract.py builds a toy upstream to the end.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from toy_project import own_facts
from vendor_support import TOY_PLUGIN

from tools.errors import ToolError
from tools.packaging import source_form
from tools.project import Project

# A setup.py that writes what it was given into a file with a wheel's name.
SETUP = """\
import json, os, sys, zipfile
TRITON_VERSION = "1.0"
out = sys.argv[sys.argv.index("--dist-dir") + 1]
os.makedirs(out)
keys = ("TRITON_PLUGIN_DIRS", "TRITON_WHEEL_VERSION_SUFFIX", "LLVM_SYSPATH", "TRITON_OFFLINE_BUILD")
plugins = os.environ["TRITON_PLUGIN_DIRS"].split(";")
seen = {key: os.environ[key] for key in keys}
seen["parts"] = [sorted(os.listdir(folder)) for folder in plugins]
seen["alpha"] = open("python/triton/alpha.py").read()
seen["layer"] = open("python/triton/layer.py").read()
with zipfile.ZipFile(os.path.join(out, "triton-1.0-py3-none-any.whl"), "w") as archive:
    archive.writestr("seen.json", json.dumps(seen))
    archive.writestr("triton-1.0.dist-info/entry_points.txt", "[console_scripts]\\nown = own:main\\n")
    archive.writestr("triton-1.0.dist-info/RECORD", "seen.json,sha256=x,1\\ntriton-1.0.dist-info/RECORD,,\\n")
"""

PATCH = """\
Subject: change

Why: test
Upstream-Status: none
---
diff --git a/python/triton/alpha.py b/python/triton/alpha.py
--- a/python/triton/alpha.py
+++ b/python/triton/alpha.py
@@ -1 +1 @@
-old
+new
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose submodule is a toy, and an LLVM that is there by name."""
    project = Project(tmp_path / "repo")
    (project.submodule / "python/triton").mkdir(parents=True)
    (project.submodule / "setup.py").write_text(SETUP)
    (project.submodule / "python/triton/alpha.py").write_text("old\n")
    (project.submodule / "cmake").mkdir()
    (project.submodule / "cmake/llvm-hash.txt").write_text("0123abcd\n")
    project.patches.mkdir()
    (project.patches / "series").write_text("change.patch\n")
    (project.patches / "change.patch").write_text(PATCH)
    layer = project.overlay / "python/triton/layer.py"
    layer.parent.mkdir(parents=True)
    layer.write_text("LAYER = 1\n")
    own_facts(project.root)
    project.lock_file.write_text(
        f'wheel = []\n[upstream]\nname = "triton"\nversion = "1.0"\nurl = "u"\nref = "v1.0"\ncommit = "{"ab" * 20}"\n'
        '[queue]\nsha256 = ""\n'
    )
    llvm = tmp_path / "llvm"
    (llvm / "lib/cmake/mlir").mkdir(parents=True)
    (llvm / "lib/cmake/mlir/MLIRConfig.cmake").touch()
    monkeypatch.setenv("LLVM_SYSPATH", str(llvm))
    monkeypatch.setenv("TRITON_PLUGIN_DIRS", str(TOY_PLUGIN))
    monkeypatch.delenv("TRITON_WHEEL_VERSION_SUFFIX", raising=False)
    return project


def test_it_drives_upstreams_setup_py_on_a_patched_copy(project: Project) -> None:
    wheel = source_form.build_wheel(project)
    assert wheel.parent == project.dist
    with zipfile.ZipFile(wheel) as archive:
        seen = json.loads(archive.read("seen.json"))
    assert seen["TRITON_PLUGIN_DIRS"] == str(TOY_PLUGIN)
    assert re.fullmatch(r"\+toy\.h[0-9a-f]{8}", seen["TRITON_WHEEL_VERSION_SUFFIX"])
    assert (seen["alpha"], seen["layer"]) == ("new\n", "LAYER = 1\n")
    assert (project.submodule / "python/triton/alpha.py").read_text() == "old\n"
    assert not list(project.build.glob(".source-*"))


def test_of_this_repository_upstream_is_shown_the_plugin_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TOY_PLUGIN / "backend", project.root / "backend")
    (project.root / "tools").mkdir()
    monkeypatch.delenv("TRITON_PLUGIN_DIRS")
    with zipfile.ZipFile(source_form.build_wheel(project)) as archive:
        assert json.loads(archive.read("seen.json"))["parts"] == [["backend"]]


@pytest.mark.parametrize("file", ["autoload.py", "autoload/__init__.py"])
def test_what_torch_calls_at_its_import_is_in_the_wheel(
    project: Project, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    plugin = project.root.parent / "plugin"
    shutil.copytree(TOY_PLUGIN, plugin)
    (plugin / "backend" / file).parent.mkdir(exist_ok=True)
    (plugin / "backend" / file).write_text("def autoload():\n    pass\n")
    monkeypatch.setenv("TRITON_PLUGIN_DIRS", str(plugin))
    with zipfile.ZipFile(source_form.build_wheel(project)) as archive:
        assert archive.testzip() is None
        assert archive.read(f"triton_toy_{file}") == (plugin / "backend" / file).read_bytes()
        points = archive.read("triton-1.0.dist-info/entry_points.txt").decode()
        assert "own = own:main" in points and "[torch.backends]\ntoy = triton_toy_autoload:autoload" in points
        record = archive.read("triton-1.0.dist-info/RECORD").decode().splitlines()
        listed = [row.split(",")[0] for row in record]
        assert sorted(listed) == sorted(archive.namelist()) and record[-1] == "triton-1.0.dist-info/RECORD,,"


@pytest.mark.parametrize(("given", "seen"), [(None, "1"), ("0", "0")])
def test_upstream_downloads_nothing_unless_told_to(
    project: Project, monkeypatch: pytest.MonkeyPatch, given: str | None, seen: str
) -> None:
    monkeypatch.delenv("TRITON_OFFLINE_BUILD", raising=False)
    if given:
        monkeypatch.setenv("TRITON_OFFLINE_BUILD", given)
    with zipfile.ZipFile(source_form.build_wheel(project)) as archive:
        assert json.loads(archive.read("seen.json"))["TRITON_OFFLINE_BUILD"] == seen


def test_a_submodule_that_is_not_checked_out(project: Project) -> None:
    (project.submodule / "setup.py").unlink()
    with pytest.raises(ToolError, match="upstream/ is not checked out: run `git clone --branch v"):
        source_form.build_wheel(project)


def test_a_submodule_of_another_version(project: Project) -> None:
    setup = project.submodule / "setup.py"
    setup.write_text(setup.read_text().replace('TRITON_VERSION = "1.0"', 'TRITON_VERSION = "1.1"'))
    with pytest.raises(ToolError, match=r"upstream/ is triton 1.1, .* says 1.0: run .* checkout FETCH_HEAD"):
        source_form.build_wheel(project)


@pytest.mark.parametrize(("value", "message"), [(None, "LLVM_SYSPATH is not set"), ("/none", "LLVM_SYSPATH=/none has")])
def test_a_missing_llvm(project: Project, monkeypatch: pytest.MonkeyPatch, value: str | None, message: str) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", value) if value else monkeypatch.delenv("LLVM_SYSPATH")
    with pytest.raises(ToolError, match=f"{message}.*build LLVM at 0123abcd"):
        source_form.build_wheel(project)


def test_a_patch_that_does_not_apply(project: Project) -> None:
    (project.submodule / "python/triton/alpha.py").write_text("other\n")
    with pytest.raises(ToolError, match="patch change.patch does not apply to upstream/"):
        source_form.build_wheel(project)
    assert not list(project.dist.glob("*.whl"))
