"""What to do about an error of the front end, added to its text.

compile() calls explain() with what make_ir() raised. What is not known here stays the error that it is.
"""
from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .errors import CompilationError

#: What the front end says of a None that a kernel uses as if it were a tensor or a number.
_SIGNS_OF_NONE = ("NoneType", "convert None", "'constexpr_type' object", "'constexpr' object")

_CONSTANT = "declare the parameter that it comes from as `name: tl.constexpr`, or compute it from such parameters"
_DTYPE = "a type is one of triton.language's, such as tl.float32 or x.dtype, and neither a string nor torch's or NumPy's"
_ELEMENT = ("memory is read with tl.load(x_ptr + i) and written with tl.store(x_ptr + i, value); the indices of a tensor "
            "are None and :, and one element of it is tl.sum(tl.where(i == k, x, 0))")
_POINTER = ("an address is a pointer and offsets in elements: pass a tensor for the argument, and write "
            "x_ptr + tl.arange(0, BLOCK)")

#: Functions of Python's own → what does the same in a kernel.
_BUILTINS = {
    "abs": "tl.abs(x)",
    "all": "tl.min(x.to(tl.int32), 0) != 0",
    "any": "tl.max(x.to(tl.int32), 0) != 0",
    "bool": "x != 0",
    "divmod": "x // y and x % y",
    "pow": "tl.extra.libdevice.pow(x, y), or tl.exp2(y * tl.log2(x)) for positive x",
    "round": "tl.extra.libdevice.rint(x)",
    "sorted": "tl.sort(x)",
    "sum": "tl.sum(x, axis=0)",
}
_STATEMENTS = {
    "Break": "a loop that ends early is `while condition:`",
    "Continue": "put what follows under the opposite `if`",
    "Lambda": "make it a function with @triton.jit",
    "ListComp": "use a tuple, or a loop over tl.static_range()",
    "Try": "kernels raise no exceptions; tl.device_assert checks a condition where debug=True",
}


def _builtin(found: re.Match[str]) -> str:
    name = found[1]
    if not hasattr(builtins, name):
        return ""
    instead = _BUILTINS.get(name)
    return f"Python's {name}() is not available in a kernel" + (f": use {instead}" if instead else "")


def _unsupported(found: re.Match[str]) -> str:
    return _STATEMENTS.get(found[1], "")


#: A sign in the message → what to do. The first that is found counts.
_ADVICE: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"(?:'str'|'torch\.dtype'|'type'|'numpy\.\S+') object has no attribute '(?:scalar|primitive_bitwidth|is_\w+|to_ir)'",
     _DTYPE),
    (r"type object 'numpy\.\w+' has no attribute", _DTYPE),
    (r"'constexpr_type' object has no attribute '(?:scalar|is_const|is_ptr)'", _POINTER),
    (r"Unsupported ptr type", _POINTER),
    (r"unsupported tensor index", _ELEMENT),
    (r"__setitem__ is not supported", "tensors do not change: tl.where(i == k, value, x) makes a new one; memory is written "
     "with tl.store(x_ptr + i, value)"),
    (r"invalid operands of type .*pointer<", "pointers can be compared, and integers added to them. An argument that is a "
     "tensor is a pointer in the kernel: read it with tl.load(), or pass a number (x.item())"),
    (r"NameError\('(\w+) is not defined'\)", _builtin),
    (r"unsupported AST node type: (\w+)", _unsupported),
    (r"only tuple comprehensions", _STATEMENTS["ListComp"]),
    (r"binary operator 'MatMult'", "use tl.dot(a, b)"),
    (r"unsupported operand type\(s\) for \*\*", "use x * x, or tl.extra.libdevice.pow(x, y)"),
    (r"Expected dtype \[.*\] but got", "convert it first, as with x.to(tl.float32)"),
    (r"(?:must be real number|float\(\) argument must be .*|int\(\) argument must be .*), not '?tensor'?",
     "functions of Python's own take numbers that are known when the kernel is compiled: use those of triton.language, "
     "such as tl.sin(x), and x.to(tl.float32) to convert"),
    (r"is not string", 'the first argument is a text, and the values follow: tl.device_print("x", x)'),
    (r"'\w+' object has no attribute 'func'", "a loop goes over range(), tl.range(), tl.static_range() or a tuple"),
    (r"list index out of range", "is there such an axis, or such an element of a tuple?"),
    (r"Mask must have boolean scalar type", "a mask is the result of a comparison, such as i < n or x != 0"),
    (r"arange's range must be a power of 2|Shape element \d+ must be a power of 2",
     "take the next one, triton.next_power_of_2(n), and leave out the rest with a mask (i < n)"),
    (r"of type tl\.constexpr|must have type `constexpr|is not a constexpr|could not be determined at compile-time", _CONSTANT),
]


