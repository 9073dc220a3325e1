"""What the interpreter leaves to the backends: their own kernels, and arrays that are not torch's.

``TRITON_INTERPRET=1`` is for the kernels of a program. Those of a backend, such as its operations of torch, are
compiled, and so are the functions of ``triton.language`` that they call, which interpreted kernels call as well.

An array of a driver has a method ``interpreted()``, which gives what stands for it in an interpreted launch: it has what
the interpreter asks of a tensor of torch, ``untyped_storage()``, ``new_empty()`` and the others.
"""
from __future__ import annotations

from types import MethodType
from typing import Any

from .jit import JITFunction
from .._utils import _tuple_create


def function_class(fn: Any) -> type:
    """What ``@triton.jit`` makes of a function of Python: a compiled function, an interpreted one, or both."""
    from .interpreter import InterpretedFunction

    module = f"{fn.__module__}."
    if module.startswith("triton.backends."):
        return JITFunction
    return LanguageFunction if module.startswith("triton.") else InterpretedFunction


class LanguageFunction(JITFunction):
    """A function for compiled kernels; interpreted ones call it."""

    def __init__(self, fn: Any, **options: Any) -> None:
        from .interpreter import InterpretedFunction

        super().__init__(fn, **options)
        self._interpreted = InterpretedFunction(fn, **options)
        self.__signature__ = self.signature  # a class with __get__ passes for a builtin

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._interpreted(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function as a method of ``tl.tensor``: the compiler binds it itself."""
        from .interpreter import TensorHandle

        return MethodType(self, instance) if isinstance(getattr(instance, "handle", None), TensorHandle) else self


def interpreted(argument: Any) -> Any:
    """What stands for an argument of an interpreted launch; most arguments stay what they are."""
    # Imported while the interpreter has changed triton.language, it would keep functions of the interpreter.
    import triton.compiler.code_generator  # noqa: F401
    if isinstance(argument, tuple):
        return _tuple_create(argument, map(interpreted, argument))
    stands = getattr(type(argument), "interpreted", None)
    return argument if stands is None else stands(argument)
