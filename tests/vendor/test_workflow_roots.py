"""Jobs of the workflows, step by step, in a system that has nothing but its base: what a runner or container is.

Run alone with `pytest -m roots -n0`, as root, with a network: each job takes some minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from clean_root import Root, make_root
from ruamel.yaml import YAML
from vendor_support import ROOT

pytestmark = [
    pytest.mark.roots,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="a root needs root"),
]

#: What would take hours → what is run instead of it.
SHORTER = (
    (r"(python3 -m tools test).*", r"\1 --fast tests/unit/test_settings.py"),
    (r"(pytest -q) .*families.py", r"\1 --collect-only tests/device/torch_ops/families.py"),
    (r"-m pytest -q -n0 tests/drivers/test_newer_mesa.py", r"\g<0> -k 'both_drivers or same_libraries'"),
)

#: Of the steps that are another repository's action, what they leave: a checkout, a Python, a cache.
PYTHON = "apt-get install -y -qq --no-install-recommends python3 python3-venv python3-pip >/dev/null"


def action(name: str) -> list[dict[str, str]]:
    """The steps of an action of this repository."""
    steps: list[dict[str, str]] = YAML(typ="safe").load(ROOT / name / "action.yml")["runs"]["steps"]
    return steps


def scripts(workflow: str, job: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(name, script, environment) of each step of a job. What runs on failure alone is left out."""
    steps = list(YAML(typ="safe").load(ROOT / ".github/workflows" / workflow)["jobs"][job]["steps"])
    while steps:
        step = steps.pop(0)
        used = step.get("uses", "")
        if used.startswith("./"):
            steps[:0] = action(used)
        elif used.startswith("actions/checkout@"):
            yield "checkout", "", {}
        elif used.startswith("actions/setup-python@"):
            yield "setup-python", PYTHON, {}
        elif "run" in step and step.get("if") != "failure()":
            script = step["run"]
            for long, short in SHORTER:
                script = re.sub(long, short, script)
            yield step.get("name", script), script, step.get("env", {})


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Root]]:
    made: dict[str, Root] = {}
    yield made
    for root in made.values():
        shutil.rmtree(root.folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("release", "workflow", "job"),
    [
        ("noble", "upstream.yml", "release"),
        ("noble", "tests.yml", "tests"),
        ("noble", "weekly.yml", "models"),
        ("bookworm", "mesa.yml", "two-versions"),
        ("sid", "mesa.yml", "device"),
    ],
)
def test_a_job_runs_to_its_end(
    release: str, workflow: str, job: str, roots: dict[str, Root], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = roots.get(release) or roots.setdefault(release, make_root(release, tmp_path_factory.mktemp("r") / release))
    if release == "noble" and not (root.folder / "usr/bin/sudo").exists():  # a runner has these
        done = root.run("apt-get update -qq; apt-get install -y -qq --no-install-recommends ca-certificates git sudo")
        assert done.returncode == 0, done.stderr
        for name in ("google-chrome", "chromedriver"):  # the tests that are left in use no browser
            (root.folder / "usr/local/bin" / name).symlink_to("/bin/false")
    workspace = root.folder / "workspace"
    for name, script, environment in scripts(workflow, job):
        if name == "checkout":
            shutil.rmtree(workspace, ignore_errors=True)
            subprocess.run(["git", "clone", "-q", "--no-local", ROOT, workspace], check=True)
            cache = ROOT / "build/cache/wheels"
            if cache.is_dir():
                shutil.copytree(cache, workspace / "build/cache/wheels")
            script = "git config --global --add safe.directory /workspace"
        where = "/workspace" if workspace.is_dir() else "/"
        folders = {"GITHUB_WORKSPACE": "/workspace", "GITHUB_STEP_SUMMARY": "/summary", "GITHUB_OUTPUT": "/output"}
        done = root.run(script, where, **folders, **environment)
        assert done.returncode == 0, f"{name}: {script}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
