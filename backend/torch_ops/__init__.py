"""torch's operations on the device ``spirv``, as Triton kernels.

elementwise.py and reducing.py generate kernels from expressions; expressions.py is the table of what torch's
elementwise operations compute. What is not here, or cannot be done as it is called, runs on the CPU
(runtime/torch_fallback.py), which counts it.
"""

from __future__ import annotations

from typing import Any

import torch

_libraries: list[Any] = []


def register() -> None:
    """Enter the operations in torch's table for the device, which is registered. A second call does nothing."""
    if _libraries:
        return
    from .cases import enter_cases
    from .matmul import enter_matmul
    from .movement import enter_movement
    from .norms import enter_norms
    from .pointwise import enter_pointwise
    from .reductions import enter_reductions
    from .softmax import enter_softmax

    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    for enter in (enter_movement, enter_pointwise, enter_cases, enter_reductions):
        enter(library)
    for enter in (enter_matmul, enter_softmax, enter_norms):
        enter(library)
