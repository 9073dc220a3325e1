"""Patches that the plugin brings along for stock Triton, as the functions that they change.

The package has a folder `stock/` with the shape of triton's: a file there holds the functions of its namesake
that a patch changes, as the patch leaves them, and modules of the overlay lie there whole. The folder's own module has
a row for each function, with the digest of the source that it replaces. `backend/stock_patches.py` puts them in place.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..errors import ToolError
from ..project import Project
from ..queue import Patch, load_series, overlay_files, uses_module
from ..repository import UPSTREAM_REF, Repository

#: Mistakes of upstream that whole functions mend: wrong values and failures of kernels. binary-stages changes a
#: function that damaged-metadata changes, too, and those of the interpreter have nothing to do with this backend.
PATCHES = (
    "whole-loads damaged-metadata warmup load-masks bf16-constants equal-constants untimed-configurations cache-folder "
    "unsigned-loops loop-carries"
).split()

_TREE = "python/triton/"
_HEAD = '''"""What the plugin changes of stock Triton {version}: (module, name, patch, lines and sha256 of the source
that is replaced, None for what the patch adds)."""

VERSION = "{version}"
ROWS: list[tuple[str, str, str, int, str | None]] = [
{rows}]
#: Modules that the functions import.
MODULES: list[str] = {modules}
'''


@dataclass
class _Parts:
    """A module of upstream, taken apart."""

    functions: dict[str, str]
    """Qualified name → its lines, decorators included."""
    fields: dict[str, str]
    """Qualified name of an assignment in a class → its lines."""
    imports: dict[str, str]
    """Import statements at the top."""
    rest: list[str]
    """All other statements outside of functions, normalised."""


def _take_apart(text: str) -> _Parts:
    lines = text.splitlines(keepends=True)
    parts = _Parts({}, {}, {}, [])

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(one.lineno for one in decorators)])
            source = "".join(lines[first - 1 : node.end_lineno])
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # The last of a name is what the module has: the others are overloads.
                parts.functions[prefix + node.name] = source
            elif isinstance(node, ast.ClassDef):
                walk(node.body, f"{prefix}{node.name}.")
            elif prefix and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                parts.fields[prefix + node.targets[0].id] = source
            elif not prefix and isinstance(node, (ast.Import, ast.ImportFrom)):
                parts.imports[ast.unparse(node)] = source
            else:
                parts.rest.append(prefix + ast.unparse(node))

    walk(ast.parse(text).body, "")
    return parts


def _changed(name: str, old: _Parts, new: _Parts) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Functions, fields and imports of the new one that the old one has otherwise, or not.

    Raises ToolError for what a running module cannot be given: anything that the plugin would have to run or remove.
    """
    removed = (old.functions.keys() | old.fields.keys()) - new.functions.keys() - new.fields.keys()
    if removed or old.rest != new.rest:
        raise ToolError(f"patch {name} changes more than functions: the plugin for stock Triton cannot have it")
    functions = {key: text for key, text in new.functions.items() if old.functions.get(key) != text}
    for key, text in functions.items():
        if key.count(".") > 1 or "super()" in text or "__class__" in text:
            raise ToolError(f"patch {name} changes {key}, which names its class: the plugin cannot replace it")
    fields = {key: text for key, text in new.fields.items() if key not in old.fields}
    if any(old.fields[key] != new.fields[key] for key in old.fields):
        raise ToolError(f"patch {name} changes a field of a class: the plugin cannot tell whether it fits")
    return functions, fields, [one for one in new.imports if one not in old.imports]


def _module(texts: dict[str, str], imports: list[str]) -> str:
    """A file with these functions and fields, each class with what is in it."""
    lines = [*imports, ""]
    classes: dict[str, list[str]] = {}
    for name, text in texts.items():
        owner, _, _ = name.rpartition(".")
        classes.setdefault(owner, []).append(text.rstrip("\n") + "\n")
    lines += classes.pop("", [])
    for owner, bodies in classes.items():
        lines += [f"class {owner}:", *bodies]
    return "\n".join(lines) + "\n"


def stock_files(project: Project) -> dict[str, bytes]:
    """Path in the plugin's package → content, none where the project has no such patch. The tree must be laid out."""
    chosen = [patch for patch in load_series(project) if patch.name.removesuffix(".patch") in PATCHES]
    if not chosen:
        return {}
    texts: dict[str, dict[str, str]] = {}
    imports: dict[str, list[str]] = {}
    rows: dict[tuple[str, str], str] = {}
    with Repository(project) as repository:
        commits = repository.build_queue(UPSTREAM_REF, chosen, {})
        for patch, before, after in zip(chosen, commits, commits[1:], strict=False):
            for path in patch.paths():
                name, module = patch.name.removesuffix(".patch"), path.removeprefix(_TREE)
                stock = _take_apart(repository.text_at(UPSTREAM_REF, path))
                old, new = (_take_apart(repository.text_at(commit, path)) for commit in (before, after))
                functions, fields, added = _changed(name, old, new)
                for key, text in (functions | fields).items():
                    if (module, key) in rows:
                        raise ToolError(f"two patches change {key} of {module}: the plugin can have one of them")
                    source = (stock.functions | stock.fields).get(key)
                    rows[module, key] = f"    {_row(module, key, name, source)!r},\n"
                    texts.setdefault(module, {})[key] = text
                future = [one for one in new.imports if one.startswith("from __future__")]
                imports.setdefault(module, future).extend(added)
    found = {f"stock/{module}": _module(text, imports[module]).encode() for module, text in texts.items()}
    modules = _overlay_modules(project, chosen)
    found |= {f"stock/{path}": data for path, data in modules.items()}
    head = _HEAD.format(
        version=project.lock().version, rows="".join(rows.values()), modules=[_dotted(path) for path in sorted(modules)]
    )
    return found | {"stock/__init__.py": head.encode()}


def _row(module: str, function: str, patch: str, source: str | None) -> tuple[str, str, str, int, str | None]:
    digest = None if source is None else hashlib.sha256(source.encode()).hexdigest()
    return _dotted(module), function, patch, (source or "").count("\n"), digest


def _dotted(path: str) -> str:
    return ".".join(PurePosixPath(path).with_suffix("").parts)


def _overlay_modules(project: Project, patches: list[Patch]) -> dict[str, bytes]:
    """The overlay's modules that these patches import, by their paths in triton."""
    text = "".join(patch.diff for patch in patches)
    files = {path: file for path, file in overlay_files(project).items() if uses_module(text, path)}
    return {path.removeprefix(_TREE): file.read_bytes() for path, file in files.items()}
