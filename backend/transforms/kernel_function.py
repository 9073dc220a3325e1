"""The one function that is lowered: the kernel with its branches structured and its calls inlined."""

from __future__ import annotations

from ..errors import LoweringError
from ..ttgir.ir import Function, Module
from .inline import single_block_body


def kernel_of(source: Module) -> Function:
    """The only public function of ``source``. Raises LoweringError for a module that is not that of one kernel."""
    public = [function for function in source.functions.values() if function.public and function.body is not None]
    if len(public) != 1:
        raise LoweringError(
            f"a kernel module has one public function; this one has {len(public)}: "
            f"{[function.name for function in public]}"
        )
    return public[0]


def one_block(source: Module) -> bool:
    """Rewrites the kernel in place to a body of one block. Raises UnsupportedOperation for branches and calls that
    cannot be rewritten."""
    single_block_body(kernel_of(source), source)
    return True
