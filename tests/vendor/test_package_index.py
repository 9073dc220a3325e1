"""The pages of the package index: pip and the tools install from them by name and hash."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from toy_project import write_release
from vendor_support import ROOT

from tools.simple_index import Sources, files_of

LOCAL = "1.0+spirv.0.1.0"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address that it is served at."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def run_index(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", "tools", "index", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def release(folder: Path, version: str) -> Path:
    """A release's wheel and its SHA256SUMS."""
    wheel = folder / write_release(folder, version).file
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")
    return wheel


def download(address: str, requirement: str, into: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "no_proxy": "127.0.0.1"}
    environment |= {"PIP_INDEX_URL": f"{address}/site/simple/", "PIP_EXTRA_INDEX_URL": ""}
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--dest", str(into), requirement]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_pip_takes_what_the_pages_name(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    wheels = [release(folder / f"v{number}", version) for number, version in enumerate((LOCAL, "1.1+spirv.0.2.0"))]
    words = [f"{address}/{wheel.parent.name}/={wheel.parent}/SHA256SUMS" for wheel in wheels]
    done = run_index(str(folder / "site"), *words)
    assert (done.returncode, done.stdout) == (0, f"{folder}/site: 2 wheels of 1 distributions\n"), done.stderr
    for requirement, wheel in (("triton", wheels[1]), (f"triton=={LOCAL}", wheels[0])):
        into = tmp_path / requirement
        done = download(address, requirement, into)
        assert done.returncode == 0, done.stderr
        assert (into / wheel.name).read_bytes() == wheel.read_bytes()
    found = files_of("Triton", Sources((f"{address}/site/simple",), ()))
    assert [file.sha256 for file in found] == [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
    page = json.loads((folder / "site/simple/triton/index.json").read_text())
    assert [file["hashes"]["sha256"] for file in page["files"]] == [file.sha256 for file in found]
    assert page["versions"] == [LOCAL, "1.1+spirv.0.2.0"]


def test_pip_refuses_a_file_that_was_exchanged(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    wheel = release(folder / "v0", LOCAL)
    assert run_index(str(folder / "site"), f"{address}/v0=" + f"{folder}/v0/SHA256SUMS").returncode == 0
    write_release(folder / "v0", LOCAL, library=b"other")
    done = download(address, "triton", tmp_path / "into")
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr, wheel


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0" * 64 + "  ../x.whl", "is not a sha256 and the name of a wheel"),
        ("0" * 63 + "  x.whl", "is not a sha256 and the name of a wheel"),
        (None, "there is no file "),
    ],
)
def test_sums_that_cannot_be_used(tmp_path: Path, line: str | None, message: str) -> None:
    if line is not None:
        (tmp_path / "SHA256SUMS").write_text(f"{line}\n")
    done = run_index(str(tmp_path / "site"), "https://example.org/=" + f"{tmp_path}/SHA256SUMS")
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "site").exists()


def test_a_wheel_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    wheel = write_release(tmp_path, "1.0")
    command = [sys.executable, "-m", "tools", "try-wheel", str(tmp_path / wheel.file)]
    environment = {**os.environ, "TRITON_SPIRV_TOOLS_IN_PLACE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    why = "ModuleNotFoundError: No module named 'triton.language'"
    assert done.stderr.splitlines()[-1] == f"error: {wheel.file} is installed, and its kernel fails: {why}"
