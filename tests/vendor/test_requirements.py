"""The requirements: each file by its hash, and everything that they need among them."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from vendor_support import ROOT

from tools import venv
from tools.project import Project

FILES = sorted((ROOT / "requirements").glob("*.txt"))
# What no lock can name a hash of: the wheel that is built here, and torch, of which each index has builds of its own.
UNHASHED = {"triton", "torch"}


def pins(path: Path) -> dict[str, str]:
    """Distribution → its version and hashes."""
    text = re.sub(r"#.*", "", path.read_text()).replace("\\\n", " ")
    found = (line.split("==", 1) for line in text.splitlines() if line.strip())
    return {canonicalize_name(name): rest for name, rest in found}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_is_named_by_its_hash(path: Path) -> None:
    for name, rest in pins(path).items():
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}(?=\s|$)", rest)
        assert bool(hashes) == (name not in UNHASHED), name


def test_what_they_need_is_among_them() -> None:
    known = {name for path in FILES for name in pins(path)} | UNHASHED
    for name in sorted(known - {"triton"}):
        for text in distribution(name).requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                # Beside torch lie the libraries of its CUDA build.
                assert canonicalize_name(needed.name) in known or name == "torch", f"{name} needs {needed.name}"


def test_pip_looks_at_the_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/build.txt").write_text(f"wheel==0.48.0 --hash=sha256:{'0' * 64}\n")
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(venv, "REQUIREMENTS", {"some": ("build", "torch")})
    (tmp_path / "requirements/torch.txt").write_text("torch==2.13.0\n")
    monkeypatch.setattr(venv, "pip", lambda project, *arguments: asked.append(arguments))
    venv.ensure_requirements(Project(tmp_path), "some")
    assert [arguments[1:-2] for arguments in asked] == [("--no-deps", "--require-hashes"), ()]
