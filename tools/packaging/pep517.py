"""The build backend that pyproject.toml names: `pip install .` and `pip wheel .`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ToolError
from ..project import ROOT, Project


def _choose(settings: dict[str, Any]) -> Callable[[Project, Path], Path]:
    """The builder for some config settings: `source=1`, `plugin-only=1` or `backends=spirv,…`; `release=1`."""
    from . import plugin_wheel, source_form, wheel

    def on(name: str) -> bool:
        return str(settings.get(name, "")).lower() in ("1", "true", "on", "yes")

    names = tuple(filter(None, str(settings.get("backends", "")).split(",")))
    if sum([on("source"), on("plugin-only"), bool(names)]) > 1:
        raise ToolError("the settings source, plugin-only and backends exclude each other")
    if on("source"):
        return source_form.build_wheel
    if on("plugin-only"):
        return plugin_wheel.build_wheel
    return lambda project, folder: wheel.build_wheel(project, folder, names)


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel into a folder; `-C source=1`, `-C plugin-only=1`, `-C backends=spirv`. Returns its file name."""
    try:
        return _choose(config_settings or {})(Project(ROOT), Path(wheel_directory)).name
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """There is no source distribution: the release form fetches upstream's wheel, the source form a submodule."""
    print("error: there is no source distribution of this project; build from a checkout of it", file=sys.stderr)
    raise SystemExit(1)
