"""Guesses with which types and constants a kernel is launched.

A parameter is a pointer where it is the first term of a sum that is loaded from or stored to, in the kernel or in a
function that it calls. Its element type, and the constants, are guessed from their names.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import triton.language as tl
from triton.runtime.jit import JITFunction

#: What pointers to numbers point to, in the order in which it is tried.
ELEMENTS = ("fp16", "fp32", "bf16", "i32", "u8")

_ACCESSES = frozenset(
    "load store atomic_add atomic_max atomic_min atomic_cas atomic_xchg atomic_or atomic_and atomic_xor "
    "make_tensor_descriptor".split()
)
_INDICES = re.compile(
    r"idx|indic|index|_ids|ids_|_id$|loc|len|seq|table|cu_|start|offset|slot|map|num_|count|page|indptr|position|expert"
    r"|cum|request|req_|sorted|splits?_ptr|perm",
    re.IGNORECASE,
)
_MASKS = re.compile(r"mask|bool|is_|has_|flag|valid|use_", re.IGNORECASE)
_SCALES = re.compile(r"scale|lse|logsumexp|max|sum|rstd|mean|delta|norm|_f32", re.IGNORECASE)
_REALS = re.compile(
    r"eps|scale|alpha|beta|prob|^p$|momentum|lr|decay|factor|softcap|logit|temp|theta|limit|dropout|slope|rate",
    re.IGNORECASE,
)

#: Names of constants → the value that is tried, the first that matches.
_CONSTANTS: tuple[tuple[re.Pattern[str], Any], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (r"acc\w*dtype|compute\w*type", tl.float32),
        (r"dtype|_type$|^ty$", tl.float16),
        (
            r"^(is|has|use|do|store|save|apply|enable|even|with|return|transpose|need|causal|allow|skip|mask|reverse)_",
            False,
        ),
        (r"even|causal|bias|varlen|fp8|enable|_only", False),
        (r"group_size_m|group_m", 8),
        (r"warps", 4),
        (r"stages|split|num_|n_|top_?k|ratio", 2),
        (r"eps", 1e-6),
        (r"scale|factor|alpha|beta", 1.0),
        (r"stride", 64),
        (r"precision", "ieee"),
        (r"activation|act$", "silu"),
        (r"chunk|page|block|tile|pow2|padded|next|^b[a-z]$|^bd", 32),
        (r"^(t|h|hq|hv|b)$", 4),
        (r"dim|size|head|^[kvdnm]$|hidden|width|len|cols|rows|channels", 64),
    )
)


def unwrapped(value: Any) -> JITFunction[Any] | None:
    """The kernel in autotuners and heuristics; None for what is not a kernel."""
    for _ in range(8):
        if value is None or isinstance(value, JITFunction):
            return value
        value = getattr(value, "__dict__", {}).get("fn")
    return None


def _terms(expression: ast.expr) -> Iterator[str]:
    """The names that are added in an expression, from the left."""
    if isinstance(expression, ast.Name):
        yield expression.id
    elif isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Add, ast.Sub)):
        yield from _terms(expression.left)
        yield from _terms(expression.right)
    elif isinstance(expression, ast.IfExp):
        yield from _terms(expression.body)
    elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        if expression.func.attr == "to":
            yield from _terms(expression.func.value)
        elif expression.func.attr in ("multiple_of", "max_contiguous", "cast") and expression.args:
            yield from _terms(expression.args[0])


class _Body:
    """The source of a kernel, with what is assigned to each name."""

    def __init__(self, kernel: JITFunction[Any]) -> None:
        tree = ast.parse(textwrap.dedent(kernel.src))
        self.parameters = {parameter.name for parameter in kernel.params}
        self.nodes = list(ast.walk(tree))
        self.assigned: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target, value in _assignments(node):
                    self.assigned.setdefault(target, []).append(value)

    def base(self, expression: ast.expr, seen: frozenset[str] = frozenset()) -> str | None:
        """The parameter that is the first term of a sum, through local variables."""
        for name in _terms(expression):
            if name in self.parameters:
                return name
            if name not in seen:
                for value in self.assigned.get(name, ()):
                    found = self.base(value, seen | {name})
                    if found:
                        return found
        return None


def _assignments(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for name, value in zip(target.elts, node.value.elts, strict=False):
                if isinstance(name, ast.Name):
                    yield name.id, value


def pointers(kernel: JITFunction[Any], known: dict[JITFunction[Any], set[str]] | None = None) -> set[str]:
    """The parameters that are pointers."""
    known = {} if known is None else known
    if kernel in known:
        return known[kernel]
    known[kernel] = set()  # for functions that call themselves
    body = _Body(kernel)
    found: set[str | None] = {name for name in body.parameters if re.search(r"ptrs?$|_ptr", name, re.IGNORECASE)}
    for node in body.nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ACCESSES and node.args:
            found.add(body.base(node.args[0]))
        elif isinstance(node.func, ast.Name):
            callee = unwrapped(kernel.__globals__.get(node.func.id))
            if callee is not None:
                inner = pointers(callee, known)
                given = dict(zip((parameter.name for parameter in callee.params), node.args, strict=False))
                given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                found |= {body.base(value) for name, value in given.items() if name in inner}
    known[kernel] = {name for name in found if name}
    return known[kernel]


def _pointer(name: str, element: str) -> str:
    if _INDICES.search(name):
        return "*i32"
    if element != "fp32" and _MASKS.search(name):
        return "*i1"
    return "*fp32" if _SCALES.search(name) else f"*{element}"


def _constant(name: str) -> Any:
    return next((value for pattern, value in _CONSTANTS if pattern.search(name.lower())), 16)


def guess(kernel: JITFunction[Any], element: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The types of the parameters, and the constants, where tensors of numbers are of ``element``."""
    addresses = pointers(kernel)
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for parameter in kernel.params:
        name = parameter.name
        types[name] = "constexpr"
        if parameter.is_constexpr:
            constants[name] = parameter.default if parameter.has_default else _constant(name)
        elif name in addresses:
            types[name] = _pointer(name, element)
        elif parameter.has_default and parameter.default is None:
            constants[name] = None
        else:
            types[name] = "fp32" if _REALS.search(name) else "i32"
    return types, constants
