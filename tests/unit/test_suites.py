"""benchmarks/suites on a library of four test files."""

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.suites import __main__ as suites
from benchmarks.suites.recorder import by_turns, data, elements, more_data, shares
from benchmarks.suites.table import LIMIT, SUITES, THEIRS, Suite

OUTCOMES = """
import os, pytest, signal, sys
from triton.runtime.errors import OutOfResources

@pytest.fixture(autouse=True)
def nothing_is_left_of_a_failure(): assert not hasattr(sys, "last_value")

def test_right(): assert os.environ["RUN_FIRST"]
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
def test_large(): bytes(3 << 30)
def test_killed(): os.kill(os.getpid(), signal.SIGKILL)
def test_after_it():
    import torch, a_library
    filled = torch.ones(1, device="cuda").exp()
    for warmup in (False, False, True): a_library.fill.run(filled, grid=(1,), warmup=warmup)
    assert filled.is_cuda and filled.item() == 7
"""
FILES = {
    "tests/test_outcomes.py": OUTCOMES,
    "a_library.py": "import triton as t\ndef refuse(): assert False\n@t.jit\ndef fill(at): t.language.store(at, 7.0)",
    "tests/test_broken.py": "import there.is_none\ndef test(): pass",
    "tests/test_other.py": "assert False",
    "tests/test_left_out.py": "def test_never(): assert False",
    "tests/test_many.py": "import pytest\n@pytest.mark.parametrize('i', range(50))\ndef test(i): pass",
}
SUITE = Suite(
    "a-library",
    "1.0",
    ("tests/test_*.py",),
    inside="python",
    text="def test",
    without={"tests nothing": "left_out"},
    known=(("of the library", THEIRS, "its own mistake"), ("out of resource", LIMIT, "its tiles")),
    first=("import os; os.environ['RUN_FIRST'] = '1'", "it asks for it"),
)


def test_what_becomes_of_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        file = tmp_path / SUITE.folder / SUITE.inside / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    options = argparse.Namespace(sources=tmp_path, output=tmp_path / "out", resume=False, values=False, within=300.0)
    vars(options).update(tests=22, seed=1, each=4.0, jobs=2, memory=1)

    def run() -> suites.Rows:
        suites.run([SUITE], options)
        return suites.results(suites.output(SUITE, options))

    rows = run()
    outcomes = {name.partition("::test_")[2]: row["outcome"] for name, row in rows.items() if "outcomes" in name}
    assert outcomes == dict(
        **dict(right="passed", after_it="passed", skipped="skipped", wrong="wrong", wrong_by_the_library="wrong"),
        **dict(error="failed", assertion_of_the_library="failed", large="failed", too_large="too large"),
        **dict(endless="not ended", killed="not ended"),
    )
    assert rows["tests/test_broken.py"]["outcome"] == "failed"
    many = [name for name in rows if "test_many" in name]
    assert len(many) == 11
    assert {row["commit"] for row in rows.values()} == {suites.commit()}
    counts = suites.counted(SUITE, rows)
    assert rows["tests/test_outcomes.py::test_after_it"]["launches"] == 2 and counts.reached == "1 of 13"
    assert not suites.report(SUITE, counts)
    shown = capsys.readouterr().out
    assert "a-library 1.0: 61 collected, 22 run: 13 passed, 6 ours, 1 theirs, 2 limits; 1 skipped" in shown
    assert "1 × theirs: its own mistake" in shown and "1 × limit: it takes more processor time" in shown
    assert "test_killed: its process ended with -9" in shown and "test_large: MemoryError" in shown
    # What has a result is not run again, and more tests can be asked for; what was under way when a run ended has none.
    under_way = {"test": many[0], "outcome": "not ended", "message": "", "process": 1}
    with suites.output(SUITE, options).open("a") as stream:
        stream.write(json.dumps(under_way) + "\n")
    options.resume, options.tests = True, 24
    more = run()
    assert [more.pop(name)["outcome"] for name in [*many, *(more.keys() - rows.keys())]] == ["passed"] * 13
    assert more == {name: row for name, row in rows.items() if name in more} | {"collected": more["collected"]}
    # With launches compared, only what passed and launches a kernel runs.
    options.values = True
    rows, launching = run(), "tests/test_outcomes.py::test_after_it"
    again = suites.counted(SUITE, rows)
    assert (again.run, again.passed, suites.report(SUITE, again)) == (1, 1, True)
    # Of two equal launches the first is compared, and operations of the device's are not.
    assert {*rows[launching]["compared"]} == {*rows[launching]["kernels"]} == again.compared == {"a_library.fill"}
    # Of a library without results the chosen tests run.
    vars(options).update(output=tmp_path / "alone", resume=False, tests=22)
    alone = run()
    assert (
        len(alone) == 24
        and alone[launching]["compared"] == rows[launching]["compared"]
        and alone["collected"]["message"] == "61"
    )


def test_what_a_test_left_is_given_back() -> None:
    with more_data(1 << 30):
        left: list[object] = [bytes(1 << 29)]
        left.append(left)
        before = data()
        del left
    assert data() <= before - (1 << 28)  # threads may take more meanwhile


def test_files_and_functions_get_equal_shares() -> None:
    assert shares({"a": 2, "b": 100, "c": 10}, 30) == {"a": 2, "c": 10, "b": 18}
    assert shares({"a": 2, "b": 3}, 30) == {"a": 2, "b": 3}
    assert {name[0] for name in by_turns(["a[1]", "a[2]", "a[3]", "a[4]", "b", "c"], ["c"])[:2]} == {"a", "b"}


