"""What torch refuses on the CPU is refused in the same words."""

from __future__ import annotations

import pytest
import torch

from .conftest import compare

_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")


@pytest.mark.parametrize("name", _BITS)
def test_bits_of_floats(name: str) -> None:
    x = torch.ones(3, dtype=torch.float16, device="spirv")
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        getattr(torch, name)(x, x)


@pytest.mark.usefixtures("no_fallbacks")
@pytest.mark.parametrize("name", _BITS)
def test_bits_of_small_integers_stay_on_the_device(name: str) -> None:
    compare(
        getattr(torch, name), torch.tensor([-3, 5, 127], dtype=torch.int8), torch.tensor([1, 3, 6], dtype=torch.int8)
    )
