"""benchmarks/library_tests on a library of three test files."""

from __future__ import annotations

import argparse
import io
import tarfile
from pathlib import Path

import pytest

from benchmarks.library_tests import __main__ as library_tests
from benchmarks.library_tests.suites import Suite

OUTCOMES = """
import pytest
from triton.runtime.errors import OutOfResources

def test_right(): pass
def test_skipped(): pytest.skip("no reason")
def test_wrong(): assert 1 == 2
def test_wrong_by_the_library(): raise AssertionError("of the library")
def test_error(): raise KeyError("name")
def test_assertion_of_the_library():
    from a_library import refuse
    refuse()
def test_too_large():
    try:
        raise OutOfResources(9, 3, "shared memory")
    except OutOfResources as error:
        raise ValueError("while tuning") from error
def test_endless():
    while True: pass
def test_after_it(): assert "cpu" in __doc__
"""
FILES = {
    "tests/test_outcomes.py": '"""device=\'cuda\'"""' + OUTCOMES,
    "a_library.py": "def refuse(): assert False",
    "tests/test_broken.py": "import there.is_none",
    "tests/test_left_out.py": "def test_never(): assert False",
    "tests/test_many.py": "import pytest\n@pytest.mark.parametrize('i', range(50))\ndef test(i): pass",
}
SUITE = Suite(
    "a-library",
    "1.0",
    "tests/test_*.py",
    ("left_out",),
    (("'cuda'", "'cpu'"),),
    (("of the library", "its own mistake"),),
)


def test_what_becomes_of_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tarfile.open(tmp_path / "a_library-1.0.tar.gz", "w:gz") as archive:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"a_library-1.0/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    options = argparse.Namespace(output=tmp_path / "out.jsonl", sample=9, seed=1, each=2.0, resume=False)
    root = library_tests.unpacked(SUITE, tmp_path, tmp_path)
    assert root is not None
    rows = library_tests.run(SUITE, root, options)
    outcomes = {name.partition("::test_")[2]: row["outcome"] for name, row in rows.items() if "outcomes" in name}
    assert outcomes == {
        "right": "passed",
        "skipped": "skipped",
        "wrong": "wrong",
        "wrong_by_the_library": "wrong",
        "error": "failed",
        "assertion_of_the_library": "failed",
        "too_large": "too large",
        "endless": "not ended",
        "after_it": "passed",
    }
    assert rows["tests/test_broken.py"]["outcome"] == "failed"
    many = [name for name in rows if "test_many" in name]
    assert len(many) == 9
    assert not library_tests.report(SUITE, rows)
    shown = capsys.readouterr().out
    assert (
        "a-library 1.0: 18 run: 11 passed, 1 known, 1 wrong, 0 refused, 1 too large, 3 failed, 1 not ended, 1 skipped"
        in shown
    )
    assert "1 × its own mistake" in shown and "out of resource: shared memory" in shown
    # What is known is not run again; what was wrong with a reason is no failure.
    options.resume = True
    assert [name for name in library_tests.run(SUITE, root, options) if "test_many" in name] == many
    del rows[next(name for name in rows if name.endswith("test_wrong"))]
    assert library_tests.report(SUITE, rows)
