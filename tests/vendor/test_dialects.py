"""`rebase --report` on a folder or a wheel file: each patch, and what became of the dialects' operations."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from vendor_support import ROOT

from tools.errors import ToolError
from tools.project import Project, ReleaseWheel
from tools.verbs import rebase

NEW = """
def TT_NewOp : TT_Op<"newly_made", [Pure]> {
  let description = [{ let arguments = (ins); }];
  let arguments = (ins TT_Tensor:$src);  // one
}
"""


@pytest.fixture(scope="module")
def changed(release: tuple[ReleaseWheel, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked release as a later one may be: an operation gone, one new, an attribute with another name, and another
    line where the patch bf16-constants has its own."""
    folder = tmp_path_factory.mktemp("changed")
    with zipfile.ZipFile(release[1]) as archive:
        names = [name for name in archive.namelist() if name.endswith((".py", "Ops.td")) and name.startswith("triton/")]
        archive.extractall(folder, names)
    operations = folder / "triton/include/triton/Dialect/Triton/IR/TritonOps.td"
    text = re.sub(r"\ndef TT_CatOp.*?\n}\n", "\n", operations.read_text(), flags=re.DOTALL)
    operations.write_text(text.replace("$allow_reorder", "$allowReorder") + NEW)
    other = " " * 12 + "get_value_fn"
    for name, old, new in (
        ("__init__.py", "__version__ = '", "__version__ = '99."),
        ("language/semantic.py", f"        else:\n{other}", f"        elif dtype:\n{other}"),
    ):
        path = folder / "triton" / name
        assert path.read_text().count(old) == 1
        path.write_text(path.read_text().replace(old, new))
    return folder


def test_a_report_on_a_folder_or_a_wheel(
    changed: Path, release: tuple[ReleaseWheel, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "triton-99.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in changed.rglob("*.*"):
            archive.write(path, path.relative_to(changed))
    for place in (changed, wheel):
        assert rebase.run(Project(ROOT), ["--to", str(place), "--report"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.split() for line in lines if line.split()[-1:] == ["conflict"]] == [
            ["bf16-constants.patch", "conflict"]
        ]
        start = lines.index(f"dialects: 145 operations, 145 in {place.name}")
        assert [line for line in lines[start + 1 :] if not line.startswith("    ")] == [
            "  gone    tt.cat (known to the table of operations)",
            "  new     tt.newly_made (not in the table of operations)",
            "  changed tt.reshape (known to the table of operations)",
        ]
    assert rebase.run(Project(ROOT), ["--to", str(release[1]), "--report"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"dialects: 145 operations, 145 in {release[1].name}"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("./nowhere.whl", ["--report"], "there is no such file or folder"),
        ("./README.md", ["--report"], "the file is not a wheel of triton"),
        ("./docs", ["--report"], "the folder has neither python/triton/ nor triton/"),
        ("./docs", [], "goes with --report"),
    ],
)
def test_what_is_no_upstream(name: str, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ToolError, match=message):
        rebase.run(Project(ROOT), ["--to", name, *options])
