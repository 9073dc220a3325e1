"""Finding a kernel's function from the record of launching/kernel_records.py."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from triton.runtime.jit import JITFunction

#: Statements that bind names, and run no more than what the right-hand side calls.
_BINDING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class NotFound(Exception):
    """The function is not where it was. The message says what is missing."""


def find(place: Mapping[str, str]) -> JITFunction:
    """The function of a place. Raises NotFound; importing a user's module raises what the module raises."""
    name = place["name"]
    if "text" in place:
        if "maker" not in place:
            raise NotFound("an older release recorded the kernel's text without what made it")
        made: JITFunction = resolve_name(place["maker"])(name, place["text"])
        return made
    found: Any
    if "script" in place:
        parts = _parts_of(place["script"], name.split(".")[0])
        found, origin = parts.get(name.split(".")[0]), place["script"]
    else:
        origin = place["module"]
        if place["root"] not in sys.path:
            sys.path.append(place["root"])
        try:
            found = getattr(importlib.import_module(origin), name.split(".")[0], None)
        except ModuleNotFoundError as error:
            raise NotFound(f"there is no module {error.name}") from None
    for attribute in name.split(".")[1:]:
        found = getattr(found, attribute, None)
    while found is not None and not isinstance(found, JITFunction):
        found = getattr(found, "fn", None)  # of an autotuner
    if found is None:
        raise NotFound(f"{origin} has no kernel {name}")
    return found


@cache
def _parts_of(script: str, name: str) -> dict[str, Any]:
    """What a script binds ``name`` to, as ``__main__``, with all that it names: the script's other statements do not
    run. Raises NotFound."""
    try:
        tree = ast.parse(Path(script).read_bytes(), script)
    except (OSError, SyntaxError) as error:
        raise NotFound(f"{script} cannot be read: {error}") from None
    kept, wanted, known = set[int](), {name}, set[str]()
    bound = [_bound(statement) for statement in tree.body]
    while wanted - known:
        known |= wanted
        for number, statement in enumerate(tree.body):
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if number not in kept and (future or bound[number] & known):
                kept.add(number)
                wanted |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    tree.body = [statement for number, statement in enumerate(tree.body) if number in kept]
    folder = str(Path(script).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": script}
    exec(compile(tree, script, "exec", dont_inherit=True), names)
    return names


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds; none where it does anything else."""
    if isinstance(statement, (ast.If, ast.Try)):
        handlers = [one for handler in getattr(statement, "handlers", ()) for one in handler.body]
        inner = [*statement.body, *statement.orelse, *getattr(statement, "finalbody", ()), *handlers]
        inner = [one for one in inner if not isinstance(one, ast.Pass)]
        found = [_bound(one) for one in inner]
        return set[str]().union(*found) if all(found) else set()
    if not isinstance(statement, _BINDING):
        return set()
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
