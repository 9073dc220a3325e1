"""The workflows: well-formed, without known weaknesses, and made of commands that run here too."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from platform import machine

import pytest
from ruamel.yaml import YAML
from toy_project import ABI, TAG, toy_project
from user_checkout import Checkout
from vendor_support import ROOT, TOY_PLUGIN

from tools.__main__ import VERBS
from tools.errors import ToolError
from tools.packaging import plugin_wheel, sbom, targets
from tools.packaging.metadata import Identity
from tools.packaging.plugins import Plugin
from tools.project import Project
from tools.verbs import audit, release

FOLDER = ROOT / ".github/workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
SCRIPTS = Path(sys.executable).parent


def test_they_keep_githubs_schema() -> None:
    command = [SCRIPTS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_zizmor_finds_no_weakness() -> None:
    command = [SCRIPTS / "zizmor", "--offline", "--no-progress", "--config", FOLDER.parent / "zizmor.yml", FOLDER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def jobs(name: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = YAML(typ="safe").load(FOLDER / name)["jobs"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_commands_are_there(path: Path) -> None:
    text = path.read_text()
    assert {verb for verb in re.findall(r"python3 -m tools (\S+)", text)} <= set(VERBS) | {'packages)"'}
    for script in re.findall(r"^ +run: \|\n((?: {10}.*\n)+)", text, re.MULTILINE):
        plain = re.sub(r"\$\{\{.*?\}\}", "expression", script)
        done = subprocess.run(["bash", "-n"], input=plain, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


#: What a release has, said once more: neither the lock nor the matrix may lose one unseen.
RELEASED = ("cp311-cp311", "cp312-cp312", "cp313-cp313", "cp314-cp314", "cp314-cp314t")


def test_every_python_and_machine_is_tested_and_released() -> None:
    matrix = jobs("tests.yml")["tests"]["strategy"]["matrix"]  # type: ignore[index]
    machines = [machine.endswith("arm") for machine in matrix["machine"]]
    tested = {(f"cp{python.replace('.', '')}", arm) for python in matrix["python"] for arm in machines}
    matrix = jobs("wheels.yml")["wheel"]["strategy"]["matrix"]  # type: ignore[index]
    built = {f"{tag}-{machine['image'].split('_', 3)[3]}" for tag in matrix["python"] for machine in matrix["machine"]}
    assert (
        built
        == release.expected_tags(Project(ROOT))
        == {f"{tags}-{arch}" for tags in RELEASED for arch in ("x86_64", "aarch64")}
    )
    found = jobs("wheels.yml")["windows"]["strategy"]["matrix"]["python"]  # type: ignore[index]
    assert release.windows_tags(Project(ROOT)) == {f"{name}-{name}-win_amd64" for name in found} != set()
    plain = {(tag.split("-")[0], tag.endswith("aarch64")) for tag in built if not tag.split("-")[1].endswith("t")}
    assert tested == plain


def test_what_is_built_is_launched_before_it_is_released() -> None:
    found = jobs("wheels.yml")
    built, tried = (found[name]["strategy"]["matrix"] for name in ("wheel", "launch"))  # type: ignore[index]
    assert [entry["tag"] for entry in tried["python"]] == built["python"]
    assert tried["machine"] == built["machine"]
    for entry in tried["python"]:
        digits, threads = re.fullmatch(r"cp3(\d+)-cp3\d+(t?)", entry["tag"]).groups()  # type: ignore[union-attr]
        assert entry["version"] == f"3.{digits}{threads}"
    assert found["launch"]["needs"] == "wheel"
    released = jobs("release.yml")
    assert [released[name].get("needs") for name in ("publish", "registry")] == ["wheels", "publish"]
    assert [released[name].get("environment") for name in ("publish", "registry")] == ["release", "pypi"]


def test_no_checkout_fetches_tags() -> None:
    # With the ref of a tag, actions/checkout fetches it twice and ends in an error.
    assert not [path.name for path in WORKFLOWS if "fetch-tags" in path.read_text()]


def packages(**environment: str) -> set[str]:
    command = [sys.executable, "-S", "-m", "tools", "packages"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_packages_names_what_the_system_lacks() -> None:
    assert packages() == set()  # the tests run here
    named = packages(PATH="/nonexistent")
    assert {"g++", "git", "binutils", "spirv-tools"} <= named
    # This interpreter has its headers, whether or not a distribution packages it.
    assert not {name for name in named if name.startswith("python3")} | {"libvulkan-dev"} & named


# -- the release -------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TRITON_PLUGIN_DIRS", "")
    project = toy_project(tmp_path / "repo")
    monkeypatch.setattr(targets, "ARCHITECTURES", (machine(),))
    facts = project.root / "pyproject.toml"
    facts.write_text(re.sub("release-pythons = .*", f'release-pythons = ["{ABI}"]', facts.read_text()))
    (project.root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 0.1.0 (2026-11-22)\n\n- all of it\n\n## 0.0.9\n\n- less\n"
    )
    return project


def wheel_of(
    project: Project,
    folder: Path,
    platform: str = "",
    version: str = "1.0+patched",
    tags: str = f"{TAG}-{ABI}",
    name: str = "triton",
) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-{tags}-{platform or f'manylinux_2_28_{machine()}'}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/{sbom.NAME}", "{}")
    return path


def test_a_release_is_checked_and_described(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = wheel_of(project, tmp_path / "dist")
    out = tmp_path / "out"
    assert release.run(project, [str(tmp_path / "dist"), str(out)]) == 0
    assert (out / "notes.md").read_text() == "- all of it\n"
    assert (out / f"{wheel.name}.cdx.json").read_text() == "{}"
    done = subprocess.run(["sha256sum", "--check", out / "SHA256SUMS"], cwd=wheel.parent, check=False)
    assert done.returncode == 0


def test_a_release_that_is_not_whole(project: Project, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    arguments = [str(tmp_path / "dist"), str(tmp_path / "out")]
    with pytest.raises(ToolError, match="the release has no wheel triton-1.0.patched for cp3"):
        release.run(project, arguments)
    wheel_of(project, tmp_path / "dist", platform="linux_x86_64").rename(tmp_path / "local.whl")
    other = wheel_of(project, tmp_path / "dist", version="1.0+patched.h0123abcd")
    with pytest.raises(ToolError, match="is not of the release triton-1.0.patched"):
        release.run(project, arguments)
    other.unlink()
    wheel_of(project, tmp_path / "dist", platform="linux_x86_64")
    with pytest.raises(ToolError, match="build it in a manylinux container"):
        release.run(project, arguments)
    assert not (tmp_path / "out").exists()


def test_a_release_has_the_plugin_for_windows(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin("toy", shutil.copytree(TOY_PLUGIN, tmp_path / "toy"))
    (plugin.folder / "CMakeLists.txt").touch()
    monkeypatch.setattr(release, "is_own", lambda *_: True)
    monkeypatch.setattr(plugin_wheel, "identity", lambda *_, **__: Identity("triton-toy", "0.1.0"))
    versions = {True: "1.0+patched.only.toy", False: "1.0+patched"}
    monkeypatch.setattr(release, "identity", lambda *words, **__: Identity("triton", versions[len(words) > 2]))
    facts = project.root / "pyproject.toml"
    facts.write_text(re.sub("release-windows = .*", f'release-windows = ["{ABI}"]', facts.read_text()))
    wheels = [wheel_of(project, tmp_path / "dist")]
    wheels.append(wheel_of(project, tmp_path / "dist", name="triton_toy", version="0.1.0"))
    with pytest.raises(ToolError, match=rf"no wheel triton-1.0.patched.only.toy for {TAG}-{ABI}-{machine()}"):
        release.check_wheels(project, [plugin], wheels)
    wheels.append(wheel_of(project, tmp_path / "dist", version=versions[True]))
    with pytest.raises(ToolError, match=rf"no wheel triton_toy-0.1.0 for {TAG}-{ABI}-win_amd64"):
        release.check_wheels(project, [plugin], wheels)
    wheels.append(wheel_of(project, tmp_path / "dist", "win_amd64", "0.1.0", name="triton_toy"))
    release.check_wheels(project, [plugin], wheels)


def test_a_vendor_s_release(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    facts = checkout.project.root / "pyproject.toml"
    facts.write_text(re.sub("release-pythons = .*", f'release-pythons = ["{ABI}"]', facts.read_text()))
    lock = checkout.project.lock()
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[lock.wheels[0].arch]
    wheels = (*lock.wheels, dataclasses.replace(lock.wheels[0], arch=other))
    checkout.project.lock_file.write_text(dataclasses.replace(lock, wheels=wheels).text())
    vendor = shutil.copytree(TOY_PLUGIN, tmp_path / "vendor")
    (vendor / "pyproject.toml").write_text('[project]\nname = "triton-toy"\nversion = "7.2"\n')
    (vendor / "CHANGELOG.md").write_text("## 7.20\n\n- more\n\n## 7.2 (2026-11-23)\n\n- the toy\n")
    dist, out = tmp_path / "dist", tmp_path / "out"

    def run() -> subprocess.CompletedProcess[str]:
        return checkout.run("release", str(dist), str(out), TRITON_PLUGIN_DIRS=str(vendor))

    for arch in ("x86_64", "aarch64"):
        platform = f"manylinux_2_28_{arch}"
        wheel_of(checkout.project, dist, platform, "1.0+toy.7.2", f"{TAG}-{ABI}")
    done = run()
    assert done.returncode == 0, done.stderr
    assert (out / "notes.md").read_text() == "- the toy\n"
    wheel_of(checkout.project, dist, "any", "7.3", "py3-none", name="triton_toy")
    assert "triton_toy-7.3-py3-none-any.whl is not of the release triton-1.0+toy.7.2" in run().stderr


def test_notes_of_a_version_that_is_not_dated(project: Project) -> None:
    (project.root / "CHANGELOG.md").write_text("## 0.1.0 (unreleased)\n\n- all\n")
    with pytest.raises(ToolError, match="calls 0.1.0 unreleased"):
        release.notes(project, [])
    (project.root / "CHANGELOG.md").write_text("## 0.2.0\n\n- all\n")
    with pytest.raises(ToolError, match="says nothing of 0.1.0"):
        release.notes(project, [])


def test_auditwheel_agrees_with_the_name_of_what_is_compiled_here(plugin_wheel: Path, tmp_path: Path) -> None:
    assert re.fullmatch(r"(manylinux_2_\d+|linux)_\w+", audit.audit(plugin_wheel))
    head, platform = plugin_wheel.stem.rsplit("-", 1)
    arch = re.sub(r"^(manylinux_2_\d+|linux)_", "", platform.split(".")[0])
    bold = tmp_path / f"{head}-manylinux_2_5_{arch}.whl"
    bold.write_bytes(plugin_wheel.read_bytes())
    with pytest.raises(ToolError, match="promises manylinux_2_5_.*, but auditwheel finds manylinux_2_"):
        audit.audit(bold)


def test_wheels_that_cannot_be_audited(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no wheel"):
        audit.audit(tmp_path / "none.whl")
    (tmp_path / "a-1-py3-none-linux_x86_64.whl").write_text("no zip")
    with pytest.raises(ToolError, match="auditwheel cannot tell"):
        audit.audit(tmp_path / "a-1-py3-none-linux_x86_64.whl")
