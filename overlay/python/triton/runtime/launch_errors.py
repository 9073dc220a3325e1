"""What is wrong with a launch, in the user's words: the grid, and the argument by its name.

JITFunction.run() asks grid_rank() about each grid, and explain_arguments() where binding the arguments failed. What they
cannot explain better stays the error that it is. What is wrong with a kernel's code: compiler/front_end_errors.py.
"""
from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from .. import knobs
from .._C.libtriton import native_specialize_impl


class UnknownKeyword(TypeError, KeyError):
    """A keyword argument of a launch that is neither the kernel's nor an option; upstream's KeyError, with a hint."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown_keyword(function: Any, name: str, options: Any) -> UnknownKeyword:
    """The error of a launch with the keyword argument `name`. `options`: those of the launch."""
    known = [parameter.name for parameter in function.params]
    close = difflib.get_close_matches(name, [*known, *options.__dict__], 1)
    hint = f"did you mean {close[0]}?" if close else f"its parameters are {', '.join(known) or 'none'}"
    return UnknownKeyword(f"kernel '{function.__name__}': Keyword argument {name} was specified but unrecognised: it is "
                          f"neither a parameter of the kernel nor an option of the backend; {hint}")


def unsupported_function(name: str, value: Any) -> RuntimeError:
    """The error of a kernel `name` that calls `value`, which is no function of Triton."""
    called = getattr(value, "__name__", None) or repr(value)
    return RuntimeError(f"Unsupported function referenced: {value}: '{name}' can call functions of triton.language and "
                        f"those with @triton.jit, and {called} is neither")


def called_without_grid(function: Any) -> RuntimeError:
    """The error of a kernel that is called as if it were a function."""
    return RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel: "
                        f"launch it with a grid, {function.__name__}[(programs,)](...)")


def shortened(call: Callable[..., Any], *args: Any) -> Any:
    """What `call` returns for `args`. An error of the user's code that it raises, and the errors that led to it, have
    none of the frames of Triton's that they came through, unless knobs.compilation.front_end_debugging asks for them."""
    from ..compiler.errors import CompilationError

    try:
        return call(*args)
    except CompilationError as error:
        if knobs.compilation.front_end_debugging:
            raise
        shown = error.with_traceback(None)
        cause: BaseException | None = error.__cause__
        while cause is not None:
            cause.__traceback__, cause = None, cause.__cause__
    raise shown


class NoSuchMeta(KeyError):
    """A name that a grid's function looks up and the launch does not have; upstream's KeyError, with a hint."""

    def __str__(self) -> str:
        return str(self.args[0])


def called_grid(function: Any, grid: Callable[[Any], Any], meta: dict[str, Any]) -> Any:
    """What the function `grid` gives for a launch with the arguments `meta`."""
    try:
        return grid(meta)
    except KeyError as error:
        name = error.args[0] if error.args else None
        if not isinstance(name, str) or name in meta:
            raise
        close = difflib.get_close_matches(name, meta, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(meta) or 'none'}"
        raise NoSuchMeta(f"kernel '{function.__name__}': the grid's function asks for meta[{name!r}], which is no parameter "
                         f"of the kernel; {hint}") from None


def grid_rank(function: Any, grid: Any) -> int:
    """The number of axes of a grid: 1 to 3, or more where those past the third have one program.

    Raises TypeError for what is no sequence, ValueError for another number of axes.
    """
    try:
        rank = len(grid)
    except TypeError:
        advice = f": write ({grid},)" if isinstance(grid, int) else ""
        raise TypeError(f"kernel '{function.__name__}': the grid must be a tuple of one to three sizes, or a function "
                        f"that returns one, not {grid!r}{advice}") from None
    if 1 <= rank <= 3:
        return rank
    if rank == 0:
        raise ValueError(f"kernel '{function.__name__}': the grid is empty; it must have one to three sizes")
    if any(size != 1 for size in list(grid)[3:]):
        raise ValueError(f"kernel '{function.__name__}': the grid {tuple(grid)} has {rank} axes, and kernels have at most "
                         "3: make one axis of two, and take it apart in the kernel with // and %")
    return rank


def explain_arguments(function: Any, backend: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises TypeError with the name of the argument that no kernel takes, or that is missing; OverflowError, as
    upstream, with that of a number past 64 bits.

    Returns where there is none, or where the argument itself raised an error.
    """
    signature = function.signature
    named = {name: value for name, value in keywords.items() if name in signature.parameters}
    try:
        bound = signature.bind(*args, **named)
    except TypeError as error:
        raise TypeError(f"kernel '{function.__name__}': {error}{_meant(function, args, keywords)}") from None
    for parameter in function.params:
        if parameter.is_constexpr or parameter.name not in bound.arguments:
            continue
        flags = parameter.is_const, not parameter.do_not_specialize, not parameter.do_not_specialize_on_alignment
        for name, value in _leaves(parameter.name, bound.arguments[parameter.name]):
            try:
                native_specialize_impl(backend, value, *flags)
            except (TypeError, KeyError, AttributeError, OverflowError, NotImplementedError):
                error = OverflowError if isinstance(value, int) else TypeError
                raise error(f"kernel '{function.__name__}': argument '{name}' {_reason(name, value, backend)}") from None
            except Exception:  # the argument's own
                return


def _meant(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """Which argument that is missing a keyword that the kernel does not have may stand for."""
    missing = [parameter.name for parameter in function.params[len(args):] if parameter.name not in keywords]
    for name in keywords.keys() - {parameter.name for parameter in function.params}:
        if close := difflib.get_close_matches(name, missing, 1):
            return f"; did you mean {close[0]} with {name}={keywords[name]!r}?"
    return ""


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from _leaves(f"{name}[{index}]", part)
    else:
        yield name, value


def _reason(name: str, value: Any, backend: Any) -> str:
    """Why `value` is not taken, and what to pass in its place."""
    kind = type(value)
    if isinstance(value, int):
        return f"is {value}: integers from -2**63 to 2**64 - 1 are taken"
    if getattr(value, "layout", None) is not None and "strided" not in str(value.layout):
        return f"is a tensor with the layout {value.layout}: pass {name}.to_dense(), or the tensors that it is made of"
    if isinstance(value, complex) or (kind.__module__ == "numpy" and kind.__name__.startswith("complex")):
        return "is a complex number, and Triton has none: pass its real and imaginary parts"
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        own = getattr(backend, "numpy_wrapper", None)  # a backend's own function that gives an array a data_ptr()
        return f"is a NumPy array: pass torch.from_numpy({name})" + (f" or {own}({name})" if own else "")
    if kind.__module__ == "numpy" and isinstance(_item(value), (bool, int, float)):
        return f"is a NumPy scalar (numpy.{kind.__name__}): pass {name}.item()"
    if hasattr(value, "data_ptr"):
        dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
        if dtype.startswith("complex"):
            return f"has elements of type {dtype}, and Triton has no complex numbers: pass torch.view_as_real({name})"
        if dtype:
            return f"has elements of type {dtype}, which Triton does not have: pass {name}.view(torch.uint8) or the like"
        return f"has data_ptr(), but no dtype (it is of type {kind.__name__}): wrap it in triton.TensorWrapper"
    if kind is str:
        return "is a string: declare the parameter as tl.constexpr"
    if kind is list:
        return f"is a list: pass torch.tensor({name}) if it is data, or tuple({name})"
    return f"is of type {kind.__name__}: a number, a tensor, a tuple of them, or an object with data_ptr() is needed"


def _item(value: Any) -> Any:
    item = getattr(value, "item", None)
    return item() if item is not None else None
