"""Files of the pipeline cache."""

from pathlib import Path

import pytest
from triton.backends.spirv.runtime.files import kept_folder
from triton.backends.spirv.runtime.vulkan.pipeline_cache import pack, unpack


def test_contents_come_back() -> None:
    for data in (b"", b"driver data" * 1000):
        assert unpack(pack(data)) == data


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: b"",
        lambda file: b"something else" * 20,
        lambda file: file[:-1],
        lambda file: file[:60] + bytes([file[60] ^ 1]) + file[61:],
        lambda file: file[:20],
    ],
)
def test_damage_is_seen(damage: object) -> None:
    with pytest.raises(ValueError, match=r"not a pipeline cache|damaged"):
        unpack(damage(pack(b"driver data" * 10)))  # type: ignore[operator]


def test_it_lies_beside_tritons_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert kept_folder() == tmp_path / "spirv-pipelines"
    monkeypatch.delenv("TRITON_CACHE_DIR")
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert kept_folder() == tmp_path / ".triton" / "cache" / "spirv-pipelines"
