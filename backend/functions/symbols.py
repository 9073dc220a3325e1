"""Which form of a function a symbol names, in any of the libraries."""

from __future__ import annotations

from collections.abc import Sequence

from ..ttgir.types import TensorType, Type
from .cuda_symbols import CUDA_SYMBOLS
from .forms import SYMBOLS, Form
from .hip_symbols import HIP_SYMBOLS


def form_of(symbol: str, arguments: Sequence[Type]) -> Form | None:
    """The form that a symbol names for arguments of these types; None for an unknown symbol."""
    form = SYMBOLS.get(symbol) or CUDA_SYMBOLS.get(symbol)
    if form is not None:
        return form
    codes = tuple(str(type_.element if isinstance(type_, TensorType) else type_) for type_ in arguments)
    return next((form for form in HIP_SYMBOLS.get(symbol, ()) if form.arguments == codes), None)
