"""A path with ``..`` is shown without it, relative to the working folder below it."""

from pathlib import Path

import pytest
from triton.backends.spirv import cli


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compile", "./sub/../none.py:add", "-s", "*fp32"], "there is no file none.py\n"),
        (
            ["compile", "kernel.py:add", "-s", "*fp32", "-o", "./sub/../nodir/x.spv"],
            "there is no folder nodir to write",
        ),
        (["disassemble", "./sub/../none.spv"], "none.spv cannot be read"),
        (["profile", "./sub/../none.py"], "there is no file none.py\n"),
        (["warm", "./sub/../none.txt"], "error: none.txt cannot be read"),
        (["profiles", "--from", "sub/../none.json"], "triton-spirv: none.json: No such file"),
        (["inspect", "--compare", "sub/../a.html", "b.html"], "error: a.html cannot be read"),
        (["stubs", "sub/../none.tsb"], "there is no bundle none.tsb"),
    ],
)
def test_a_path_is_shown_without_dots(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    error = capsys.readouterr().err
    assert said in error and ".." not in error


def test_a_link_is_followed_before_its_parent_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.backends.spirv.runtime.files import given_path

    (tmp_path / "far/away").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    (tmp_path / "here/link").symlink_to(tmp_path / "far/away")
    monkeypatch.chdir(tmp_path / "here")
    assert given_path("link/../kernel.py") == (tmp_path / "far/kernel.py").resolve()
