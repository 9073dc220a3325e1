"""Compile options that change what is planned and emitted."""

from __future__ import annotations

from dataclasses import dataclass

from ..matrices import MatrixConfiguration


@dataclass(frozen=True)
class Options:
    """Compile options that change what is planned and emitted.

    ``fuse_multiply_add``: contract ``a * b + c`` where the product has no other use. ``stages``: of pipelined loops;
    where there are more than one, drivers that want it get the next iteration's dot operands loaded ahead
    (transforms/prefetch.py). ``check_bounds``: check every access (lowering/bounds_check.py). ``check_races``: check
    every access to workgroup memory (lowering/race_check.py). ``debug_info``: places in
    the user's source and names of variables (lowering/debug_info.py).
    ``split_grid``: a launch is a part of the grid, and its arguments say which (abi/block.py).
    ``native_math``: what of capabilities.NATIVE_MATH kernels may use.
    ``matrices``: the configurations of matrix units that dots may use; ``emulate_matrices``: by shuffles instead;
    ``matrix_loads``: dots may load fragments from shared memory. ``tight``: operations may take little shared memory,
    where that makes long code.
    """

    fuse_multiply_add: bool = True
    stages: int = 2
    check_bounds: bool = False
    check_races: bool = False
    debug_info: bool = False
    native_math: frozenset[str] = frozenset()
    matrices: tuple[MatrixConfiguration, ...] = ()
    emulate_matrices: bool = False
    split_grid: bool = False
    matrix_loads: bool = False
    tight: bool = False
