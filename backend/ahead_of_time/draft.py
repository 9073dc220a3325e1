"""A draft of a signature for a kernel, from its source: which parameters are pointers, and which are constants."""

from __future__ import annotations

import ast
from typing import Any

from .widening import HINT

#: What a draft assumes of a pointer, of another parameter, and of a constant without a default.
_POINTER, _NUMBER, _CONSTANT = f"*fp32:{HINT}", "i32", "64"

#: Functions of triton.language whose first argument is an address.
_ACCESSES = ("load", "store", "make_block_ptr", "make_tensor_descriptor")


def draft(kernel: Any) -> str:
    """A signature for a JITFunction as text. Pointers are taken for ``*fp32:16``, other parameters for ``i32``, and
    constants without a default for 64: a draft to correct."""
    pointers = _pointers(ast.parse(kernel.src))
    entries = []
    for parameter in kernel.params:
        if parameter.is_constexpr:
            value = repr(parameter.default) if parameter.has_default else _CONSTANT
            entries.append(f"{parameter.name}={value}")
        else:
            entries.append(f"{parameter.name}={_POINTER if parameter.name in pointers else _NUMBER}")
    return ", ".join(entries)


def _pointers(tree: ast.AST) -> set[str]:
    """The names that addresses begin with, through assignments: of ``p`` in ``q = p + i; tl.load(q + j)``."""
    assigned: dict[str, list[ast.expr]] = {}
    found: set[str] = set()
    pending: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _ACCESSES or name.startswith("atomic_"):
                pending.append(node.args[0])
    while pending:
        address = pending.pop()
        while isinstance(address, ast.BinOp):
            address = address.left
        if isinstance(address, ast.Name) and address.id not in found:
            found.add(address.id)
            pending += assigned.get(address.id, [])
    return found
