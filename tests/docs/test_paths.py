"""Every file and folder that the pages about the code, comments and docstrings name is there."""

import ast
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "CONTRIBUTING.md",
    "docs/internals/architecture.md",
    "docs/internals/analysis.md",
    "docs/internals/matrix-units.md",
    "docs/internals/abi.md",
)
#: What a reader is to make, or what tools make, is not there.
MADE = {"build/upstream", "build/fuzz/", "build/upstream/"}

_QUOTED = re.compile(r"`([\w./*-]+(?:\.py|\.cpp|\.h|\.json|\.md|/))`")


def named(page: str) -> set[str]:
    """The files and folders in backquotes."""
    return set(_QUOTED.findall((ROOT / page).read_text(encoding="utf-8"))) - MADE


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    """By its path from the root, backend/ or docs/, or by its name alone."""
    tree = {path.relative_to(ROOT).as_posix() for top in ("backend", "tests") for path in (ROOT / top).rglob("*")}
    missing = set()
    for name in named(page):
        path = name.rstrip("/")
        found = any(next((ROOT / base).glob(path), None) for base in ("", "backend", "docs"))
        if not found and not any(other.endswith(f"/{path}") for other in tree):
            missing.add(name)
    assert missing == set()


#: A name of a file in prose: at the end of a path, or alone.
_FILE = re.compile(r"(?<![\w/.<>{}*-])((?:[\w.-]+/)*[\w-]+\.(?:py|cpp|hpp|h|md|toml|json))\b(?![\w/])")
#: Files of others, and those that a reader or a tool makes, which prose may name.
OTHERS = {
    "ANSWERS.json",
    "ATen/autocast_mode.h",
    "LoaderDriverInterface.md",
    "NAME.hpp",
    "NAME.py",
    "PROFILE.json",
    "RNN.cpp",
    "add.py",
    "attention.cpp",
    "backend/MODULE.py",
    "icd/api/vk_pipeline.cpp",
    "llvm-c/IRReader.h",
    "nir_opt_algebraic.py",
    "notes.md",
    "provenance.json",
    "script.py",
    "semantic.py",
    "src/video_core/renderer_vulkan/pipeline_statistics.cpp",
    "stableivalue_conversions.h",
    "vulkan_core.h",
    "vulkan_disassembly.cpp",
}


def prose(path: Path) -> Iterator[str]:
    """The comments of a Python file, and its docstrings."""
    text = path.read_text(encoding="utf-8")
    yield from (token.string for token in generate_tokens(StringIO(text).readline) if token.type == COMMENT)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node, clean=False) or ""


def test_files_that_comments_and_docstrings_name_are_there() -> None:
    """By the end of their paths. What others have, or a reader makes, is in OTHERS, and nothing else is."""
    tops = ("backend", "benchmarks", "docs", "examples", "language", "overlay", "tests", "tools")
    tree = [path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("*.*")]
    ends = {path[start:] for path in tree for start in (0, *(at.end() for at in re.finditer("/", path)))}
    ends |= {path.name for path in ROOT.iterdir()}
    missing: dict[str, str] = {}
    for path in (file for top in ("backend", "tools") for file in sorted((ROOT / top).rglob("*.py"))):
        for name in (found for text in prose(path) for found in _FILE.findall(text)):
            if name not in ends:
                missing.setdefault(name, path.relative_to(ROOT).as_posix())
    assert missing.keys() == OTHERS, {name: missing[name] for name in missing.keys() - OTHERS}
