"""Arguments of random operations: the device refuses what torch's CPU refuses, in its words."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

_NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 0.5, 1.0, 1.5, 7e4, -3e38, 3e38, 1e39, 1e308)
_WHOLE = (-129, -1, 0, 1, 2, 128, 129, 256, 257, 2049, (1 << 24) + 1, (1 << 31) + 1, (1 << 63) - 1, -(1 << 63))
_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.uint8, torch.bool)
#: Operations on a tensor, with arguments that torch takes or refuses.
_ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "uniform_": list(itertools.product(_NUMBERS, _NUMBERS)),
    **{name: list(itertools.product((*_NUMBERS[:2], 0.0, 1e39), _NUMBERS)) for name in ("normal_", "log_normal_")},
    "cauchy_": list(itertools.product((*_NUMBERS[:2], 0.0, 1e39), _NUMBERS)),
    **{name: [(p,) for p in _NUMBERS] for name in ("exponential_", "geometric_", "bernoulli_")},
    "random_": [*itertools.product(_WHOLE, _WHOLE), *((to,) for to in _WHOLE), (0, None), (1 << 20, None)],
}


def _came_to(call: Callable[[], torch.Tensor]) -> torch.Tensor | tuple[str, str]:
    try:
        return call().cpu()
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


def _both(what: str, call: Callable[[str], torch.Tensor]) -> None:
    """The device refuses what the CPU refuses, in the CPU's words, and has a NaN only where the CPU may have one."""
    want, got = _came_to(lambda: call("cpu")), _came_to(lambda: call("spirv"))
    if isinstance(want, tuple) or isinstance(got, tuple):
        assert got == want, what
    else:
        assert got.dtype == want.dtype and got.shape == want.shape, what


@pytest.mark.filterwarnings("ignore")  # of bounds past a type's
@pytest.mark.parametrize("dtype", _TYPES, ids=str)
@pytest.mark.parametrize("name", _ARGUMENTS)
def test_arguments_are_refused_as_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    for arguments in _ARGUMENTS[name]:
        for count in (3, 0):
            _both(
                f"{name}{arguments} of {count} {dtype}",
                lambda on, a=arguments, n=count: getattr(torch.ones(n, dtype=dtype, device=on), name)(*a),
            )


@pytest.mark.parametrize("name", ["normal_", "cauchy_"])
def test_arguments_past_float32_are_no_nan(name: str) -> None:
    for arguments in ((math.inf, 1e39), (1e39, 1e308)):
        assert not getattr(torch.ones(8, device="spirv"), name)(*arguments).cpu().isnan().any()


def test_permutations_and_pairs_are_refused_as_on_the_cpu() -> None:
    for dtype in _TYPES:
        for count in (-1, 0, 1, 127, 128, 129, 255, 256, 257, 2048, 2049, 40000):
            _both(f"randperm({count}) of {dtype}", lambda on, n=count, t=dtype: torch.randperm(n, dtype=t, device=on))
    for shapes in ((2, 3), (2, 2), (1, 3)):
        for low in (-1.0, math.nan, 0.0):
            _both(
                f"normal of {shapes}, {low}",
                lambda on, s=shapes, v=low: torch.normal(
                    torch.ones(s[0], device=on), torch.full((s[1],), v, device=on)
                ),
            )
