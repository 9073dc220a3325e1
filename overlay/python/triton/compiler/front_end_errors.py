"""What to do about an error of the front end, added to its text.

compile() calls explain() with what make_ir() raised. What is not known here stays the error that it is.
"""
from __future__ import annotations

import ast
import builtins
import difflib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .errors import CompilationError

#: What the front end says of a None that a kernel uses as if it were a tensor or a number.
_SIGNS_OF_NONE = ("NoneType", "convert None", "'constexpr_type' object", "'constexpr' object")

#: The same of an argument that is 1, a constant of the kernel.
_SIGNS_OF_ONE = ("'int' object has no attribute", "'constexpr_type' object", "'constexpr' object")

_CONSTANT = "declare the parameter that it comes from as `name: tl.constexpr`, or compute it from such parameters"
_DTYPE = "a type is one of triton.language's, such as tl.float32 or x.dtype, and neither a string nor torch's or NumPy's"
_ELEMENT = ("memory is read with tl.load(x_ptr + i) and written with tl.store(x_ptr + i, value); the indices of a tensor "
            "are None and :, and one element of it is tl.sum(tl.where(i == k, x, 0))")
_POINTER = ("an address is a pointer and offsets in elements: pass a tensor for the argument, and write "
            "x_ptr + tl.arange(0, BLOCK)")
_DESCRIPTOR = ("write desc = tl.make_tensor_descriptor(x_ptr, shape, strides, block_shape), whose last stride is 1, and "
               "desc.load([i, j]) or desc.store([i, j], value), whose offsets take the place of tl.advance()")

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
    "Match": "use `if` and `elif`",
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


def _of_language(found: re.Match[str]) -> str:
    """Of a name that triton.language does not have."""
    import triton.language as tl
    from triton.language.extra import libdevice

    if hasattr(libdevice, found[1]):
        return f"use libdevice.{found[1]}(x), with `from triton.language.extra import libdevice`"
    close = difflib.get_close_matches(found[1], [name for name in vars(tl) if not name.startswith("_")], 1)
    return f"did you mean tl.{close[0]}?" if close else ""


#: Types as messages write them → as kernels do.
_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e5": "float8e5",
          "fp8e4nv": "float8e4nv", "fp8e4b8": "float8e4b8", "fp8e4b15": "float8e4b15", "fp8e5b16": "float8e5b16"}


def _type(name: str) -> str:
    return f"tl.{_TYPES.get(name, name)}"


def _carried(found: re.Match[str]) -> str:
    """Of a variable whose type changes in a loop; types are `fp32`, or `<['16', '4'], fp32>` of tensors."""
    variable, before, after = found[1], found[2], found[3]
    shape, element = re.findall(r"'(\d+)'", after), after.strip("<>").split()[-1]
    zeros = f"tl.zeros([{', '.join(shape)}], {_type(element)})" if shape else f"tl.full((), 0, {_type(element)})"
    advice = f"start with what the loop gives it, as with {variable} = {zeros}"
    if re.findall(r"'(\d+)'", before) == shape:
        advice += f", or end the loop with {variable} = {variable}.to({_type(before.strip('<>').split()[-1])})"
    return advice


def _by_way_of_float(found: re.Match[str]) -> str:
    """Of a cast between an integer and a float8, which `found[1]` is cast to."""
    return f"convert it by way of float32, as with x.to(tl.float32).to({_type(found[1])})"


