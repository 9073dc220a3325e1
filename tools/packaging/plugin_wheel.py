"""The plugin-only wheel: the backend and its entry point, for use with stock triton.

The package is `triton_<name>`, so that no two distributions own one folder. Beside a triton that has the same backend
inside, its import is refused: two entry points of one name would hide one another.

Outside of the package are the module that torch calls at its import, and `triton/backends/<name>.py`, by which the
package is found under the name that it has in a patched triton. A triton that has the backend inside has a folder
there, which goes before a file; where no triton is installed, that file alone makes the parts of the package importable
that need none.

Functions of the overlay that need no patch are in the package, too (_FROM_OVERLAY), and patches that mend mistakes of
stock triton (plugin_patches.py).
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path

from ..errors import ToolError
from ..hold import hold
from ..progress import note
from ..project import Project
from ..queue import overlay_files
from ..upstream import prepare
from . import sbom, windows
from .facts import Facts, check_release, check_upstream, facts_of
from .metadata import Identity, digest_part, local_suffix
from .native import build_native, native_parts
from .plugin_check import check_classes
from .plugin_patches import stock_files
from .plugins import Plugin
from .tags import platform_tag, python_tag
from .targets import Target, here
from .wheel import Content, Entry, check_plugins, write_wheel

#: File of the package → file of the overlay.
_FROM_OVERLAY = {"registration.py": "python/triton/backends/registration.py"}

_GUARD = '''

def _refuse_a_second_{name}() -> None:
    """Two entry points named {name} would hide one another: refuse to load next to a triton that has one inside."""
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec("triton")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if Path(folder, "backends", "{name}").is_dir():
            raise ImportError(
                f"{distribution} is installed with a triton that has the backend '{name}' inside ({{folder}}): "
                "uninstall one of them, `pip uninstall {distribution}` or `pip install --force-reinstall {requirement}`"
            )


_refuse_a_second_{name}()
'''

_PATCHES = """

from . import stock_patches  # noqa: E402
from .autoload.after_import import after_import  # noqa: E402

stock_patches.wait(after_import)
"""

_ALIAS = '''"""triton.backends.{name} is {package}, with or without a triton around it."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

_PREFIX = "triton.backends.{name}."


class _Alias(MetaPathFinder, Loader):
    """Gives the modules of {package} a second name: importing either name gives the same module."""

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if fullname.startswith(_PREFIX) else None

    def create_module(self, spec):
        module = import_module("{package}." + spec.name.removeprefix(_PREFIX))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Alias())
