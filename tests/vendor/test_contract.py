"""The plugin contract, held against the pinned release and against a toy upstream that is built from source.

`tools rebase` runs this file after a queue has moved.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from toy_project import own_facts
from vendor_support import ROOT, TOY_PLUGIN

from tools.errors import ToolError
from tools.packaging import source_form
from tools.packaging.plugins import load_plugin
from tools.project import Project

FOLDER = Path(__file__).parent
TOY_UPSTREAM = FOLDER / "toy_upstream"
NATIVE_TOY = FOLDER / "plugins" / "native-toy"
TTIR_ONLY = ROOT / "examples" / "plugins" / "ttir-only"

PATCH = """\
Subject: change

Why: test
Upstream-Status: none
---
diff --git a/python/triton/alpha.py b/python/triton/alpha.py
--- a/python/triton/alpha.py
+++ b/python/triton/alpha.py
@@ -1,3 +1,3 @@
 \"\"\"A module for a patch to change.\"\"\"

-STATE = "old"
+STATE = "new"
"""


def renamed(plugin: Path, folder: Path, name: str) -> Path:
    """A copy of a plugin under another name, the name.conf with white space around it."""
    copy = Path(shutil.copytree(plugin, folder / f"my-{name}-plugin", ignore=shutil.ignore_patterns("__pycache__")))
    (copy / "backend/name.conf").write_text(f"\n {name}\t\n")
    for part in ("language", "tools"):
        shutil.rmtree(copy / part, ignore_errors=True)
    return copy


# -- the pinned release ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The importable tree of the pinned release with four plugins: more than upstream's table would hold."""
    folder = tmp_path_factory.mktemp("pinned")
    others = [renamed(TOY_PLUGIN, folder, "second"), renamed(TOY_PLUGIN, folder, "third")]
    plugins = ";".join(map(str, [TOY_PLUGIN, TTIR_ONLY, *others]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_WHEEL")}
    command = [sys.executable, "setup.py", "--quiet", "build", "--build-lib", str(folder / "lib")]
    subprocess.run(command, cwd=ROOT, env=environment | {"TRITON_PLUGIN_DIRS": plugins}, check=True)
    return folder / "lib"


def in_tree(tree: Path, code: str, *path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code with the tree instead of any installed triton."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON_", "PYTHON"))}
    folders = os.pathsep.join(map(str, [tree, *path]))
    return subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | {"PYTHONPATH": folders} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_several_plugins_in_the_pinned_release(tree: Path) -> None:
    code = """
import triton, triton.backends as b
from triton.language.extra.toy import WHERE as language
from triton.tools.extra.toy import WHERE as tools
from triton.language.extra import ttir_only
mine = {name: backend for name, backend in b.backends.items() if name not in ("nvidia", "amd", "spirv")}
print(sorted(mine), language, tools, sorted({backend.driver.__name__ for backend in mine.values()}))
"""
    done = in_tree(tree, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        "['second', 'third', 'toy', 'ttir_only'] language tools ['TTIROnlyDriver', 'ToyDriver']"
    )


def test_each_one_can_be_selected(tree: Path) -> None:
    code = "import triton; print(type(triton.runtime.driver.active).__name__)"
    done = in_tree(tree, code, TRITON_DEFAULT_BACKEND="toy")
    assert done.stdout == "ToyDriver\n", done.stderr
    done = in_tree(tree, code, TRITON_DEFAULT_BACKEND="ttir_only")
    assert done.stdout == "TTIROnlyDriver\n", done.stderr


def entry_point(folder: Path, name: str, compiler: str, driver: str) -> Path:
    """A backend outside the tree: a module and the metadata that names it."""
    package = folder / f"broken_{name}"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "compiler.py").write_text(compiler)
    (package / "driver.py").write_text(driver)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[triton.backends]\n{name} = broken_{name}\n")
    return folder


COMPILER = (TOY_PLUGIN / "backend/compiler.py").read_text()
DRIVER = (TOY_PLUGIN / "backend/driver.py").read_text()


@pytest.mark.parametrize(
    ("compiler", "driver", "message"),
    [
        ("", DRIVER, "0 concrete subclasses of .*BaseBackend"),
        (COMPILER + "\n\nclass Another(ToyBackend):\n    pass\n", DRIVER, ">1 concrete subclasses of .*BaseBackend"),
        (COMPILER, "", "0 concrete subclasses of .*DriverBase"),
        (COMPILER, DRIVER + "\n\nclass Another(ToyDriver):\n    pass\n", ">1 concrete subclasses of .*DriverBase"),
    ],
    ids=["no compiler", "two compilers", "no driver", "two drivers"],
)
def test_upstream_takes_exactly_one_class_each(
    tree: Path, tmp_path: Path, compiler: str, driver: str, message: str
) -> None:
    done = in_tree(tree, "import triton", entry_point(tmp_path, "odd", compiler, driver))
    assert done.returncode == 1
    assert re.search(f"RuntimeError: Found {message}", done.stderr), done.stderr[-500:]


