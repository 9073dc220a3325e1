"""What is in the wheel."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import struct
import sys
import zipfile
from configparser import ConfigParser
from email.parser import Parser
from pathlib import Path

import pytest
from vendor_support import ROOT, build_wheel

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
    assert version == f"{project.lock().version}+spirv.{project.settings()['version']}"
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
        assert all(name.startswith("triton/backends/spirv/") for name in added), sorted(added)[:5]
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
    modules = [name for name in inside if name.endswith(".so")]
    assert len(modules) == 1 and re.fullmatch(r"_native\..*\.so", modules[0])
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
    version = f"{project.lock().version}+spirv.{project.settings()['version']}.rc.1"
    assert wheel.name.startswith(f"triton_vendor-{version}-cp")
    with zipfile.ZipFile(wheel) as archive:
        assert "Name: triton-vendor\n" in read(archive, "METADATA")
        assert {info.date_time for info in archive.infolist()} == {(2001, 9, 9, 1, 46, 40)}
        # Nothing was compiled for this wheel, so that it runs wherever upstream's does.
        assert "manylinux_2_27" in wheel.name
        assert "triton/backends/spirv/compiler.py" not in archive.namelist()
