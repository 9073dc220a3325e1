"""Patches as mails to upstream: `git am` takes them on upstream itself, and their tests fail without them."""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patched_tree import stock_tree
from toy_project import git
from vendor_support import ROOT

from tools.project import Project
from tools.queue import overlay_files
from tools.verbs.mail import SUBJECTS

PATCHES = sorted(path.name for path in (ROOT / "patches/tests").iterdir())


@pytest.fixture(scope="module")
def mails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mails")
    environment = {**os.environ, "TRITON_SPIRV_TOOLS_IN_PLACE": "1"}
    command = [sys.executable, "-m", "tools", "mail", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upstream's release as its source tree has it, with its text files in git."""
    folder = tmp_path_factory.mktemp("stock")
    stock_tree(folder)
    shutil.rmtree(folder / "python/triton/backends/spirv", ignore_errors=True)
    for path in overlay_files(Project(ROOT)):
        (folder / path).unlink(missing_ok=True)
    # Checked by their sources' hashes: two versions of a patch may be written within a second.
    compileall.compile_dir(
        folder / "python/triton", quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )
    git(folder, "init", "-q", ".")
    git(folder, "add", "--", *(str(path) for path in (folder / "python/triton").rglob("*.py")))
    git(folder, "commit", "-q", "-m", "upstream")
    git(folder, "tag", "base")
    return folder


def test_there_is_one_mail_for_each(mails: Path) -> None:
    order = [name.split("-", 1)[1].removesuffix(".patch") for name in sorted(path.name for path in mails.iterdir())]
    assert order == list(SUBJECTS) and sorted(order) == PATCHES
    # Before the patches that mend mistakes of upstream, none stands that only a backend needs.
    text = (ROOT / "docs/internals/why-patches.md").read_text()
    mistakes = text[text.index("patches fix bugs in upstream:") : text.index("are small changes that serve")]
    assert set(re.findall("`([a-z0-9-]+)`", mistakes)) == set(order[: order.index("early-return")])


HEADERS = ("From: ", "Date: ", "Subject: [PATCH] [")
FIELDS = ("Origin: ", "Forwarded: no", "Last-Update: ", "Applies-To: ")


@pytest.mark.parametrize("name", PATCHES)
def test_upstream_s_test_fails_without_it_and_passes_with_it(
    name: str, mails: Path, stock: Path, tmp_path: Path
) -> None:
    git(stock, "checkout", "-q", "-B", name, "base")
    (mail,) = mails.glob(f"????-{name}.patch")
    for part, fields in zip(mail.read_text().split("\n---", 1), (HEADERS, FIELDS), strict=True):
        assert [field for field in fields if f"\n{field}" not in part] == []
    tests = [path for path in (ROOT / "patches/tests" / name).rglob("test_*.py")]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "PYTEST"))}
    environment |= {"PYTHONPATH": str(stock / "python"), "TRITON_BACKENDS_IN_TREE": "1"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run() -> int:
        options = ["-q", "--tb=native", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
        command = [sys.executable, "-m", "pytest", *options]
        copies = [shutil.copy(path, tmp_path) for path in tests]
        done = subprocess.run([*command, *copies], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode

    assert run() == 1
    git(stock, "am", "-q", "--keep-non-patch", str(mail))
    log = subprocess.run(["git", "log", "-1", "--format=%s%n%b"], cwd=stock, capture_output=True, text=True, check=True)
    subject, *body = log.stdout.strip().splitlines()
    assert subject == SUBJECTS[name] and len(subject) <= 80 and body and not re.search("Origin:|overlay", log.stdout)
    assert run() == 0
    for test in tests:
        relative = test.relative_to(ROOT / "patches/tests" / name)
        assert (stock / relative).read_bytes() == test.read_bytes()
