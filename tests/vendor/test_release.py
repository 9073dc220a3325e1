"""The dry run of a release: three wheels, what is published beside them, and an index that they are installed from."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from vendor_support import ROOT

from tools.packaging.sbom import NAME
from tools.project import Project, file_sha256
from tools.simple_index import Sources, files_of


@pytest.fixture(scope="module")
def dry_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that it wrote, and what it printed."""
    out = tmp_path_factory.mktemp("release")
    command = [sys.executable, "-m", "tools", "release", "--dry-run", str(out)]
    environment = {**os.environ, "TRITON_SPIRV_TOOLS_IN_PLACE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_each_wheel_runs_in_an_empty_environment(dry_run: tuple[Path, str]) -> None:
    version = Project(ROOT).settings()["version"]
    names = [f"triton-3.9.0+spirv.{version}", f"triton-3.9.0+spirv.{version}.only.spirv", f"triton_spirv-{version}"]
    tried = re.findall(
        r"^(\S+)[.+]h[0-9a-f]{8}-\S+\.whl: a kernel ran on .+ with triton 3.9.0$", dry_run[1], re.MULTILINE
    )
    assert tried == names


def test_the_index_lists_the_wheels_with_their_hashes(dry_run: tuple[Path, str]) -> None:
    out, _ = dry_run
    digests = {wheel.name: file_sha256(wheel) for wheel in (out / "dist").glob("*.whl")}
    for place, name, slim in (("", "triton", False), ("only-spirv/", "triton", True), ("", "triton-spirv", False)):
        (file,) = files_of(name, Sources((f"{out}/site/{place}simple",), ()))
        assert file.sha256 == digests[file.name] and (".only." in file.name) is slim
    sums = dict(reversed(line.split("  ")) for line in (out / "release/SHA256SUMS").read_text().splitlines())
    assert sums == digests


def test_what_is_published_beside_them(dry_run: tuple[Path, str]) -> None:
    out, _ = dry_run
    project = Project(ROOT)
    assert "SPIR-V" in (out / "release/notes.md").read_text()
    statement = json.loads((out / "release/provenance.json").read_text())
    wheels = {wheel.name: wheel for wheel in (out / "dist").glob("*.whl")}
    subject = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    assert subject == {name: file_sha256(wheel) for name, wheel in wheels.items()}
    made_of = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    digests = {digest for one in made_of for digest in one["digest"].values()}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    lock = project.lock()
    assert digests == {commit.stdout.strip(), lock.commit, *(wheel.sha256 for wheel in lock.wheels)}
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            (inside,) = [one for one in archive.namelist() if one.endswith(NAME)]
            assert archive.read(inside) == (out / f"release/{name}.cdx.json").read_bytes()
