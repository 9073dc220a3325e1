"""What is in the wheel."""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from toy_project import toy_project, write_release
from vendor_support import ROOT, TOY_PLUGIN, build_wheel

from tools.packaging import sbom, targets
from tools.packaging.plugins import load_plugin
from tools.project import Project, ReleaseWheel
from tools.queue import overlay_files, series_names


def dist_info(archive: zipfile.ZipFile) -> str:
    (name,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    return name


def read(archive: zipfile.ZipFile, name: str) -> str:
    return archive.read(f"{dist_info(archive)}/{name}").decode()


def entry_points(archive: zipfile.ZipFile) -> ConfigParser:
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read_string(read(archive, "entry_points.txt"))
    return parser


def section_names(elf: bytes) -> set[str]:
    """The section names of a 64-bit little-endian ELF file."""
    assert elf[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, strings = struct.unpack_from("<3H", elf, 0x3A)
    offsets = [struct.unpack_from("<IIQQQQ", elf, table + index * size) for index in range(count)]
    start = offsets[strings][4]
    return {elf[start + entry[0] : elf.index(b"\0", start + entry[0])].decode() for entry in offsets}


def test_record_names_every_file_with_its_hash_and_size(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        rows = list(csv.reader(io.StringIO(read(archive, "RECORD"))))
        names = [info.filename for info in archive.infolist()]
        assert len(names) == len(set(names))
        assert sorted(row[0] for row in rows) == sorted(names)
        for name, digest, size in rows:
            if name.endswith("/RECORD"):
                assert (digest, size) == ("", "")
                continue
            # Reading a member also verifies the CRC of the archive's own header.
            data = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={expected}", name
            assert int(size) == len(data), name


def test_file_name_metadata_and_tags_agree(wheel: Path) -> None:
    name, version, python, abi, platform = wheel.name.removesuffix(".whl").split("-")
    project = Project(ROOT)
    assert name == "triton"
    own = re.escape(f"{project.lock().version}+spirv.{project.settings()['version']}.h")
    assert re.fullmatch(own + "[0-9a-f]{8}", version)
    assert python == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    with zipfile.ZipFile(wheel) as archive:
        assert dist_info(archive) == f"{name}-{version}.dist-info"
        metadata = Parser().parsestr(read(archive, "METADATA"))
        tags = Parser().parsestr(read(archive, "WHEEL")).get_all("Tag")
        assert (metadata["Name"], metadata["Version"]) == (name, version)
        assert "vulkan==1.3.275.1" in metadata.get_all("Requires-Dist", [])
        assert tags == [f"{python}-{abi}-{one}" for one in platform.split(".")]
        for licence in metadata.get_all("License-File", []):
            assert read(archive, f"licenses/{licence}")
        assert {"LICENSE", "spirv/LICENSE"} <= set(metadata.get_all("License-File", []))


def test_entry_points_are_upstreams_and_ours(wheel: Path, release: tuple[ReleaseWheel, Path]) -> None:
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(release[1]) as theirs:
        found, upstream = entry_points(ours), entry_points(theirs)
    commands = {**upstream["console_scripts"], "triton-spirv": "triton.backends.spirv.cli:main"}
    assert dict(found["console_scripts"]) == commands
    expected = {**upstream["triton.backends"], "spirv": "triton.backends.spirv"}
    assert dict(found["triton.backends"]) == expected
    assert {"nvidia", "amd"} <= set(expected)
    assert dict(found["torch.backends"]) == {"spirv": "triton_spirv_autoload:autoload"}
    assert dict(found["pytest11"]) == {"spirv": "triton_spirv_pytest_plugin.pytest_hooks"}


def test_every_upstream_file_is_there_and_unchanged_but_for_patches(
    wheel: Path, release: tuple[ReleaseWheel, Path]
) -> None:
    project = Project(ROOT)
    patched = {
        line.split(" b/python/")[-1].strip()
        for name in series_names(project)
        for line in (project.patches / name).read_text().splitlines()
        if line.startswith("diff --git ")
    }
    patched |= {path.removeprefix("python/") for path in overlay_files(project)}
    stripped = {"triton/_C/libtriton.so", "triton/_C/libproton.so"}
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(release[1]) as theirs:
        members = {i.filename: i for i in theirs.infolist() if i.filename.startswith("triton/") and not i.is_dir()}
        mine = {info.filename: info for info in ours.infolist()}
        assert set(members) <= set(mine)
        changed = {name for name, info in members.items() if mine[name].CRC != info.CRC}
        assert changed == stripped | (patched & set(members))
        assert patched <= set(mine)
        added = {name for name in mine if name.startswith("triton/")} - set(members) - patched
        assert added
        places = ("triton/backends/spirv/", "triton/language/extra/spirv/")
        assert all(name.startswith(places) for name in added), sorted(added)[:5]
        for name, info in members.items():
            assert bool(mine[name].external_attr >> 16 & 0o111) == bool(info.external_attr >> 16 & 0o111), name


@pytest.mark.parametrize("name", ["triton/_C/libtriton.so", "triton/_C/libproton.so"])
def test_libraries_are_stripped(wheel: Path, name: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sections = section_names(archive.read(name))
    assert ".dynsym" in sections
    assert not {section for section in sections if section.startswith(".debug")} | ({".symtab"} & sections)


def test_the_backend_is_whole_and_holds_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {n.removeprefix("triton/backends/spirv/") for n in archive.namelist() if "/backends/spirv/" in n}
    sources = {path.relative_to(ROOT / "backend").as_posix() for path in (ROOT / "backend").rglob("*.py")}
    assert sources | {"name.conf"} <= inside
    modules = sorted(name.partition(".")[0] for name in inside if name.endswith(".so"))
    assert modules == ["_native", "_native_torch"]
    assert not [name for name in inside if "__pycache__" in name or name.endswith(".pyc")]


def test_the_repositorys_own_tools_are_not_a_plugins_tools(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        extra = {name.split("/")[3] for name in archive.namelist() if name.startswith("triton/tools/extra/")}
    assert extra == {"cuda", "hip"}


def test_the_same_inputs_give_the_same_bytes(wheel_with_toy: Path, tmp_path: Path) -> None:
    toy = ROOT / "tests/vendor/plugins/toy-backend"
    settings = {"TRITON_PLUGIN_DIRS": f"{ROOT};{toy}", "TRITON_WHEEL_VERSION_SUFFIX": "+toy"}
    again = build_wheel(tmp_path, **settings)
    assert again.name == wheel_with_toy.name
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(wheel_with_toy.read_bytes()).digest()


def test_name_suffix_and_time_stamp_are_honoured(tmp_path: Path) -> None:
    wheel = build_wheel(
        tmp_path,
        TRITON_PLUGIN_DIRS=str(ROOT / "tests/vendor/plugins/toy-backend"),
        TRITON_WHEEL_NAME="triton-vendor",
        TRITON_WHEEL_VERSION_SUFFIX="+rc_1",
        SOURCE_DATE_EPOCH="1000000000",
    )
    project = Project(ROOT)
    # This project's name and version are not in the version of a wheel that it is not in.
    assert re.match(rf"triton_vendor-{project.lock().version}\+toy\.rc\.1\.h[0-9a-f]{{8}}-cp", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        assert "Name: triton-vendor\n" in read(archive, "METADATA")
        assert {info.date_time for info in archive.infolist()} == {(2001, 9, 9, 1, 46, 40)}
        # Nothing was compiled for this wheel, so that it runs wherever upstream's does.
        assert "manylinux_2_27" in wheel.name
        assert "triton/backends/spirv/compiler.py" not in archive.namelist()
        assert "vulkan" not in read(archive, "METADATA")


# -- other wheels ----------------------------------------------------------------------------------------------


def bill(archive: zipfile.ZipFile) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(read(archive, sbom.NAME))
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    references = [component["bom-ref"] for component in document["components"]]
    assert len(references) == len(set(references))
    own = document["metadata"]["component"]["bom-ref"]
    assert document["dependencies"] == [{"ref": own, "dependsOn": references}]
    return document


def test_the_bill_of_materials(wheel: Path, release: tuple[ReleaseWheel, Path]) -> None:
    project = Project(ROOT)
    with zipfile.ZipFile(wheel) as archive:
        document = bill(archive)
        components = {component["name"]: component for component in document["components"]}
        assert {"triton", "backend spirv", "pybind11", "vulkan"} == set(components)
        own = document["metadata"]["component"]
        assert own["version"] == wheel.name.split("-")[1]
        assert "+" not in own["purl"] and "%2B" in own["purl"]
        upstream = components["triton"]
        assert upstream["hashes"] == [{"alg": "SHA-256", "content": release[0].sha256}]
        assert upstream["licenses"] == [{"license": {"id": "MIT"}}]
        patches = [patch["diff"]["url"] for patch in upstream["pedigree"]["patches"]]
        assert patches == [f"patches/{name}" for name in series_names(project)]
        files = {file["name"]: file["hashes"][0]["content"] for file in upstream["components"]}
        assert {"triton/_C/libtriton.so", "triton/backends/nvidia/bin/ptxas"} <= set(files)
        for name in ("triton/_C/libproton.so", "triton/backends/nvidia/bin/cuobjdump"):
            assert files[name] == hashlib.sha256(archive.read(name)).hexdigest()


@pytest.fixture(scope="module")
def slim_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with the SPIR-V backend and no other."""
    return build_wheel(tmp_path_factory.mktemp("slim"), "--backends", "spirv")


def test_other_vendors_tool_chains_can_be_left_out(slim_wheel: Path, wheel: Path) -> None:
    assert ".only.spirv.h" in slim_wheel.name
    with zipfile.ZipFile(slim_wheel) as slim, zipfile.ZipFile(wheel) as full:
        gone = set(full.namelist()) - set(slim.namelist())
        left = [name for name in slim.namelist() if name.startswith(("triton/backends/nvidia", "triton/backends/amd"))]
        assert left == []
        files = [name for name in gone if ".dist-info/" not in name]
        assert files and all(name.startswith(("triton/backends/nvidia/", "triton/backends/amd/")) for name in files)
        assert list(entry_points(slim)["triton.backends"]) == ["spirv"]
        inside = {file["name"] for file in bill(slim)["components"][0]["components"]}
        assert not [name for name in inside if "nvidia" in name]
    assert slim_wheel.stat().st_size < 0.4 * wheel.stat().st_size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backends", "spirv,cuda"], "--backends names cuda; there are amd, nvidia, spirv"),
        (["--backends", ","], "--backends names none"),
        (["--source", "--plugin-only"], "--source and --plugin-only go with none of"),
        (["--plugin-only", "--backends", "spirv"], "--source and --plugin-only go with none of"),
        (["--target", "3.12"], "--target '3.12' is not of the form cp314-x86_64"),
        (["--target", "cp311-riscv64"], "cannot be built here: upstream released no wheel for it"),
    ],
)
def test_options_that_make_no_wheel(options: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", str(tmp_path), *options]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_PLUGIN")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ") and message in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [[], ["--plugin-only"]])
def test_strict_refuses_a_plugin_that_cannot_be_imported(options: list[str], tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    shutil.copytree(ROOT / "tests/vendor/plugins/toy-backend", plugin)
    with (plugin / "backend/driver.py").open("a") as driver:
        driver.write("\nimport no_such_package\n")
    (plugin / "pyproject.toml").write_text('[project]\nname = "triton-toy"\nversion = "1"\n')
    command = [sys.executable, "setup.py", "--quiet", "bdist_wheel", "-d", str(tmp_path / "dist"), "--strict", *options]
    environment = os.environ | {"TRITON_PLUGIN_DIRS": str(plugin)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: plugin {plugin}: it imports no_such_package, which is not installed here: install no_such_package, or "
        "build without --strict"
    )
    assert not (tmp_path / "dist").exists()


def test_the_plugin_alone(plugin_wheel: Path) -> None:
    project = Project(ROOT)
    assert plugin_wheel.name.startswith(f"triton_spirv-{project.settings()['version']}+h")
    assert plugin_wheel.stat().st_size < 2_600_000
    with zipfile.ZipFile(plugin_wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        outside = {"triton_spirv_autoload", "triton_spirv_pytest_plugin"}
        assert tops == {"triton_spirv", *outside, "triton", dist_info(archive)}
        assert [name for name in archive.namelist() if name.startswith("triton/")] == ["triton/backends/spirv.py"]
        metadata = Parser().parsestr(read(archive, "METADATA"))
        assert metadata["Name"] == "triton-spirv"
        assert metadata.get_all("Requires-Dist") == [
            f"triton==={project.lock().version}",
            *project.settings()["dependencies"],
        ]
        assert dict(entry_points(archive)["triton.backends"]) == {"spirv": "triton_spirv"}
        assert dict(entry_points(archive)["torch.backends"]) == {"spirv": "triton_spirv_autoload:autoload"}
        assert dict(entry_points(archive)["pytest11"]) == {"spirv": "triton_spirv_pytest_plugin.pytest_hooks"}
        for path in (ROOT / "backend" / "autoload").glob("*.py"):
            assert archive.read(f"triton_spirv_autoload/{path.name}") == path.read_bytes()
        assert read(archive, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()
        assert {component["name"] for component in bill(archive)["components"]} == {"pybind11", "triton", "vulkan"}
        registration = ROOT / "overlay/python/triton/backends/registration.py"
        assert archive.read("triton_spirv/registration.py") == registration.read_bytes()
        inside = {name.removeprefix("triton_spirv/") for name in archive.namelist()}
    assert {path.relative_to(ROOT / "backend").as_posix() for path in (ROOT / "backend").rglob("*.py")} <= inside


# -- which wheels can be built where ---------------------------------------------------------------------------


HERE = targets.Target(11, False, "x86_64")


@pytest.fixture
def on_x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.11 on x86-64 sees it, with Python 3.13 beside it."""
    monkeypatch.setattr(targets, "here", lambda: HERE)
    monkeypatch.setattr(targets.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(targets, "interpreter", lambda target: "/usr/bin/python3.13" if target.minor == 13 else "")


@pytest.mark.usefixtures("on_x86_64")
def test_the_matrix_with_compiled_plugins() -> None:
    lines = targets.table(Project(ROOT).lock(), [load_plugin(ROOT)])
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines}
    part = "the compiled part of spirv has to be compiled"
    assert rows["cp311-x86_64"] == ["yes", "tools wheel"]
    assert rows["cp312-x86_64"] == ["no", f"{part} with Python 3.12, which is not on PATH"]
    assert rows["cp313-x86_64"] == ["no", f"{part} with that Python: /usr/bin/python3.13 -m tools wheel"]
    assert rows["cp313t-x86_64"] == ["no", "upstream released no wheel for it"]
    assert rows["cp314t-x86_64"] == ["no", f"{part} with Python 3.14 (free-threaded), which is not on PATH"]
    assert rows["cp315t-x86_64"] == ["no", f"{part} with Python 3.15 (free-threaded), which is not on PATH"]
    assert rows["cp314-aarch64"] == ["no", f"{part} on aarch64"]
    assert len(rows) == 16


@pytest.mark.usefixtures("on_x86_64")
def test_the_matrix_with_python_only_plugins() -> None:
    lines = targets.table(Project(ROOT).lock(), [load_plugin(TOY_PLUGIN)])
    answers = {line.split()[0]: line.split()[1] for line in lines}
    assert {name for name, answer in answers.items() if answer == "no"} == {"cp313t-x86_64", "cp313t-aarch64"}


def test_a_wheel_for_another_interpreter(tmp_path: Path) -> None:
    """Cross-built on the toy upstream: everything but the text comes from the target's own release wheel."""
    project = toy_project(tmp_path / "repo")
    other = "cp314-cp314t-linux_aarch64"
    theirs = write_release(project.cache / "wheels", tags=other, library=b"\x7fELF of another machine")
    lock = project.lock()
    project.lock_file.write_text(dataclasses.replace(lock, wheels=(*lock.wheels, theirs)).text())
    build = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tools.packaging import targets, wheel
from tools.project import Project
wheel.find_strip_for = lambda arch: None
wheel.check_classes = lambda *_: None
print(wheel.build_wheel(Project(Path({str(project.root)!r})), target=targets.parse("cp314t-aarch64")))
"""
    environment = os.environ | {"TRITON_PLUGIN_DIRS": str(TOY_PLUGIN)}
    command = [sys.executable, "-c", build]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wheel = Path(done.stdout.strip())
    assert wheel.name.endswith(f"-{other}.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        assert archive.read("triton/_C/libtriton.so") == b"\x7fELF of another machine"
        assert b"line two" in archive.read("triton/alpha.py")
        assert f"Tag: {other}" in read(archive, "WHEEL")
        assert "triton/backends/toy/compiler.py" in archive.namelist()
    # A wheel with other text is not what the patches were applied to.
    theirs = write_release(project.cache / "wheels", tags=other, alpha="line 1\n")
    project.lock_file.write_text(dataclasses.replace(lock, wheels=(*lock.wheels, theirs)).text())
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "python/triton/alpha.py differs from 1.0 here: build that wheel with its own interpreter" in done.stderr