def explain(source: Any, error: Exception) -> None:
    """Adds to what the front end raised for `source`: the message that led to it, the names of arguments that are not
    what the kernel uses them for, and what to do."""
    if not isinstance(error, CompilationError):
        if isinstance(error, RuntimeError) and error.args == ("error encountered during parsing", ):
            error.args = (f"{source.name}: error encountered during parsing: the message above has the line and the reason", )
        return
    texts = list(_messages(error))
    before = _arguments(source, error, texts)
    message = error.error_message or _inner_message(error)
    after = "" if before else _recursion(error) or _advice(texts[-1] if texts else "")
    lines = [text for text in (before, message, after) if text]
    if lines and (text := "\n".join(lines)) != error.error_message:
        error.error_message = text
        error.message = error._format_message()


def _advice(message: str) -> str:
    for sign, advice in _ADVICE:
        if (found := re.search(sign, message)) is not None:
            return advice if isinstance(advice, str) else advice(found)
    return ""


def _compilation_errors(error: BaseException) -> list[CompilationError]:
    """The error and those of the functions that were called, the innermost last."""
    found = []
    cause: BaseException | None = error
    while isinstance(cause, CompilationError):
        found.append(cause)
        cause = cause.__cause__
    return found


def _messages(error: BaseException) -> Iterator[str]:
    """The texts of an error and of those that led to it, the first one last."""
    cause: BaseException | None = error
    while cause is not None:
        text = cause.error_message if isinstance(cause, CompilationError) else str(cause)
        if text:
            yield text
        cause = cause.__cause__


def _function(error: CompilationError) -> str:
    found = re.search(r"^\s*def\s+(\w+)", error.src or "", re.MULTILINE)
    return found[1] if found else ""


def _inner_message(error: CompilationError) -> str:
    """The message of the innermost function where the error is in one that was called: the functions on the way to it,
    and the line in the last one that is not triton.language's own."""
    _, *called = _compilation_errors(error)
    if not called or not called[-1].error_message:
        return ""
    where = " → ".join(f"{_function(part)}()" for part in called)
    own = [part for part in called if not _is_of_language(part)]
    return f"in {where}{_line(own[-1]) if own else ''}: {called[-1].error_message}"


def _is_of_language(error: CompilationError) -> bool:
    """Whether it was in a function of triton.language that is written in Triton, such as sum()."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("triton.language")]
    named = (getattr(module, _function(error), None) for module in modules)
    return any(getattr(function, "src", None) == error.src for function in named)


def _line(error: CompilationError) -> str:
    """The line of the function in which it went wrong."""
    number, lines = getattr(error.node, "lineno", 0), (error.src or "").splitlines()
    return f", `{lines[number - 1].strip()}`" if 0 < number <= len(lines) else ""


def _recursion(error: CompilationError) -> str:
    """Of a function that calls itself: the front end looks it up before it is complete, by its mangled name."""
    errors = _compilation_errors(error)
    inner, callers = errors[-1], {_function(part) for part in errors}
    found = re.fullmatch(r"KeyError\('(?:[^']*\.)?(\w+?)__\w*'\)", inner.error_message or "")
    if found is None or not isinstance(inner.node, ast.Call) or found[1] not in callers:
        return ""
    return (f"{found[1]}() calls itself, which kernels can do only on values that are tl.constexpr: use a loop")


def _arguments(source: Any, error: CompilationError, texts: list[str]) -> str:
    """Which arguments are None and were used, or are tensors passed for constants, if the error is about that."""
    node, constants = getattr(error, "node", None), getattr(source, "constants", None)
    if node is None or not constants:
        return ""
    part = getattr(node, "iter", None) or getattr(node, "test", None) or node  # of a statement, without its body
    used = {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}
    names = source.fn.arg_names
    of = {names[path[0]]: value for path, value in constants.items() if len(path) == 1}
    if tensors := [name for name, value in of.items() if name in used and hasattr(value, "data_ptr")]:
        return (f"{_are(tensors, 'a tensor', 'tensors')} and declared tl.constexpr: pass a number, as with "
                f"{tensors[0]}.item(), or leave out tl.constexpr and read it with tl.load")
    if any(sign in text for text in texts for sign in _SIGNS_OF_NONE):
        nones = [name for name, value in of.items() if value is None]
        chosen = [name for name in nones if name in used] or nones
        if chosen:
            return (f"{_are(chosen, 'None', 'None')}: pass a tensor or a number, or use it only under "
                    f"`if {chosen[0]} is not None:`")
    return ""


def _are(names: list[str], one: str, several: str) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"argument {listed} is {one}" if len(names) == 1 else f"arguments {listed} are {several}"
