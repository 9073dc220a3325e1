"""What a distribution says of itself: this project's facts, and the facts of other people's plugins."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass

from ..errors import ToolError
from ..project import Project
from .plugins import Plugin


@dataclass(frozen=True)
class Facts:
    """Of one plugin; what its pyproject.toml does not say is empty."""

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


def check_release(project: Project) -> None:
    """Refuse a release of anything but the commit of its tag: its version holds no digest that tells it apart."""
    wanted = f"v{project.settings()['version']}"

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(project.root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    if wanted not in git("tag", "--points-at", "HEAD").split():
        raise ToolError(f"--release: the commit that is checked out has no tag {wanted}")
    if changed := git("status", "--porcelain", "--untracked-files=all").splitlines():
        raise ToolError(f"--release: there are changes that are not committed, such as {changed[0].split()[-1]}")
