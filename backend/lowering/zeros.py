"""Float zeros that a driver may not fold.

Mesa's CPU driver simplifies ``x * 0``, ``0 / x``, ``x + 0`` and ``0 - x`` as for real numbers, although the
instructions are NoContraction: NaN, infinities and the sign of zero are then lost. It does so when it sees the
constant, so it gets a zero that it does not recognise.
"""

from __future__ import annotations

import math

from ..layouts.element_sizes import bits_in_memory
from ..spirv.opcodes import BuiltIn
from ..ttgir.types import Type
from .emitter import Emitter

#: A bit that no workgroup number of these drivers has. (Lane numbers are constants to Mesa's CPU driver.)
UNUSED_BIT = 31


def kept_zero(emitter: Emitter, value: int, type_: Type) -> int:
    """``value``, of float type ``type_``; where it is the constant +0 and the driver folds it, an equal value that is
    computed at run time."""
    known = emitter.module.constants.get(value)
    if known is None or known != 0 or math.copysign(1, known) < 0 or not emitter.capabilities.traits.faults.folds_zeros:
        return value
    f = emitter.f
    zero = f.shr(emitter.workgroup_built_in(BuiltIn.WorkgroupId, "workgroup_id", 2), UNUSED_BIT)
    return f.bitcast(f.zero_extend(zero, bits_in_memory(type_)), emitter.type_id(type_))
