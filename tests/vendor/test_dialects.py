"""`rebase --report` on a folder or a wheel file: each patch, and what became of the dialects, the language and the
settings."""

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


#: Lines of the locked release → what a later one may have. The .td files are those of tt's operations and attributes.
_CHANGES = {
    "__init__.py": [("__version__ = '", "__version__ = '99.")],
    "knobs.py": [('env_bool("TRITON_DEFAULT_FP_FUSION", True)', 'env_bool("TRITON_DEFAULT_FP_FUSION", False)')],
    "language/core.py": [
        ("def cat(input, other, can_reorder=False, dim=0", "def cat(input, other, dim=0"),
        ("    if can_reorder:\n        warn_once(CAT_CAN_REORDER_WARNING)\n", ""),
        ("        return _semantic.cat(input, other, can_reorder)\n", ""),
        ("def reshape(input, *shape, can_reorder=False, ", "def reshape(input, *shape, "),
        ("    can_reorder = _unwrap_if_constexpr(can_reorder)\n    if can_reorder:\n", ""),
        ("        warn_once(RESHAPE_CAN_REORDER_WARNING)\n", ""),
        ("_semantic.reshape(input, shape, can_reorder)", "_semantic.reshape(input, shape, False)"),
    ],
    # Where the patch bf16-constants has its own line.
    "language/semantic.py": [
        (f"        else:\n{' ' * 12}get_value_fn", f"        elif dtype:\n{' ' * 12}get_value_fn")
    ],
    "include/triton/Dialect/Triton/IR/TritonOps.td": [
        ("$allow_reorder", "$allowReorder"),
        ("$isVolatile", "$is_volatile"),
    ],
    "include/triton/Dialect/Triton/IR/TritonAttrDefs.td": [
        ('"EVICT_LAST", 3, "evict_last">', '"EVICT_LAST", 3, "evict_last">, I32EnumAttrCase<"NONE", 4, "no_allocate">')
    ],
}
_OPERATIONS = "include/triton/Dialect/Triton/IR/TritonOps.td"


@pytest.fixture(scope="module")
def changed(release: tuple[ReleaseWheel, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked release as a later one may be: an operation gone, one new, attributes with other names, a new word of
    an enumeration, no fusion, no reordering, and another line where a patch has its own."""
    folder = tmp_path_factory.mktemp("changed")
    with zipfile.ZipFile(release[1]) as archive:
        names = [name for name in archive.namelist() if name.endswith((".py", ".td")) and name.startswith("triton/")]
        archive.extractall(folder, names)
    for name, changes in _CHANGES.items():
        path = folder / "triton" / name
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        if name == _OPERATIONS:
            text = re.sub(r"\ndef TT_CatOp.*?\n}\n", "\n", text, flags=re.DOTALL) + NEW
        path.write_text(text)
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
        start = lines.index(f"operations: 145 in {release[1].name}, 145 in {place.name}")
        assert [line for line in lines[start:] if not re.match("    (arguments|assemblyFormat|now: [^ev])", line)] == [
            f"operations: 145 in {release[1].name}, 145 in {place.name}",
            "  gone    tt.cat (known to the table of operations)",
            "  changed tt.load (known to the table of operations)",
            "  new     tt.newly_made (not in the table of operations)",
            "  changed tt.reshape (known to the table of operations)",
            f"enumerations: 21 in {release[1].name}, 21 in {place.name}",
            "  changed EvictionPolicy",
            "    words: evict_normal 1, evict_first 2, evict_last 3",
            "    now: evict_normal 1, evict_first 2, evict_last 3, no_allocate 4",
            f"functions of the language: 124 in {release[1].name}, 124 in {place.name}",
            "  changed tl.cat",
            "    parameters: input, other, can_reorder=False, dim=0, _semantic=None",
            "  changed tl.reshape",
            "    parameters: input, *shape, can_reorder=False, _semantic=None, _generator=None",
            f"settings: 72 in {release[1].name}, 72 in {place.name}",
            "  changed TRITON_DEFAULT_FP_FUSION",
            "    default: True",
        ]
        assert "    now: False" in lines
        assert "    now: input, other, dim=0, _semantic=None" in lines
    assert rebase.run(Project(ROOT), ["--to", str(release[1]), "--report"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"settings: 72 in {release[1].name}, 72 in {release[1].name}"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("./nowhere.whl", [], "there is no such file or folder"),
        ("./README.md", [], "the file is not a wheel of triton"),
        ("./docs", ["--report"], "the folder has neither python/triton/ nor triton/"),
        (".", [], "the folder has neither python/triton/ nor triton/"),
    ],
)
def test_what_is_no_upstream(name: str, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ToolError, match=message):
        rebase.run(Project(ROOT), ["--to", name, *options])
