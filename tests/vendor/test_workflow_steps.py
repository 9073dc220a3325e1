"""The steps of the release's workflows, run one after the other in a checkout of the toy, as a runner would."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from pathlib import Path
from platform import machine

import pytest
from ruamel.yaml import YAML
from toy_project import ABI, TAG, git, relock
from user_checkout import PYTHON, Checkout
from vendor_support import ROOT, TOY_PLUGIN

FOLDER = ROOT / ".github/workflows"
ABSTRACT = """
from abc import ABC, abstractmethod
class {}(ABC):
    @abstractmethod
    def {}(self): ...
"""
# Programs of a runner that are not here, or that must not do here what they do there: they write down their arguments.
RECORDED = ("gh", "dnf", "sudo", "auditwheel")


def scripts(workflow: str, job: str) -> dict[str, str]:
    """Name (or first word) → script of the steps of a job that run something."""
    steps = YAML(typ="safe").load(FOLDER / workflow)["jobs"][job]["steps"]
    return {step.get("name", step["run"]): step["run"] for step in steps if "run" in step}


class Runner:
    """Runs scripts in the checkout, with bash's options and the variables that a runner sets."""

    def __init__(self, checkout: Checkout, folder: Path) -> None:
        self.checkout = checkout
        self.root = checkout.project.root
        programs = folder / "programs"
        programs.mkdir()
        self.log = folder / "log"
        for name in RECORDED:
            (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n')
            (programs / name).chmod(0o755)
        # The toy's library is no library: stripping it is copying it.
        (programs / "strip").write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp "$3" "$2"\n')
        (programs / "strip").chmod(0o755)
        (programs / "python3").symlink_to(PYTHON)
        self.path = folder / "path"
        self.path.touch()
        self.environment = checkout.environment | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_WORKSPACE": str(self.root),
            "GITHUB_PATH": str(self.path),
            "GITHUB_SERVER_URL": "https://example.org",
            "GITHUB_REPOSITORY": "a/b",
            "HOME": str(folder),
            "CI": "true",
        }

    def run(self, script: str, **environment: str) -> str:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=self.root, env=self.environment | environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A checkout that is a plugin itself, at the tag of its version, with a wheel of upstream for each machine."""
    checkout = Checkout(tmp_path)
    project = checkout.project
    root = project.root
    shutil.copytree(TOY_PLUGIN / "backend", root / "backend", dirs_exist_ok=True)
    (root / "backend/name.conf").write_text("spirv")
    shutil.copy(ROOT / "setup.py", root)
    (root / "CHANGELOG.md").write_text("## 0.1.0 (2026-11-23)\n\n- the toy\n")
    facts = root / "pyproject.toml"
    facts.write_text(re.sub("release-pythons = .*", f'release-pythons = ["{ABI}"]', facts.read_text()))
    # What a backend imports of triton.
    backends = root / "overlay/python/triton/backends"
    backends.mkdir()
    (backends / "__init__.py").touch()
    others = "class GPUTarget: ...\nclass Language: ...\n"
    (backends / "compiler.py").write_text(ABSTRACT.format("BaseBackend", "parse_options") + others)
    (backends / "driver.py").write_text(ABSTRACT.format("DriverBase", "is_active"))
    relock(project)
    lock = project.lock()
    wheels = [dataclasses.replace(lock.wheels[0], arch=arch) for arch in ("x86_64", "aarch64")]
    project.lock_file.write_text(dataclasses.replace(lock, wheels=tuple(wheels)).text())
    (root / ".gitignore").write_text("/build/\n/dist/\n/.venv/\n/release/\n/site/\n/sums/\n__pycache__/\n")
    git(root, "init", "-q", ".")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    git(root, "tag", "v0.1.0")
    return Runner(checkout, tmp_path)


def as_manylinux(wheel: Path, arch: str) -> None:
    """A copy of a wheel of the toy with the name that a container's has."""
    head = wheel.name.rsplit("-", 1)[0]
    shutil.copy(wheel, wheel.with_name(f"{head}-manylinux_2_28_{arch}.whl"))


def test_from_a_tag_to_a_draft_and_the_index(runner: Runner) -> None:
    root = runner.root
    build = scripts("wheels.yml", "wheel")
    audits = [name for name in build if name.startswith("what is compiled")]
    for name, script in build.items():
        if name not in audits:  # the toy compiles nothing
            runner.run(script, PYTHON="cp311-cp311", OPTIONS="--release", TRITON_PLUGIN_DIRS=str(root))
    assert runner.path.read_text() == "/opt/python/cp311-cp311/bin\n"
    slim, main = sorted((root / "dist").glob("*.whl"), key=lambda wheel: ".only." not in wheel.name)
    (alone,) = (root / "dist/plugin").glob("*.whl")
    assert main.name.startswith(f"triton-1.0+spirv.0.1.0-{TAG}-{ABI}-")
    assert slim.name.startswith(f"triton-1.0+spirv.0.1.0.only.spirv-{TAG}-{ABI}-")
    assert alone.name == "triton_spirv-0.1.0-py3-none-any.whl"
    for wheel in (main, slim):
        for arch in ("x86_64", "aarch64"):
            as_manylinux(wheel, arch)
        if f"-linux_{machine()}" in wheel.name:
            wheel.unlink()
    publish = scripts("release.yml", "publish")
    for script in publish.values():
        runner.run(script, TAG="v0.1.0", GH_TOKEN="none")
    (created,) = [line for line in runner.log.read_text().splitlines() if line.startswith("gh release create")]
    assert created.startswith(
        "gh release create v0.1.0 --draft --verify-tag --title v0.1.0 --notes-file release/notes.md "
    )
    files = [word for word in created.split() if word.startswith(("dist/", "release/")) and word != "release/notes.md"]
    assert len(files) == 5 + 2 + 5 and all((root / file).is_file() for file in files)
    # What the pages list is what was released.
    (root / "sums/v0.1.0").mkdir(parents=True)
    shutil.copy(root / "release/SHA256SUMS", root / "sums/v0.1.0")
    for script in scripts("pages.yml", "index").values():
        runner.run(script, GH_TOKEN="none")
    for place, version in (("", "1.0%2Bspirv.0.1.0"), ("only-spirv/", "1.0%2Bspirv.0.1.0.only.spirv")):
        page = (root / f"site/{place}simple/triton/index.html").read_text()
        address = f"https://example.org/a/b/releases/download/v0.1.0/triton-{version}-{TAG}-{ABI}-manylinux"
        assert page.count(f'"{address}') == page.count("<a ") == 2
