"""What kernels promise of runs of values is left out for a device whose accesses need no alignment.

``tl.max_contiguous`` and ``tl.max_constancy`` are believed by GPUs as far as an access of theirs is wide: as many
elements as the address is known to be a multiple of, 16 bytes at most. Kernels promise more than is true where that is
the limit. Templates of torch 2.13 for batches of matrices say of ``column % 17`` that 16 of them follow each other;
rows of 17 elements are never aligned, so that no GPU notices. Vectors of a processor are loaded at any address, so that
its kernels go by what is known of the values themselves, and by what is asked when they run.
"""

from __future__ import annotations

from ...ttgir.ir import Module

_PROMISES = ("tt.contiguity", "tt.constancy")


def leave_promises_out(module: Module) -> bool:
    """Takes the promises from all operations. Whether there was any."""
    found = [operation for operation in module.walk() if not operation.attributes.keys().isdisjoint(_PROMISES)]
    for operation in found:
        for name in _PROMISES:
            operation.attributes.pop(name, None)
    return bool(found)
