"""`dev`: install this checkout into .venv so that its Python files are used in place (an editable installation).

The native part is built; it is built again at the next `import triton` once its sources change. `dev --native` does
only that.
"""

from __future__ import annotations

from .. import system
from ..errors import ToolError
from ..hold import hold
from ..project import Project
from ..venv import venv_python


def run(project: Project, arguments: list[str]) -> int:
    if arguments == ["--native"]:
        _native(project)
        return 0
    if arguments:
        raise ToolError(f"dev has no argument {arguments[0]!r}, only --native")
    from ..installed import ensure_editable

    system.ensure(system.BUILD)
    ensure_editable(project)
    python = venv_python(project)
    print(
        f"{python} runs this checkout: edit backend/, then `{python} -m pytest tests/…` or `tools test --fast tests/…`"
    )
    if lacks := system.lacking(system.TEST):
        print(f"note: some tests need what is {lacks}")
    return 0


def _native(project: Project) -> None:
    """Build the native part where it is older than its sources."""
    from ..packaging import refresh
    from ..packaging.native import build_native, native_folder
    from ..packaging.plugins import load_plugin

    plugin = load_plugin(project.root)
    with hold(project):
        if not refresh.is_current(plugin.folder, native_folder(plugin, project.build)):
            build_native(plugin, project.build)
