"""Numbers that compiled kernels hold in tensors of one element, so that the interpreter computes in their types, too.

These are the numbers of ``range`` and ``tl.range``, and the arguments of a launch. As numbers of Python they take the
type of the tensor that they meet: ``x + i`` of an int8 tensor is an int8 then, instead of an int32, and ends with
"Scalar 300 is out of range for type int8".
"""
from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

import triton.language as tl


def scalar(value: int | float, dtype: tl.dtype | None = None) -> tl.tensor:
    """A tensor without dimensions. ``dtype``: None for the one that a launch gives such an argument."""
    from .interpreter import TensorHandle, _get_np_dtype
    from .jit import mangle_type

    dtype = dtype or tl.str_to_ty(mangle_type(value), None)
    return tl.tensor(TensorHandle(np.array([value], dtype=_get_np_dtype(dtype)), dtype), dtype)


def tensor_range(start: Any, end: Any = None, step: Any = 1, **_: Any) -> Iterator[tl.tensor]:
    """``range`` in a kernel: numbers of the type that the bounds and the step have in common."""
    from .interpreter import interpreter_semantic

    start, end = (0, start) if end is None else (start, end)
    step = 1 if step is None else step
    types = [interpreter_semantic.to_tensor(bound).dtype for bound in (start, end, step)]
    dtype = reduce(interpreter_semantic.integer_promote_impl, types)
    return (scalar(i, dtype) for i in range(start, end, step))


class LoopTransformer(ast.NodeTransformer):
    """Makes ``for i in range(…)`` a loop over ``tensor_range``."""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        function = getattr(node.iter, "func", None)
        if isinstance(function, ast.Name) and function.id == "range":
            function.id = tensor_range.__name__
        return node
