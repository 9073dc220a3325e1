"""The environment variables: what they may be, who reads them, and the pages that list them."""

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backend import settings
from backend.settings import SETTINGS, SettingError, unknown
from docs import generate_settings

ROOT = Path(__file__).resolve().parents[2]
#: Macros of C++ and options of CMake, not variables of the environment.
NOT_VARIABLES = {
    "TRITON_SPIRV_INSTANCE_FUNCTIONS",
    "TRITON_SPIRV_DEVICE_FUNCTIONS",
    "TRITON_SPIRV_IN_PLACE",
    "TRITON_SPIRV_VULKAN_INCLUDE",
    "TRITON_SPIRV_NATIVE",
    "TRITON_SPIRV_MODULE_SUFFIX",
    "TRITON_SPIRV_PYTHON_INCLUDE",
    "TRITON_SPIRV_PYTHON_LIBRARY",
    "TRITON_SPIRV_NO_EXCEPTIONS",
    "TRITON_SPIRV_NO_CPU",
    "TRITON_SPIRV_NO_VULKAN",
    "TRITON_SPIRV_HAS_CPU",
    "TRITON_SPIRV_SYSTEM_V",
    "TRITON_SPIRV_NO_FILES",
    "TRITON_SPIRV_SHARED",
}
FLAGS = [setting for setting in SETTINGS.values() if setting.parse is settings.flag]


def sources() -> list[Path]:
    """Every text file of the project that may name a variable. Tests name some that are not there."""
    folders = ("backend", "benchmarks", "docs", "examples", "overlay", "patches", "tools")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    suffixes = {".py", ".cpp", ".h", ".md", ".patch"}
    return [path for path in (*found, *ROOT.glob("*.*")) if path.suffix in suffixes]


@pytest.mark.parametrize("setting", FLAGS, ids=lambda setting: setting.name)
def test_a_flag_means_the_same_everywhere(monkeypatch: pytest.MonkeyPatch, setting: settings.Setting[bool]) -> None:
    monkeypatch.delenv(setting.name, raising=False)
    assert setting.get() is False
    for text, value in (("1", True), ("true", True), (" ON ", True), ("0", False), ("False", False), ("", False)):
        monkeypatch.setenv(setting.name, text)
        assert setting.get() is value, text
    monkeypatch.setenv(setting.name, "maybe")
    with pytest.raises(SettingError, match=f"^{setting.name} must be 0 or 1, not 'maybe'$"):
        setting.get()


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e9"])
def test_a_time_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRITON_SPIRV_TIMEOUT", text)
    with pytest.raises(SettingError, match=f"TRITON_SPIRV_TIMEOUT must be a number of seconds above 0.*, not '{text}'"):
        settings.TIMEOUT.get()
    monkeypatch.setenv("TRITON_SPIRV_TIMEOUT", "2.5")
    assert settings.TIMEOUT.get() == 2.5


def test_a_way_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_HOST_MEMORY", "telepathy")
    with pytest.raises(SettingError, match="must be zero-copy, imported or staged, not 'telepathy'"):
        settings.HOST_MEMORY.get()
    monkeypatch.setenv("TRITON_SPIRV_HOST_MEMORY", "")
    assert settings.HOST_MEMORY.get() is None


def test_a_misspelt_name_is_told_with_the_nearest() -> None:
    names = ["TRITON_SPIRV_VALIDTE", "TRITON_SPIRV_DEVICE", "TRITON_CACHE_DIR", "TRITON_SPIRV_BOUNDS_CHECK"]
    assert unknown(names) == [
        "the environment variable TRITON_SPIRV_BOUNDS_CHECK is not known and has no effect; "
        "did you mean TRITON_SPIRV_CHECK_BOUNDS?",
        "the environment variable TRITON_SPIRV_VALIDTE is not known and has no effect; "
        "did you mean TRITON_SPIRV_VALIDATE?",
    ]


def test_a_misspelt_name_is_warned_about_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(settings, "_warned", False)
    monkeypatch.setenv("TRITON_SPIRV_VALIDATION", "1")
    with caplog.at_level(logging.WARNING):
        for setting in (settings.VALIDATE, settings.DEVICE, settings.VALIDATE):
            setting.get()
    assert [record.getMessage() for record in caplog.records] == [
        "the environment variable TRITON_SPIRV_VALIDATION is not known and has no effect; "
        "did you mean TRITON_SPIRV_VALIDATE?"
    ]


def test_every_variable_that_is_named_is_in_the_table() -> None:
    named = {
        name: path
        for path in sources()
        for name in re.findall(r"\bTRITON_SPIRV_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
        if path.name != "CHANGELOG.md"
    }
    assert {name: path for name, path in named.items() if name not in SETTINGS and name not in NOT_VARIABLES} == {}


def test_only_the_settings_read_the_projects_variables() -> None:
    reads = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["']?(?:TRITON_SPIRV_|SPIRV_VARIABLE)""")
    readers = [
        str(path.relative_to(ROOT))
        for folder in ("backend", "overlay", "tools", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cpp", ".h") and reads.search(path.read_text(encoding="utf-8"))
    ]
    # The overlay asks the backend's driver class; without one it has its own look at that one variable.
    assert readers == ["overlay/python/triton/runtime/driver_selection.py"]


def test_the_pages_are_current() -> None:
    assert generate_settings.stale() == {}, "run python -m docs.generate_settings"


def test_the_settings_need_the_standard_library_alone() -> None:
    """And nothing that is slow to import: they are read whenever triton is imported."""
    script = "import sys; before = set(sys.modules); import backend.settings; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "difflib" not in loaded and not {name for name in loaded if name.startswith(("triton", "torch"))}