sys.modules[_PREFIX.rstrip(".")] = import_module("{package}")
'''


def identity(project: Project, plugin: Plugin, release: bool = False) -> Identity:
    """Name and version of the plugin itself, TRITON_WHEEL_NAME's where that is set, with a digest of its sources."""
    facts = facts_of(project, plugin)
    name = os.environ.get("TRITON_WHEEL_NAME") or facts.name
    if not name or not facts.version:
        raise ToolError(
            f"plugin {plugin.folder}: a separate wheel needs a name and a version: put them into the table [project] "
            "of a pyproject.toml there"
        )
    suffix = local_suffix("", "" if release else digest_part(project, [plugin]))
    return Identity(name, f"{facts.version}+{suffix}" if suffix else facts.version)


def _metadata(who: Identity, plugin: Plugin, facts: Facts, requirement: str) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {who.name}",
        f"Version: {who.version}",
        *([f"Summary: {facts.summary}"] if facts.summary else []),
        *([f"License-Expression: {facts.licence}"] if facts.licence else []),
        *(f"License-File: {path.name}" for path in plugin.licences),
        # Arbitrary equality: `==` would take a triton with a local version, such as one with this backend inside.
        f"Requires-Dist: {requirement}",
        *(f"Requires-Dist: {dependency}" for dependency in facts.dependencies),
    ]
    return "".join(f"{line}\n" for line in lines)


def package_files(
    project: Project, plugin: Plugin, distribution: str, native: dict[str, Path]
) -> tuple[dict[str, Entry], list[str]]:
    """Path in the wheel of that name → file: the package, the torch module, the usual name; and what has no place."""
    lock, package = project.lock(), f"triton_{plugin.name}"
    entries: dict[str, Entry] = {}
    left_out: list[str] = []
    for name, path in {**plugin.files(), **native}.items():
        inside = name.removeprefix(f"{plugin.package}/")
        if name in plugin.outside_files():
            entries[name] = Entry(path, False)
        elif inside == name:
            left_out.append(name)
        else:
            entries[f"{package}/{inside}"] = Entry(path, os.access(path, os.X_OK))
    overlay = overlay_files(project)
    for name, file in _FROM_OVERLAY.items():
        if file in overlay:  # of a project that has it
            entries.setdefault(f"{package}/{name}", Entry(overlay[file], False))
    initial = entries.get(f"{package}/__init__.py")
    text = initial.source.read_text() if initial else ""
    patches = stock_files(project) if f"{package}/stock_patches.py" in entries else {}
    entries |= {f"{package}/{name}": Entry(plugin.folder, False, data=data) for name, data in patches.items()}
    guard = _GUARD.format(name=plugin.name, distribution=distribution, requirement=f"{lock.name}=={lock.version}")
    if patches:
        guard += _PATCHES
    entries[f"{package}/__init__.py"] = Entry(plugin.folder, False, data=(text + guard).lstrip("\n").encode())
    alias = _ALIAS.format(name=plugin.name, package=package)
    entries[f"triton/backends/{plugin.name}.py"] = Entry(plugin.folder, False, data=alias.encode())
    return entries, left_out


def collect(project: Project, release: bool = False, strict: bool = False, target: Target | None = None) -> Content:
    """Work out the wheel's content. ``target``: None for the running interpreter, or its counterpart on Windows."""
    for_windows = target is not None and _is_windows(target)
    plugins = check_plugins(project)
    if len(plugins) != 1:
        raise ToolError(f"a plugin-only wheel holds one plugin; TRITON_PLUGIN_DIRS names {len(plugins)}")
    (plugin,) = plugins
    check_upstream(project, plugins)
    who, lock, facts = identity(project, plugin, release), project.lock(), facts_of(project, plugin)
    package = f"triton_{plugin.name}"
    prepare(project)
    native = build_native(plugin, project.build, windows.MACHINE if for_windows else "")
    check_classes(project, plugin, {} if for_windows else native, strict)
    entries, left_out = package_files(project, plugin, who.name, native)
    if left_out:
        note(f"left out, as they would lie in triton's own folder: {', '.join(left_out)}")
    requirement = windows.TRITON if for_windows else f"{lock.name}==={lock.version}"
    tags = ("py3", "none", "any")
    if native:
        base = f"manylinux_2_28_{platform.machine()}"
        tags = (*python_tag(), windows.MACHINE if for_windows else platform_tag(base, list(native.values())))
    wheel = ["Wheel-Version: 1.0", "Generator: triton-spirv tools", f"Root-Is-Purelib: {'false' if native else 'true'}"]
    parts = [*native_parts(native), *(sbom.requirement_part(one) for one in (requirement, *facts.dependencies))]
    points = f"[triton.backends]\n{plugin.name} = {package}\n"
    if f"{package}/cli.py" in entries:
        points += f"\n[console_scripts]\ntriton-{plugin.name} = {package}.cli:main\n"
    for group, point in plugin.entry_points.items():
        points += f"\n[{group}]\n{plugin.name} = {point}\n"
    dist_info = {
        "METADATA": _metadata(who, plugin, facts, requirement).encode(),
        "WHEEL": "".join(f"{line}\n" for line in [*wheel, f"Tag: {'-'.join(tags)}"]).encode(),
        "entry_points.txt": points.encode(),
        sbom.NAME: sbom.bill(who.name, who.version, None, parts),
    }
    dist_info |= {f"licenses/{path.name}": path.read_bytes() for path in plugin.licences}
    return Content(who, tags, dict(sorted(entries.items())), dist_info)


def _is_windows(target: Target) -> bool:
    """Raises ToolError for a target that is neither this interpreter nor its counterpart on Windows."""
    if target == here():
        return False
    if target != replace(here(), arch=windows.MACHINE):
        raise ToolError(
            f"--plugin-only builds for {here().name} and {replace(here(), arch=windows.MACHINE).name} with this "
            f"Python, not for {target.name}"
        )
    return True


def build_wheel(
    project: Project,
    folder: Path | None = None,
    release: bool = False,
    strict: bool = False,
    target: Target | None = None,
) -> Path:
    """`setup.py bdist_wheel --plugin-only`."""
    if release:
        check_release(project, check_plugins(project))
    with hold(project):
        wheel = write_wheel(collect(project, release, strict, target), folder or project.dist)
    note(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB")
    return wheel
