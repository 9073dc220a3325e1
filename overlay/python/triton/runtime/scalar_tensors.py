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


class KernelOperand:
    """An operand of ``and`` and ``or``. ``KernelOperand(True, is_and) < KernelOperand(a, …) < KernelOperand(b, …)``
    evaluates ``b``, in the scope of the kernel, where what is before it does not decide, as compiled kernels do: numbers
    that are known decide, and tensors are joined element by element. A tensor without dimensions decides, too, so that
    ``i < n and tl.load(x + i)`` reads nothing past the end.
    """

    def __init__(self, value: Any, is_and: bool):
        self.value, self.is_and = value, is_and
        self.is_tensor = isinstance(value, tl.tensor)
        self.tensors = [value] if self.is_tensor else []

    def __lt__(self, other: KernelOperand) -> KernelOperand:
        other.tensors = self.tensors + other.tensors
        return other

    def __bool__(self) -> bool:
        """Whether Python goes on with the next operand; it does not ask where there is none."""
        goes_on = self.is_tensor and self.value.type.is_block() or bool(self.value) is self.is_and
        if not goes_on and self.is_tensor:
            self.tensors.append(self.value)
        return goes_on

    def result(self) -> Any:
        """What compiled kernels have: a number that decides, or the last one, or the tensors as an int1."""
        if not self.tensors or not self.is_tensor and not self:
            return self.value
        return reduce(lambda last, one: (one.logical_and if self.is_and else one.logical_or)(last), self.tensors[::-1])


def kernel_not(value: Any) -> Any:
    """``not value``, of each element of a tensor."""
    from .interpreter import interpreter_semantic

    return interpreter_semantic.not_(value) if isinstance(value, tl.tensor) else not value


def _called(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(args), [])


class KernelTransformer(ast.NodeTransformer):
    """Makes ``for i in range(…)`` a loop over ``tensor_range``, and ``and``, ``or`` and ``not`` those of tensors."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        is_and = ast.Constant(isinstance(node.op, ast.And))
        first, *rest = (_called(KernelOperand.__name__, one, is_and) for one in (is_and, *node.values))
        chain = ast.Compare(first, [ast.Lt() for _ in rest], rest)
        return ast.copy_location(ast.Call(ast.Attribute(chain, "result", ast.Load()), [], []), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_called(kernel_not.__name__, node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        function = getattr(node.iter, "func", None)
        if isinstance(function, ast.Name) and function.id == "range":
            function.id = tensor_range.__name__
        return node