# -- a toy upstream, from source -------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout whose submodule is the toy upstream, and which is itself the plugin with native code."""
    project = Project(tmp_path / "repo")
    shutil.copytree(TOY_UPSTREAM, project.submodule, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(NATIVE_TOY, project.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    own_facts(project.root)
    project.patches.mkdir()
    (project.patches / "series").write_text("change.patch\n")
    (project.patches / "change.patch").write_text(PATCH)
    (project.root / "tools/extra").mkdir(parents=True)
    (project.root / "tools/extra/build_helper.py").touch()
    project.lock_file.write_text(
        '[upstream]\nname = "triton"\nversion = "1.0"\nurl = "u"\nref = "v1.0"\n'
        f'commit = "{"ab" * 20}"\n[queue]\nsha256 = ""\n'
    )
    llvm = tmp_path / "llvm"
    (llvm / "lib/cmake/mlir").mkdir(parents=True)
    (llvm / "lib/cmake/mlir/MLIRConfig.cmake").touch()
    monkeypatch.setenv("LLVM_SYSPATH", str(llvm))
    scripts = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    for variable in ("TRITON_PLUGIN_DIRS", "TRITON_WHEEL_VERSION_SUFFIX", "TRITON_WHEEL_NAME", "TRITON_OFFLINE_BUILD"):
        monkeypatch.delenv(variable, raising=False)
    return project


def installed(wheel: Path, folder: Path) -> Path:
    """The wheel's files in a folder for PYTHONPATH."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


NATIVE_LOOK = """
import ctypes
from pathlib import Path
import triton.alpha
from triton.backends import backends
from triton.language.extra.native_toy import WHERE
library = ctypes.CDLL(str(Path(triton.__file__).parent / "_C/libtriton.so"))
library.toy_modules.restype = ctypes.c_char_p
own = ctypes.CDLL(str(Path(triton.__file__).parent / "backends/native_toy/_native_toy.so"))
print(sorted(backends), library.toy_modules().decode(), own.native_toy_answer(), WHERE, triton.alpha.STATE)
"""


def test_the_source_form_to_the_end(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = renamed(NATIVE_TOY, tmp_path, "second")
    init = second / "src/plugin.cc"
    init.write_text(init.read_text().replace("native_toy", "second"))
    lists = second / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("native_toy", "second").replace("TritonNativeToy", "TritonSecond"))
    monkeypatch.setenv("TRITON_PLUGIN_DIRS", f"{project.root};{second};{TOY_PLUGIN}")
    wheel = source_form.build_wheel(project)
    assert wheel.parent == project.dist
    own = f"native_toy.{project.settings()['version']}".replace("_", ".")
    assert re.fullmatch(rf"triton-1\.0\+{re.escape(own)}\.second\.toy\.h[0-9a-f]{{8}}-py3-none-any\.whl", wheel.name)
    tree = installed(wheel, tmp_path / "tree")
    done = in_tree(tree, NATIVE_LOOK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        "['amd', 'native_toy', 'nvidia', 'second', 'toy'] nvidia amd proton native_toy second 42 native language new"
    )
    # This checkout's own tools/ are not a plugin's; the other plugin's are.
    assert not (tree / "triton/tools/extra/extra").exists()
    assert (tree / "triton/tools/extra/toy/__init__.py").is_file()
    # The submodule is as it was.
    assert not (project.submodule / "build").exists()
    assert 'STATE = "old"' in (project.submodule / "python/triton/alpha.py").read_text()


def test_more_native_plugins_than_upstream_has_room_for(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = [renamed(NATIVE_TOY, tmp_path, name) for name in ("one", "two", "three")]
    monkeypatch.setenv("TRITON_PLUGIN_DIRS", ";".join(map(str, [*plugins[:2], TOY_PLUGIN])))
    source_form.check_room(project.submodule, [load_plugin(path) for path in [*plugins[:2], TOY_PLUGIN]])
    monkeypatch.setenv("TRITON_PLUGIN_DIRS", ";".join(map(str, plugins)))
    with pytest.raises(ToolError) as caught:
        source_form.build_wheel(project)
    assert str(caught.value) == (
        "upstream has room for 2 plugins with native code besides nvidia, amd, proton, TRITON_PLUGIN_DIRS names 3: "
        "one, two, three; leave one out, or drop its CMakeLists.txt if it is Python only"
    )


def test_an_init_function_of_another_name_stops_the_build(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source = project.root / "src/plugin.cc"
    source.write_text(source.read_text().replace("init_triton_native_toy", "init_triton_other"))
    monkeypatch.setenv("LDFLAGS", "-Wl,--no-undefined")
    with pytest.raises(ToolError, match="upstream's setup.py failed"):
        source_form.build_wheel(project)
    assert "init_triton_native_toy" in "".join(capfd.readouterr())
    assert not list(project.dist.glob("*"))
    assert not list(project.build.glob(".source-*"))


@pytest.mark.parametrize("extra", ["two compilers", "no driver"])
def test_the_toy_upstream_takes_exactly_one_class_each(tmp_path: Path, extra: str) -> None:
    tree = Path(shutil.copytree(TOY_UPSTREAM / "python", tmp_path / "tree"))
    compiler, driver = ((NATIVE_TOY / f"backend/{part}.py").read_text() for part in ("compiler", "driver"))
    if extra == "two compilers":
        compiler += "\n\nclass Another(NativeToyBackend):\n    pass\n"
    else:
        driver = ""
    done = in_tree(tree, "import triton.backends", entry_point(tmp_path / "outside", "odd", compiler, driver))
    assert done.returncode == 1
    count = 2 if extra == "two compilers" else 0
    assert f"Found {count} concrete subclasses of" in done.stderr


def test_the_plugins_of_this_repository_keep_the_contract() -> None:
    names = {load_plugin(path).name for path in (ROOT, TOY_PLUGIN, NATIVE_TOY, TTIR_ONLY)}
    assert names == {"spirv", "toy", "native_toy", "ttir_only"}
    plugin = load_plugin(ROOT)
    init = (plugin.folder / "backend/native/plugin.cpp").read_text()
    assert "void init_triton_spirv(nanobind::module_&)" in init