#: A sign in the message → what to do. The first that is found counts.
_ADVICE: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"(?:'str'|'torch\.dtype'|'type'|'numpy\.\S+') object has no attribute '(?:scalar|primitive_bitwidth|is_\w+|to_ir)'",
     _DTYPE),
    (r"type object 'numpy\.\w+' has no attribute", _DTYPE),
    (r"'constexpr_type' object has no attribute '(?:scalar|is_const|is_ptr)'", _POINTER),
    (r"Unsupported ptr type", _POINTER),
    (r"cannot cast u?int\d+\S* to .*\b(fp8\w+)", _by_way_of_float),
    (r"cannot cast fp8\S* to .*\b(u?int\d+)", _by_way_of_float),
    (r"cannot cast pointer<", "an argument that is a tensor is a pointer in the kernel: read it with tl.load(x_ptr + i)"),
    (r"cannot cast \S+ to pointer<", "an address is an integer: x.to(tl.int64).to(tl.pointer_type(tl.float32))"),
    (r"Cannot bitcast data-type of size", "only types of one size have the same bits: leave out bitcast=True to convert the "
     "value"),
    (r"'(?:int|float|bool)' object has no attribute '\w+'", "a number that is known when the kernel is compiled is Python's "
     "own: tl.cast(x, tl.int64) makes a tensor of it"),
    (r"unsupported tensor index", _ELEMENT),
    (r"__setitem__ is not supported", "tensors do not change: tl.where(i == k, value, x) makes a new one; memory is written "
     "with tl.store(x_ptr + i, value)"),
    (r"invalid operands of type .*pointer<", "pointers can be compared, and integers added to them. An argument that is a "
     "tensor is a pointer in the kernel: read it with tl.load(), or pass a number (x.item())"),
    (r"NameError\('(\w+) is not defined'\)", _builtin),
    (r"Block pointers have been removed|module 'triton\.language' has no attribute 'advance'", _DESCRIPTOR),
    (r"module 'triton\.language' has no attribute '(\w+)'", _of_language),
    (r"Both operands must be same dtype\. Got (\S+) and (\S+)",
     lambda found: f"convert one of them, as with tl.dot(a, b.to({_type(found[1])}))"),
    (r"Loop-carried variable (\w+) has initial type (.+) but is re-assigned to (.+) in loop", _carried),
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
    (r"Boolean value of Tensor with more than one value", "`if` takes one value: choose for each element with "
     "tl.where(condition, a, b), or make one value of the condition, as with tl.max(condition.to(tl.int32), 0) != 0"),
    (r"'tuple' object has no attribute '?append", "lists do not change in a kernel: write parts = parts + (x,)"),
    (r"invalid operands of type \S*\bb?float\w* and|invalid operands of type \S+ and \S*\bb?float",
     "&, |, ^ and shifts take integers and conditions: compare first, as with (x > 0) & (y > 0), or take the bits, "
     "x.to(tl.int32, bitcast=True)"),
    (r"Unsupported (?:lhs|rhs) dtype u?int(?:16|32|64)", "convert the operands: a.to(tl.int8) if the values fit, or "
     "a.to(tl.float32)"),
    (r"Cannot make_shape_compatible: incompatible dimensions", "sizes must be equal or 1: x[:, None] is a column and "
     "x[None, :] a row"),
    (r"Cannot evaluate f-string", 'values follow the text: tl.device_print("x is", x)'),
    (r"exceeds triton maximum tensor numel", "use smaller blocks, and more programs or a loop for the rest"),
    (r"list index out of range", "is there such an axis, or such an element of a tuple?"),
    (r"Mask must have boolean scalar type", "a mask is the result of a comparison, such as i < n or x != 0"),
    (r"arange's range must be a power of 2|Shape element \d+ must be a power of 2",
     "take the next one, triton.next_power_of_2(n), and leave out the rest with a mask (i < n)"),
    (r"of type tl\.constexpr|must have type `constexpr|is not a constexpr|could not be determined at compile-time", _CONSTANT),
]


def explain(source: Any, error: Exception) -> None:
    """Has what the front end raised for `source` say in its first line where it is and what is wrong: the message that
    led to it, the names of arguments that are not what the kernel uses them for, what to do. The user's line follows,
    then the calls that led there, each with upstream's own words for the place (`at 2:4:`). `__cause__` stays upstream's
    error, with its words."""
    if not isinstance(error, CompilationError):
        if isinstance(error, RuntimeError) and error.args == ("error encountered during parsing", ):
            error.args = (f"{source.name}: error encountered during parsing: the message above has the line and the reason", )
        return
    texts = list(_messages(error))
    before = _arguments(source, error, texts)
    message = _plain(error.error_message) if error.error_message else _inner_message(error)
    after = "" if before else _recursion(error) or _advice(texts[-1] if texts else "")
    if text := "; ".join(part.rstrip(".") for part in (before, message, after) if part):
        error.error_message = text
        found = [(part, place) for part in _compilation_errors(error) if (place := _place(part)) is not None]
        places = [place for part, place in found if not _is_of_language(part)] or [place for _, place in found]
        error.message = "\n".join(_said(places, text)) if places else error._format_message()


