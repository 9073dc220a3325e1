"""An editable installation: the patched triton as in the wheel, with this repository's Python files where they lie.

In the place of the backend's package stands one file that continues in the checkout, and that has the native part built
again where its sources changed.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..project import Project
from . import refresh
from .plugins import Plugin

_PACKAGE = '''"""{what} of the checkout {root} (an editable installation)."""

import os as _os

__path__ = {places!r}
__file__ = {file!r}
if not _os.path.isfile(__file__):
    raise ImportError(f"{{__file__}} is gone: install triton again, with `pip install -e .` in a checkout")
{before}with open(__file__) as _source:
    exec(compile(_source.read(), __file__, "exec"))
'''

_REFRESH = """from importlib.util import module_from_spec as _module, spec_from_file_location as _spec
_refresh = _module(_spec("_triton_refresh", {script!r}))
_refresh.__spec__.loader.exec_module(_refresh)
_refresh.ensure({root!r}, {folder!r})
"""


def stubs(project: Project, plugin: Plugin, native_folder: Path) -> dict[str, str]:
    """Path in the installation → text, for all files of this repository's plugin."""
    root = str(plugin.folder)
    found: dict[str, str] = {}
    before = ""
    places = [str(plugin.folder / "backend")]
    if plugin.has_native:
        before = _REFRESH.format(script=str(Path(refresh.__file__)), root=root, folder=str(native_folder))
        places.append(str(native_folder / "stage"))
    for name, path in plugin.files().items():
        if name.startswith(f"{plugin.package}/"):
            if name == f"{plugin.package}/__init__.py":
                found[name] = _stub(name, root, path, places, before)
            continue
        top = _outer_package(name, path)
        if top is None:
            found[name] = _stub(name, root, path, [], "") if path.suffix == ".py" else path.read_text()
        elif path == top:
            found[name] = _stub(name, root, path, [str(path.parent)], "")
    return found


def _outer_package(name: str, path: Path) -> Path | None:
    """The __init__.py of the outermost package of a plugin's language/ or tools/ that a file is in."""
    depth = len(PurePosixPath(name).parts) - 4  # triton/language/extra/<package>/…/file.py
    if depth < 0:
        return None
    initial = path.parents[depth] / "__init__.py"
    return initial if initial.is_file() else None


def _stub(name: str, root: str, source: Path, places: list[str], before: str) -> str:
    text = _PACKAGE.format(what=name, root=root, places=places, file=str(source), before=before)
    return text if places else text.replace("__path__ = []\n", "")
