"""Compile options that change what is planned and emitted."""

from __future__ import annotations

from dataclasses import dataclass

from ..matrices import MatrixConfiguration


@dataclass(frozen=True)
class Options:
    """Compile options that change what is planned and emitted.

    ``fuse_multiply_add``: contract ``a * b + c`` where the product has no other use. ``dot_unroll``: the most
    multiply-adds that a dot's loop body holds, ``dot_registers`` the most accumulators that it updates,
    ``dot_unroll_registers`` the most multiply-adds that are unrolled where an operand would need an indexed array else.
    ``shared_banks``: workgroup memory is banked, as on a GPU, so dot operands are laid out for it. ``prefetch``: load
    the next iteration's dot operands ahead (transforms/prefetch.py), in loops of more than one of the ``stages``.
    ``check_bounds``: check every access (lowering/bounds_check.py). ``debug_info``: places in the user's source and
    names of variables (lowering/debug_info.py).
    ``unrolled_elementwise``: instructions of element-by-element code that is not cut in strips
    (transforms/strips.py), 0 for any number.
    ``split_grid``: a launch is a part of the grid, and its arguments say which (abi/block.py).
    ``native_math``: what of capabilities.NATIVE_MATH kernels may use.
    ``matrices``: the configurations of matrix units that dots may use; ``emulate_matrices``: by shuffles instead;
    ``matrix_loads``: dots may load fragments from shared memory.
    """

    fuse_multiply_add: bool = True
    dot_unroll: int = 512
    dot_unroll_registers: int = 512
    shared_banks: bool = False
    prefetch: bool = False
    stages: int = 2
    dot_registers: int = 512
    unrolled_elementwise: int = 0
    check_bounds: bool = False
    debug_info: bool = False
    native_math: frozenset[str] = frozenset()
    matrices: tuple[MatrixConfiguration, ...] = ()
    emulate_matrices: bool = False
    split_grid: bool = False
    matrix_loads: bool = False
