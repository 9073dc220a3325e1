"""The tools' requests to the package registry: one each, and a missing answer is an error, not an absence."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from toy_project import ABI, ALPHA, TAG, write_release
from user_checkout import Checkout

from tools import registry
from tools.errors import ToolError
from tools.project import Project, ReleaseWheel
from tools.simple_index import File, Sources, files_of

NEW = "cd" * 20
TO = ("rebase", "--to", "1.1", "--commit", NEW, "--no-test")


class Index:
    """A package index on this machine, which counts what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.status = 200
        self.html = False
        self.hashes = True
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                kind, data = index.answer(self.path)
                self.send_response(index.status if kind else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/simple"

    def answer(self, path: str) -> tuple[str, bytes]:
        if path.endswith(".whl"):
            return "application/octet-stream", (self.folder / Path(path).name).read_bytes()
        wheels = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in sorted(self.folder.iterdir())]
        if path != "/simple/triton/":
            return "", b""
        if self.html:
            rows = [f'<a href="/files/{name}#sha256={digest}">{name}</a>' for name, digest in wheels]
            return "text/html", "\n".join(rows).encode()
        files = [
            {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": digest} if self.hashes else {}}
            for name, digest in wheels
        ]
        page = {"meta": {"api-version": "1.0"}, "name": "triton", "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()

    def pages(self) -> list[str]:
        return [path for path in self.asked if not path.endswith(".whl")]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "registry"
    write_release(folder, "1.0")
    write_release(folder, "1.1", alpha="line 0\n" + ALPHA)
    index = Index(folder)
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def run(checkout: Checkout, *arguments: str, url: str) -> subprocess.CompletedProcess[str]:
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": "", "PIP_INDEX_URL": url}
    return checkout.run(*arguments, **settings, PIP_RETRIES="0", no_proxy="127.0.0.1")


@pytest.mark.parametrize("html", [False, True])
def test_a_rebase_asks_for_one_page_at_a_time(checkout: Checkout, index: Index, html: bool) -> None:
    index.html = html
    done = run(checkout, *TO, url=index.url)
    assert done.returncode == 0, done.stderr
    (wheel,) = checkout.project.lock().wheels
    assert wheel.file.startswith("triton-1.1-")
    assert wheel.sha256 == hashlib.sha256((index.folder / wheel.file).read_bytes()).hexdigest()
    # What to fetch, pip's own look for it, and what to write into the lock.
    assert index.pages() == ["/simple/triton/"] * 3


def test_a_registry_that_cannot_be_reached_is_no_absence(checkout: Checkout, index: Index) -> None:
    before = checkout.project.lock_file.read_bytes()
    index.server.shutdown()
    index.server.server_close()
    for arguments in (TO, ("rebase", "--to", "newest", "--report")):
        done = run(checkout, *arguments, url=index.url)
        assert done.returncode == 1
        told = done.stderr.splitlines()[-1]
        assert told.startswith(f"error: the registry cannot be reached: {index.url}/triton/: "), done.stderr
        assert "the registry has no" not in done.stderr
    assert checkout.project.lock_file.read_bytes() == before


def test_a_registry_that_fails_halfway_leaves_the_lock_as_it_is(checkout: Checkout, index: Index) -> None:
    before = checkout.project.lock_file.read_bytes()
    assert checkout.run(*TO, fault="rebase-started", PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=index.url).returncode < 0
    index.status = 503
    done = run(checkout, "rebase", "--continue", "--no-test", url=index.url)
    assert done.returncode == 1
    assert "the registry cannot be reached" in done.stderr and "it answers 503" in done.stderr
    assert checkout.project.lock_file.read_bytes() == before
    index.status = 200
    done = run(checkout, "rebase", "--continue", "--no-test", url=index.url)
    assert done.returncode == 0, done.stderr
    assert len(checkout.project.lock().wheels) == 1


def test_an_absence_is_told_as_one(checkout: Checkout, index: Index) -> None:
    done = run(checkout, "rebase", "--to", "7.0", "--report", url=index.url)
    assert done.returncode == 1
    assert "error: the registry has no triton 7.0 for this Python on " in done.stderr


def test_a_wheel_that_the_new_release_lacks_is_told(checkout: Checkout, index: Index) -> None:
    lock = checkout.project.lock()
    other = ReleaseWheel("cp314", "cp314t", "aarch64", "triton-1.0-cp314-cp314t-linux_aarch64.whl", "0" * 64)
    text = lock.text() + "\n[[wheel]]\n" + "".join(f'{key} = "{value}"\n' for key, value in vars(other).items())
    checkout.project.lock_file.write_text(text)
    done = run(checkout, *TO, url=index.url)
    assert done.returncode == 0, done.stderr
    assert "triton 1.1 has no wheel for cp314t-aarch64, and 1.0 had one" in done.stderr


def test_a_wheel_without_a_hash_is_refused(checkout: Checkout, index: Index) -> None:
    index.hashes = False
    done = run(checkout, "rebase", "--to", "1.1", "--report", url=index.url)
    assert done.returncode == 1
    assert f"the registry gives no sha256 for triton-1.1-{TAG}-{ABI}-linux_" in done.stderr


# -- which wheel serves whom ---------------------------------------------------------------------------------------

HASH = "0" * 64


def choose(monkeypatch: pytest.MonkeyPatch, *names: str, **facts: File) -> None:
    files = [facts.get(name, File(name, HASH)) for name in names]
    monkeypatch.setattr(registry, "pip_sources", lambda: Sources((), ()))
    monkeypatch.setattr(registry, "files_of", lambda name, sources: files)


def test_one_wheel_for_each_interpreter_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [
        "triton-3.9.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "triton-3.9.0-cp312-abi3-manylinux_2_28_x86_64.whl",
        "triton-3.9.0-cp314-cp314-manylinux2014_x86_64.whl",
        "triton-3.9.0-cp314-cp314t-linux_x86_64.whl",
        "triton-3.9.0-cp312-abi3-manylinux_2_28_aarch64.whl",
    ]
    others = [
        "triton-3.9.0-cp311-cp311-manylinux_2_34_x86_64.whl",  # fewer systems have it
        "triton-3.9.0-cp311-cp311-musllinux_1_2_x86_64.whl",
        "triton-3.9.0-cp311-cp311-win_amd64.whl",
        "triton-3.9.0-cp310-cp310-manylinux_2_28_x86_64.whl",
        "triton-3.9.0-cp311-abi3-manylinux_2_28_x86_64.whl",  # one that is made for the interpreter goes before it
        "triton-3.9.0.tar.gz",
        "triton-3.9.0rc1-cp311-cp311-manylinux_2_28_x86_64.whl",
        "triton_nightly-3.9.0-cp311-cp311-manylinux_2_28_x86_64.whl",
    ]
    choose(monkeypatch, *others, *kept)
    assert sorted(wheel.file for wheel in registry.release_wheels("triton", "3.9.0")) == sorted(kept)


def test_the_newest_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(version: str, tags: str = f"{TAG}-{ABI}-linux_x86_64") -> str:
        return f"triton-{version}-{tags}.whl"

    names = ["1.9", "1.10", "2.0rc1", "1.11", "1.12", "1.13"]
    facts = {name("1.11"): File(name("1.11"), HASH, yanked=True)}
    facts |= {name("1.12"): File(name("1.12"), HASH, requires_python=">=3.99")}
    files = [name(version) for version in names[:-1]] + [name("1.13", "cp39-cp39-linux_x86_64")]
    choose(monkeypatch, *files, **facts)
    assert registry.newest("triton", "x86_64") == "1.10"
    choose(monkeypatch, name("2.0rc1"))
    assert registry.newest("triton", "x86_64") == "2.0rc1"
    choose(monkeypatch)
    with pytest.raises(ToolError, match="the registry has no triton for this Python"):
        registry.newest("triton", "x86_64")


def test_indexes_and_folders_of_this_machine(tmp_path: Path) -> None:
    wheel = write_release(tmp_path / "links")
    (tmp_path / "simple/triton").mkdir(parents=True)
    page = f'<a href="../../files/triton-2.0-{TAG}-{ABI}-linux_x86_64.whl#sha256={HASH}" data-yanked="">it</a>'
    (tmp_path / "simple/triton/index.html").write_text(page)
    (tmp_path / "empty").mkdir()
    urls = tuple(f"{(tmp_path / name).as_uri()}/" for name in ("simple", "empty"))
    found = files_of("Triton", Sources(urls, (str(tmp_path / "links"),)))
    assert found == [File(f"triton-2.0-{TAG}-{ABI}-linux_x86_64.whl", HASH, "", True), File(wheel.file, wheel.sha256)]
    with pytest.raises(ToolError, match="the registry cannot be reached: there is no .*none"):
        files_of("triton", Sources(((tmp_path / "none").as_uri(),), ()))


def test_the_lock_alone_does_not_say_what_a_release_has(checkout: Checkout, tmp_path: Path) -> None:
    assert len(Project(checkout.project.root).lock().wheels) == 1
    (tmp_path / "dist").mkdir()
    done = checkout.run("release", str(tmp_path / "dist"), str(tmp_path / "out"), TRITON_PLUGIN_DIRS="")
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert told.startswith("error: upstream.lock.toml has no wheel of triton 1.0 for ")
    assert "cp314t-aarch64, which release-pythons of pyproject.toml names" in told
