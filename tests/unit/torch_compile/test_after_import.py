"""Actions that wait for a module's import."""

import inspect
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from triton.backends.spirv.autoload.after_import import after_import


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "imported_by_test_after_import"
    (tmp_path / f"{name}.py").write_text("value = 1\n\n\ndef function():\n    return value\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_an_action_runs_after_the_import_and_not_before(module: str) -> None:
    seen: list[int] = []
    after_import(module, lambda imported: seen.append(imported.value))
    assert seen == []
    imported = __import__(module)
    assert seen == [1]
    assert inspect.getsource(imported.function).startswith("def function")
    after_import(module, lambda imported: seen.append(2))
    assert seen == [1, 2]


def test_an_import_that_fails_raises_its_own_error(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("raise ValueError('its own')\n")
    seen: list[object] = []
    after_import(module, seen.append)
    with pytest.raises(ValueError, match="its own"):
        __import__(module)
    assert not seen


def test_an_import_that_has_begun_is_over_before_the_next(module: str, tmp_path: Path) -> None:
    seen: list[int] = []
    own = f"from {after_import.__module__} import after_import\nimport {__name__} as test\n"
    (tmp_path / f"{module}.py").write_text(f"{own}test.begin(after_import, __name__)\nimport colorsys\nvalue = 1\n")
    globals()["begin"] = lambda function, name: function(name, lambda imported: seen.append(imported.value))
    sys.modules.pop("colorsys", None)
    __import__(module)
    assert seen == []
    sys.modules.pop("colorsys")
    import colorsys

    assert seen == [1], colorsys
