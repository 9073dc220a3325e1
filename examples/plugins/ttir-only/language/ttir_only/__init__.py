"""Installed as triton.language.extra.ttir_only: functions that kernels for this backend may call.

triton.language imports this file while it is itself half-loaded: take `core` and `jit` from their own modules.
"""

from __future__ import annotations

from triton.language import core
from triton.runtime.jit import jit


@jit
def clamp_to_unit(x):
    """Float tensor or scalar `x` limited to [0, 1], elementwise. What becomes of a NaN is left open."""
    return core.minimum(core.maximum(x, 0.0), 1.0)
