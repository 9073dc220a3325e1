"""What a distribution says of itself: this project's facts, and the facts of other people's plugins."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..project import Project
from .plugins import Plugin


@dataclass(frozen=True)
class Facts:
    """What is known of one plugin; what its pyproject.toml does not say is empty."""

    name: str
    version: str
    summary: str
    licence: str
    dependencies: tuple[str, ...]


def is_own(project: Project, plugin: Plugin) -> bool:
    """Whether the plugin is this repository."""
    return plugin.folder.resolve() == project.root.resolve()


def facts_of(project: Project, plugin: Plugin) -> Facts:
    """This project's facts for its own plugin; the table [project] of its pyproject.toml for another's."""
    if is_own(project, plugin):
        settings = project.settings()
        name = f"triton-{plugin.name.replace('_', '-')}"
        summary = f"The {plugin.name} backend for stock triton {project.lock().version}"
        return Facts(name, str(settings["version"]), summary, "MIT", tuple(settings["dependencies"]))
    path = plugin.folder / "pyproject.toml"
    table: dict[str, object] = {}
    if path.is_file():
        try:
            table = tomllib.loads(path.read_text()).get("project", {})
        except tomllib.TOMLDecodeError as error:
            raise ToolError(f"plugin {plugin.folder}: pyproject.toml is not TOML: {error}") from None
    dependencies = table.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise ToolError(f"plugin {plugin.folder}: [project] dependencies in pyproject.toml must be a list of strings")
    words = {key: table.get(key, "") for key in ("name", "version", "description", "license")}
    text = {key: value if isinstance(value, str) else "" for key, value in words.items()}
    return Facts(text["name"], text["version"], text["description"], text["license"], tuple(dependencies))


def too_old(project: Project) -> str:
    """Why the backend of this repository does not work with the locked upstream, '' if it does."""
    version, needed = project.lock().version, str(project.settings()["needs-triton"])
    if _numbers(version) >= _numbers(needed):
        return ""
    return f"the backend needs triton {needed} or newer, and upstream.lock.toml names {version}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"[\d.]*", version).group().split(".") if part)  # type: ignore[union-attr]


def check_upstream(project: Project, plugins: list[Plugin]) -> None:
    """Refuse a wheel with this repository's backend in it on a release of upstream that is too old for it."""
    if any(is_own(project, plugin) for plugin in plugins) and (reason := too_old(project)):
        raise ToolError(f"no wheel with this backend in it can be built: {reason}; `rebase --to` moves the queue")


def release_version(project: Project, plugin: Plugin) -> str:
    """A plugin's version, which its release has."""
    version = facts_of(project, plugin).version
    if not version:
        raise ToolError(
            f"--release: plugin {plugin.folder} has no version: put one into the table [project] of a pyproject.toml"
        )
    return version


def check_release(project: Project, plugins: list[Plugin]) -> None:
    """Refuse a release of anything but the commits of its tags: its version holds no digest that tells it apart.

    This repository and each plugin's must be at the tag v<version>, with nothing in them that is not committed.
    """
    _check_tag(project.root, str(project.settings()["version"]), "")
    for plugin in plugins:
        if not is_own(project, plugin):
            _check_tag(plugin.folder, release_version(project, plugin), f"plugin {plugin.folder}: ")


def _check_tag(folder: Path, version: str, whose: str) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    if not git("rev-parse", "--show-toplevel"):
        raise ToolError(
            f"--release: {whose}{folder} is not in a git repository, so nothing tells what it is released from"
        )
    if f"v{version}" not in git("tag", "--points-at", "HEAD").split():
        raise ToolError(f"--release: {whose}the commit that is checked out has no tag v{version}")
    if changed := git("status", "--porcelain", "--untracked-files=all", "--", ".").splitlines():
        raise ToolError(f"--release: {whose}there are changes that are not committed, such as {changed[0].split()[-1]}")
