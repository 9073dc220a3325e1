"""``bar.sync 0;`` in inline assembly, which is how kernels for CUDA write ``__syncthreads()``, is Triton's own barrier.

Without a number of threads the instruction waits for all of the workgroup, and orders their accesses to memory (PTX
ISA, "Parallel Synchronization and Communication Instructions: bar, barrier").
"""

from __future__ import annotations

import re

from ..analysis.barriers import BARRIER
from ..ttgir.ir import Module, Operation
from .rewriting import Rewriter

ASSEMBLY = "tt.elementwise_inline_asm"
_WAITS = re.compile(r"\s*(?:bar|barrier)\.sync(?:\.aligned)?\s+0\s*;\s*")


def put_barriers(module: Module) -> bool:
    """Replaces assembly that only waits. Whether there was any."""
    found = [one for one in module.walk() if one.name == ASSEMBLY and _waits(one)]
    for one in found:
        Rewriter.before(one).make(BARRIER, attributes={"addrSpace": "all"})
        one.erase()
    return bool(found)


def _waits(operation: Operation) -> bool:
    used = any(result.uses for result in operation.results)
    return not operation.operands and not used and bool(_WAITS.fullmatch(operation.attribute("asm_string")))