@dataclass(frozen=True)
class _Place:
    """Where an error of the front end is: the file's line of that number, which is `text`, its column, and its number
    in the function's source."""

    file: str
    line: int
    column: int
    text: str
    function: str
    line_of_function: int


def _place(error: CompilationError) -> _Place | None:
    """Where an error is, as the generator knows it that raised it."""
    number, lines = getattr(error.node, "lineno", 0), (error.src or "").splitlines()
    traceback, generator = error.__traceback__, None
    while traceback is not None:
        found = traceback.tb_frame.f_locals.get("self")
        if getattr(getattr(found, "jit_fn", None), "src", None) == error.src:
            generator = found
        traceback = traceback.tb_next
    if generator is None or not generator.file_name or not 0 < number <= len(lines):
        return None
    column = getattr(error.node, "col_offset", 0)
    function = _function(error)
    return _Place(generator.file_name, generator.begin_line + number, column, lines[number - 1], function, number)


def _said(places: list[_Place], text: str) -> Iterator[str]:
    """`text` at the last of `places`, the line there, and the lines of the calls that led to it. Upstream's error has
    `at LINE:COLUMN:`, counted from the function's start, which programs look for."""
    here = places[-1]
    yield f"{here.file}:{here.line}: {text}"
    start = len(here.text) - len(here.text.lstrip())
    yield f"    {here.text.strip()}"
    yield " " * (4 + max(0, here.column - start)) + "^"
    yield f"{_at(here)} in {here.function}()"
    for place in reversed(places[:-1]):
        yield f"{_at(place)} called from {place.function}(), {place.file}:{place.line}: {place.text.strip()}"


def _at(place: _Place) -> str:
    return f"at {place.line_of_function}:{place.column}:"


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
    """The message of the innermost function where the error is in one that was called, with the functions of
    triton.language's own on the way to it."""
    _, *called = _compilation_errors(error)
    if not called or not called[-1].error_message:
        return ""
    where = " → ".join(f"{_function(part)}()" for part in called if _is_of_language(part))
    return (f"in {where}: " if where else "") + _plain(called[-1].error_message)


def _is_of_language(error: CompilationError) -> bool:
    """Whether it was in a function of triton.language that is written in Triton, such as sum()."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("triton.language")]
    named = (getattr(module, _function(error), None) for module in modules)
    return any(getattr(function, "src", None) == error.src for function in named)


def _plain(message: str) -> str:
    """What the repr() of an error says, without its kind; another message as it is."""
    found = re.fullmatch(r"(\w+)\(([\"'].*[\"'])\)", message, re.DOTALL)
    if found is None or not isinstance(getattr(builtins, found[1], None), type) or found[1] == "KeyError":
        return message
    try:
        return str(ast.literal_eval(found[2]))
    except (SyntaxError, ValueError):
        return message


def _recursion(error: CompilationError) -> str:
    """Of a function that calls itself: the front end looks it up before it is complete, by its mangled name."""
    errors = _compilation_errors(error)
    inner, callers = errors[-1], {_function(part) for part in errors}
    found = re.fullmatch(r"KeyError\('(?:[^']*\.)?(\w+?)__\w*'\)", inner.error_message or "")
    if found is None or not isinstance(inner.node, ast.Call) or found[1] not in callers:
        return ""
    return (f"{found[1]}() calls itself, which kernels can do only on values that are tl.constexpr: use a loop")


def _arguments(source: Any, error: CompilationError, texts: list[str]) -> str:
    """Which arguments are None or 1 and were used as tensors, or are tensors passed for constants, if the error is about
    that."""
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
    declared = {parameter.name for parameter in source.fn.params if parameter.is_constexpr}
    ones = [name for name, value in of.items() if type(value) is int and value == 1 and name in used - declared]
    if ones and any(sign in text for text in texts for sign in _SIGNS_OF_ONE):
        return (f"{_are(ones, '1', '1')}, and kernels are compiled anew for 1 as a constant: write "
                f"tl.cast({ones[0]}, tl.int64), or @triton.jit(do_not_specialize=[\"{ones[0]}\"])")
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
