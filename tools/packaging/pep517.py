"""The build backend that pyproject.toml names: `pip install .` and `pip wheel .`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ToolError
from ..project import ROOT, Project


def _choose(settings: dict[str, Any]) -> Callable[[Project, Path], Path]:
    """The builder for some config settings: `source=1`, `plugin-only=1` or `backends=spirv,…`; `release=1`,
    `strict=1`."""
    from . import plugin_wheel, source_form, wheel
    from .metadata import Kind

    def on(name: str) -> bool:
        return str(settings.get(name, "")).lower() in ("1", "true", "on", "yes")

    unknown = sorted(settings.keys() - {"source", "plugin-only", "backends", "release", "strict"})
    if unknown:
        raise ToolError(
            f"there is no setting {unknown[0]!r}: there are source, plugin-only, backends, release and strict"
        )
    names = tuple(filter(None, str(settings.get("backends", "")).split(",")))
    if sum([on("source"), on("plugin-only"), bool(names)]) > 1:
        raise ToolError("the settings source, plugin-only and backends exclude each other")
    if on("source"):
        return source_form.build_wheel
    if on("plugin-only"):
        return lambda project, folder: plugin_wheel.build_wheel(project, folder, on("release"), on("strict"))
    kind = Kind.RELEASE if on("release") else Kind.BUILD
    return lambda project, folder: wheel.build_wheel(project, folder, names, kind=kind, strict=on("strict"))


def _built(build: Callable[[Project, Path], Path], folder: str) -> str:
    """The name of what is built; an error that a person can act on is one line."""
    try:
        return build(Project(ROOT), Path(folder)).name
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel into a folder; `-C source=1`, `-C plugin-only=1`, `-C backends=spirv`. Returns its file name."""
    return _built(lambda project, folder: _choose(config_settings or {})(project, folder), wheel_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """`pip install -e .`: the patched triton, with the backend's Python files where they lie (`editable.py`)."""

    def build(project: Project, folder: Path) -> Path:
        from . import wheel
        from .metadata import Kind

        if config_settings:
            raise ToolError(f"an editable installation has no settings, such as {next(iter(config_settings))!r}")
        return wheel.build_wheel(project, folder, kind=Kind.EDITABLE)

    return _built(build, wheel_directory)


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """There is no source distribution: the release form fetches upstream's wheel, the source form a submodule."""
    print("error: there is no source distribution of this project; build from a checkout of it", file=sys.stderr)
    raise SystemExit(1)