def test_names_state_how_large_a_tensor_is() -> None:
    cells = {"B2-T63-H3-D64-gate_logit_normalizer0.1-torch.float16": 2 * 63 * 3 * 64, "True-dtype0-65536": 1}
    cells |= {"H4-D64-cu_seqlens[0, 15, 100]-torch.float16": 4 * 64 * 100}
    assert {cell: elements(f"tests/test_B9.py::test_T9[{cell}]") for cell in cells} == cells


def test_a_page_keeps_what_was_not_run_again(tmp_path: Path) -> None:
    before = suites.page(tmp_path)
    row = f"| {SUITES[1].package} {SUITES[1].version} |"
    assert f"{row} not run yet |" in before
    before = before.replace(f"{row} not run yet", f"{row} 7").replace("`test/test_*.py`", "`test/of_then.py`")
    rows = [("collected", "collected", "9"), ("a", "passed", "")]
    lines = [json.dumps({"test": test, "outcome": outcome, "message": said}) for test, outcome, said in rows]
    (tmp_path / f"{SUITES[0].package}.jsonl").write_text("\n".join(lines))
    after = suites.page(tmp_path, before)
    assert f"| {SUITES[0].package} {SUITES[0].version} | 9 | 1 | 1 | 0 | 0 | 0 | 0 |  |  |  |" in after
    assert "whose commit is not known: 1." in after and f"{row} 7 |" in after and "`test/of_then.py`" in after
    assert after.count("\n## ") == before.count("\n## ") == len(SUITES) + 1
    again = {"test": "a", "outcome": "passed", "message": "", "commit": "of its values", "launches": 2}
    again |= {"kernels": ["one", "two"], "compared": {"one": ["1"], "of torch's compiler": ["2"]}}
    again["not_compared"] = {"two": "it makes pointers; pass others", "one": "its memory is not known"}
    (tmp_path / f"{SUITES[0].package}.values.jsonl").write_text(json.dumps(again))
    before = after = suites.page(tmp_path)
    assert "| 9 | 1 | 1 | 0 | 0 | 0 | 0 | 1 of 1 | 1 run, 0 | 1 of 2 |" in after and "whose commit" not in after
    assert "\nNot compared: `two`, since it makes pointers.\n" in after and "not known." not in after


def test_a_page_takes_values_of_a_run_of_its_own(tmp_path: Path) -> None:
    suite, first = SUITES[0], f"| {SUITES[0].package} {SUITES[0].version} |"
    before = suites.page(tmp_path).replace(f"{first} not run yet", f"{first} 7")
    old = "Not compared: `two`, since it\nmakes pointers.\nWith values compared, limit: no\n`memory` (3)."
    table = "\n\n| tests | whose | why |\n| --- | --- | --- |\n| 1 | theirs | it fails |\n"
    before = before.replace(f"\n\n## {SUITES[1].package}", f"\n{old}{table}\n## {SUITES[1].package}")
    found = {"message": "", "kernels": ["one"], "compared": {"one": ["1"]}, "torch": "2", "launches": 3}
    rows = [dict(test="b", outcome="failed", message="ValuesDiffer"), dict(test="a", outcome="passed", **found)]
    (tmp_path / f"{suite.package}.values.jsonl").write_text("\n".join(map(json.dumps, rows)))
    after = suites.page(tmp_path, before)
    assert f"{first} 7 |{'  |' * 7} 2 run, 1 | 1 of 1 |" in after
    said = "chosen tests in a run of its own, with torch 2; 1 of 1 that passed launch a kernel."
    assert f"{said}{table}\n## {SUITES[1].package}" in after and old not in after
    assert suites.page(tmp_path, after) == after


def test_a_page_keeps_values_of_more_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, ran = suites.page(tmp_path), list(zip(SUITES[:4], (1, 2, 0, 1), strict=True))
    for suite, count in ran:
        name = f"| {suite.package} {suite.version} |"
        before = before.replace(f"{name} not run yet{' |' * 10}", f"{name}{' 5 |' * 8} 2 run, 0 |  |")
        rows = [("collected", "collected", "9"), *((str(test), "passed", "") for test in range(count))]
        text = "\n".join(json.dumps({"test": test, "outcome": what, "message": said}) for test, what, said in rows)
        for kind in ("", ".values"):
            (tmp_path / f"{suite.package}{kind}.jsonl").write_text(text)
    monkeypatch.setattr(suites, "_PAGE", tmp_path / "suites.md")
    monkeypatch.setattr("sys.argv", ["suites", "--page", "--output", str(tmp_path)])
    suites._PAGE.write_text(before)
    with pytest.raises(SystemExit) as ended:
        suites.main()
    assert str(ended.value).startswith(
        f"values of fewer tests than on the page: {SUITES[0].package} 1, not 2; {SUITES[3].package} 1, not 2. "
    )
    assert suites._PAGE.read_text() == before
    monkeypatch.setattr("sys.argv", ["suites", "--page", "--output", str(tmp_path), "--fewer-values"])
    assert suites.main() == 0
    for suite, count in ran:
        row = f"| {suite.package} {suite.version} | 9 |{f' {count} |' * 2}{' 0 |' * 4}  | {count or 2} run, 0 |  |"
        assert row in suites._PAGE.read_text()


def test_the_page_has_each_suite() -> None:
    written = suites._PAGE.read_text()
    for suite in SUITES:
        assert f"\n| {suite.package} {suite.version} |" in written and f"\n## {suite.package}\n" in written
