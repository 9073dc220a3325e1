"""torch's operations on the device ``spirv``, as Triton kernels.

elementwise.py, reducing.py and rows.py generate kernels from expressions, with the addresses that addressing.py gives;
expressions.py is the table of what torch's elementwise operations compute. What is not here, or cannot be done as it is
called, runs on the CPU (torch/device/cpu_fallback.py), which counts it.
"""

from __future__ import annotations

from typing import Any

import torch

_libraries: list[Any] = []


def register() -> None:
    """Enter the operations in torch's table for the device, which is registered. A second call does nothing."""
    if _libraries:
        return
    from . import bounds, launching
    from .attention import enter_attention
    from .batch_norm import enter_batch_norm
    from .cases import enter_cases
    from .complex_numbers import enter_complex_numbers
    from .convolution import enter_convolution
    from .ctc import enter_ctc
    from .decompositions import enter_decompositions
    from .detection import detection_library
    from .embedding_bags import enter_embedding_bags
    from .foreach import enter_foreach
    from .fourier import enter_fourier
    from .grid_sampling import enter_grid_sampling
    from .histograms import enter_histograms
    from .householder import enter_householder
    from .indexing import enter_indexing
    from .library import enter_composed
    from .linear_algebra import enter_linear_algebra
    from .losses import enter_losses
    from .margins import enter_margins
    from .matmul import enter_matmul
    from .matrix_functions import enter_matrix_functions
    from .movement import enter_movement
    from .norms import enter_norms
    from .optimizers import enter_optimizers
    from .pointwise import enter_pointwise
    from .pooling import enter_pooling
    from .random import enter_random
    from .rearranging import enter_rearranging
    from .recurrent import enter_recurrent
    from .recurrent_layers import enter_recurrent_layers
    from .reductions import enter_reductions
    from .resampling import enter_resampling
    from .rms_norm import enter_rms_norm
    from .scans import enter_scans
    from .searching import enter_searching
    from .segments import enter_segments
    from .selection import enter_selection
    from .softmax import enter_softmax
    from .sorting import enter_sorting
    from .transformer import enter_transformer
    from .weight_norm import enter_weight_norm

    library = torch.library.Library("aten", "IMPL")
    _libraries.extend((library, detection_library()))
    for enter in (enter_movement, enter_pointwise, enter_cases, enter_reductions):
        enter(library)
    for enter in (enter_matmul, enter_softmax, enter_norms, enter_rms_norm, enter_indexing, enter_rearranging):
        enter(library)
    for enter in (enter_attention, enter_resampling, enter_scans, enter_sorting, enter_selection, enter_searching):
        enter(library)
    for enter in (enter_losses, enter_random, enter_foreach, enter_optimizers, enter_convolution, enter_pooling):
        enter(library)
    for enter in (enter_batch_norm, enter_grid_sampling, enter_segments, enter_embedding_bags, enter_transformer):
        enter(library)
    for enter in (enter_weight_norm, enter_complex_numbers, enter_ctc, enter_margins, enter_linear_algebra):
        enter(library)
    for enter in (enter_fourier, enter_householder, enter_decompositions, enter_recurrent, enter_recurrent_layers):
        enter(library)
    for enter in (enter_matrix_functions, enter_histograms):
        enter(library)
    enter_composed(library)
    bounds.install()
    launching.install()
