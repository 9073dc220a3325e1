"""torch's operations on the device ``spirv``, as Triton kernels.

elementwise.py, reducing.py and rows.py generate kernels from expressions, with the addresses that addressing.py gives;
expressions.py is the table of what torch's elementwise operations compute. What is not here, or cannot be done as it is
called, runs on the CPU (torch/device/cpu_fallback.py), which counts it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: The modules whose ``TABLE`` says which functions do which operations.
_FAMILIES = (
    "batch_norm cases complex_numbers ctc embedding_bags fourier grid_sampling histograms "
    "indexing linear_algebra losses norms optimizers pooling random rearranging reductions "
    "resampling rms_norm scans searching segments selection softmax sorting transformer weight_norm"
).split()

_libraries: list[Any] = []


def register() -> None:
    """Enter the operations in torch's table for the device, which is registered. A second call does nothing."""
    if _libraries:
        return
    import torch  # not above: Triton imports every package of a backend for the key of its cache

    from . import bounds, launching
    from .attention import enter_attention
    from .convolution import enter_convolution
    from .detection import detection_library
    from .foreach import enter_foreach
    from .library import enter_by_name, enter_composed
    from .matmul import enter_matmul
    from .movement import enter_movement
    from .pointwise import enter_pointwise
    from .recurrent import enter_recurrent
    from .recurrent_layers import enter_recurrent_layers
    from .traced_attention import enter_traced_attention

    library = torch.library.Library("aten", "IMPL")
    _libraries.extend((library, detection_library(), enter_traced_attention()))
    for family in _FAMILIES:
        enter_by_name(library, import_module(f".{family}", __package__).TABLE)
    for enter in (enter_movement, enter_pointwise, enter_matmul, enter_attention, enter_foreach, enter_convolution):
        enter(library)
    for enter in (enter_recurrent, enter_recurrent_layers, enter_composed):
        enter(library)
    bounds.install()
    launching.install()
