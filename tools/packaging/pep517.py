"""The build backend that pyproject.toml names: `pip install .` and `pip wheel .`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..errors import ToolError
from ..project import ROOT, Project


def _wants_source(settings: dict[str, Any] | None) -> bool:
    return str((settings or {}).get("source", "")).lower() in ("1", "true", "on", "yes")


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel into a folder; `-C source=1` takes the source form. Returns its file name."""
    from . import source_form, wheel

    build = source_form.build_wheel if _wants_source(config_settings) else wheel.build_wheel
    try:
        return build(Project(ROOT), Path(wheel_directory)).name
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """There is no source distribution: the release form fetches upstream's wheel, the source form a submodule."""
    print("error: there is no source distribution of this project; build from a checkout of it", file=sys.stderr)
    raise SystemExit(1)
