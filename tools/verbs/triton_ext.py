"""`triton-ext FOLDER`: write this repository's backend in the form of triton-lang/triton-ext, into a checkout of that.

There, a backend is a folder of backend/ with triton-ext.conf (`name;status`), a CMakeLists.txt that is added to the
whole and works alone, a pyproject.toml with the entry point, a Makefile and tests. FOLDER/backend/SPIRV is replaced.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ..errors import ToolError
from ..hold import hold
from ..packaging.facts import facts_of
from ..packaging.plugin_wheel import package_files
from ..packaging.plugins import load_plugin
from ..project import Project
from ..upstream import prepare

_CONF = "spirv_backend;experimental\n"
_PYPROJECT = """\
[build-system]
requires = ["scikit-build-core>=0.10", "cmake>=3.20", "ninja", "pybind11>=2.12"]
build-backend = "scikit_build_core.build"

[project]
name = "{name}"
version = "{version}"
description = "{summary}"
license = "{licence}"
requires-python = ">=3.11"
dependencies = {dependencies}

[project.entry-points."triton.backends"]
spirv = "triton_spirv"

[project.entry-points."torch.backends"]
spirv = "triton_spirv_autoload:autoload"

[project.entry-points.pytest11]
spirv = "triton_spirv_pytest_plugin.pytest_hooks"

[project.scripts]
triton-spirv = "triton_spirv.cli:main"

[tool.triton-ext]
status = "experimental"
enabled = true

[tool.scikit-build]
cmake.build-type = "Release"
wheel.exclude = ["**/__pycache__/**", "**/*.pyc"]

[tool.scikit-build.wheel.packages]
{packages}
"triton/backends" = "python/triton/backends"
"""
_MAKEFILE = """\
.PHONY: build install test
build:
\tpip wheel . --no-deps --wheel-dir dist
install:
\tpip install dist/*.whl --force-reinstall
test:
\tpython -m pytest test
"""
_README = """\
# SPIR-V backend

Compiles TTGIR to Vulkan SPIR-V and runs it on any Vulkan 1.3 device, through Mesa's CPU driver among others. It is
written in Python but for the launcher (`python/triton_spirv/native`), needs Vulkan's headers to build and a Vulkan
driver to run, and no part of LLVM or of libtriton's C++. `make build install test` builds, installs and tests it.
Triton finds it by its entry point; it extends libtriton with nothing, so it needs none of the `extend_with` functions.

This folder is written by `python3 -m tools triton-ext` of the project's own repository, where changes are made.
"""
_TEST = '''\
"""The SPIR-V backend: a kernel is compiled for a device that is not there, and runs on the one that is."""

import os

os.environ.setdefault("TRITON_DEFAULT_BACKEND", "spirv")

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton_spirv.runtime import DeviceUnavailable, array
from triton_spirv.runtime.context import current


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def test_it_compiles():
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(add, signature, {"BLOCK": 128})
    module = triton.compile(source, target=GPUTarget("spirv", "amd-rdna3", 32)).asm["spv"]
    assert module[:4] == bytes.fromhex("03022307")


def test_it_runs():
    try:
        current()
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    add[(8,)](array(x), array(x), array(out), 1000, BLOCK=128)
    assert (out == 2 * x).all()
'''


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise ToolError("triton-ext needs the folder of a checkout of triton-ext")
    folder = Path(arguments[0])
    if not (folder / "backend").is_dir():
        raise ToolError(f"{folder} is no checkout of triton-ext: it has no folder backend/")
    place = folder / "backend" / "SPIRV"
    with hold(project):
        prepare(project)
    write(project, place)
    print(f"{place} holds the backend: `make build install test` there")
    return 0


def write(project: Project, place: Path) -> None:
    """Write the backend's folder."""
    plugin = load_plugin(project.root)
    facts = facts_of(project, plugin)
    # triton is what the tree around it builds, and torch's is not taken in its place.
    entries, _ = package_files(project, plugin, facts.name, {})
    shutil.rmtree(place, ignore_errors=True)
    for name, entry in entries.items():
        _write(place / "python" / name, entry.read())
    tops = sorted({name.split("/")[0] for name in entries} - {"triton"})
    lists = (project.root / "CMakeLists.txt").read_text()
    texts = {
        "triton-ext.conf": _CONF,
        "CMakeLists.txt": _lists(lists),
        "pyproject.toml": _PYPROJECT.format(
            name=facts.name,
            version=facts.version,
            summary=facts.summary,
            licence=facts.licence,
            dependencies=str(list(facts.dependencies)).replace("'", '"'),
            packages="\n".join(f'{top} = "python/{top}"' for top in tops),
        ),
        "Makefile": _MAKEFILE,
        "README.md": _README,
        "test/test_spirv.py": _TEST,
    }
    for name, text in texts.items():
        _write(place / name, text.encode())
    for path in plugin.licences:
        _write(place / path.name, path.read_bytes())


def _lists(text: str) -> str:
    """Our CMakeLists.txt for that layout: other places, and nothing of upstream's old way to add a plugin."""
    for old, new in (
        ("${CMAKE_CURRENT_SOURCE_DIR}/backend/native", "${CMAKE_CURRENT_SOURCE_DIR}/python/triton_spirv/native"),
        ("${CMAKE_CURRENT_SOURCE_DIR}/backend", "${CMAKE_CURRENT_SOURCE_DIR}/python/triton_spirv"),
        ("LIBRARY DESTINATION .", "LIBRARY DESTINATION triton_spirv"),
    ):
        if old not in text:
            raise ToolError(f"CMakeLists.txt has no {old!r} any more: tools/verbs/triton_ext.py has to follow")
        text = text.replace(old, new)
    head, project, rest = text.partition("cmake_minimum_required")
    comment = "# The launcher and torch's operations, as Python modules triton_spirv._native and _native_torch.\n"
    return comment + project + re.sub(r"\nif\(COMMAND add_triton_plugin\)\n.*?\nendif\(\)\n", "", rest, flags=re.DOTALL)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
