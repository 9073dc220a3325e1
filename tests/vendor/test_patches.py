"""The patch files themselves: form, order, and that each one applies to the tree of the installed release."""

from __future__ import annotations

import filecmp
import re
import subprocess
from pathlib import Path

import pytest
from patched_tree import ROOT, git_apply, installed_triton, python_path, series, stock_tree

PATCHES = series()
IDS = [patch.stem for patch in PATCHES]


def test_the_series_names_each_patch_once() -> None:
    assert sorted(PATCHES) == sorted((ROOT / "patches").glob("*.patch"))


def touched() -> list[str]:
    """The files that the series changes, as paths from the top of the source tree."""
    text = "".join(patch.read_text() for patch in PATCHES)
    return sorted(set(re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)))


@pytest.mark.parametrize("patch", PATCHES, ids=IDS)
def test_header(patch: Path) -> None:
    header, separator, diff = patch.read_text().partition("\n---\n")
    assert separator, "the header ends with a line ---"
    assert re.match(r"From: [^<\n]+ <[^>\n]+>\nSubject: \S[^\n]*\n\nWhy: \S", header)
    assert re.search(r"^Upstream-Status: \S", header, re.MULTILINE)
    assert diff.startswith("diff --git a/python/triton/")
    # What differs from one export to the next has no place in a patch.
    assert not re.search(r"^(index |Date:|From [0-9a-f]{40})", patch.read_text(), re.MULTILINE)


#: Lines that a patch may change, and what those that are longer need: each calls its overlay module at several places.
MOST_LINES = 12
LONGER = {
    "cache-folder": 26,
    "launch-errors": 13,
    "untimed-configurations": 15,
    "interpreted-floats": 23,
    "interpreted-numbers": 23,
    "interpreted-backends": 19,
    "unsigned-loops": 15,
}


@pytest.mark.parametrize("patch", PATCHES, ids=IDS)
def test_a_patch_is_small(patch: Path) -> None:
    lines = patch.read_text().partition("\n---\n")[2].splitlines()
    changed = [line for line in lines if re.match(r"[-+](?!--|\+\+)", line)]
    most = LONGER.get(patch.stem, MOST_LINES)
    assert 0 < len(changed) <= most, "a longer change belongs in overlay/, behind a hook"


def test_the_series_applies_and_comes_off_again(tmp_path: Path) -> None:
    stock_tree(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in touched()}
    for patch in PATCHES:
        git_apply(patch, tmp_path)
    assert all((tmp_path / name).read_bytes() != content for name, content in before.items())
    with pytest.raises(subprocess.CalledProcessError):
        git_apply(PATCHES[0], tmp_path)  # a second time
    for patch in reversed(PATCHES):
        git_apply(patch, tmp_path, "--reverse")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_no_patch_touches_an_overlay_file() -> None:
    assert [name for name in touched() if (ROOT / "overlay" / name).exists()] == []


def test_the_patched_tree_contains_the_overlay() -> None:
    patched = python_path()
    package = Path(patched) / "triton" if patched else installed_triton()
    for source in (ROOT / "overlay/python/triton").rglob("*.py"):
        copy = package / source.relative_to(ROOT / "overlay/python/triton")
        assert filecmp.cmp(source, copy, shallow=False), copy
