"""What the user promises about a value."""

from __future__ import annotations

from typing import Any

from ...ttgir.ir import DenseAttr
from .info import AxisInfo, power_of_two_divisor

_HINTS = {"tt.contiguity": "contiguity", "tt.divisibility": "divisibility", "tt.constancy": "constancy"}


def with_hints(info: AxisInfo, attributes: dict[str, Any]) -> AxisInfo:
    """``info`` with what the user promised in ``tt.contiguity``, ``tt.divisibility`` and ``tt.constancy``.

    A promise is one number, or one per dimension; what was known already is kept where it says more.
    """
    for attribute, field in _HINTS.items():
        hint = attributes.get(attribute)
        if hint is None:
            continue
        if isinstance(hint, DenseAttr):
            hint = hint.values * info.rank if hint.splat else hint.values
        numbers = hint if isinstance(hint, tuple) else (hint,)
        known: tuple[int, ...] = getattr(info, field)
        if len(numbers) == len(known):
            best = tuple(
                max(old, power_of_two_divisor(int(number))) for old, number in zip(known, numbers, strict=True)
            )
            info = AxisInfo(
                **{name: best if name == field else getattr(info, name) for name in _HINTS.values()},
                constant=info.constant,
            )
    return info
