"""nn.TransformerEncoder and nn.MultiheadAttention in inference, where torch calls one operation a layer."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

pytestmark = [
    pytest.mark.usefixtures("no_fallbacks"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:.*mismatched"),
]

_PADDING = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()
_CAUSAL = nn.Transformer.generate_square_subsequent_mask(5)
_EACH_HEAD = torch.arange(4 * 25).view(4, 5, 5) % 7 == 0


def _both(module: nn.Module, *inputs: torch.Tensor, **how: Any) -> tuple[Any, Any]:
    """(what it computes in double precision with gradients, which torch composes; what the device computes)."""
    twin = copy.deepcopy(module).to("spirv")

    def to(tensor: Any, **where: Any) -> Any:
        return tensor.to(**where) if isinstance(tensor, torch.Tensor) else tensor

    def double(tensor: Any) -> Any:
        return tensor.double() if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() else tensor

    expected = copy.deepcopy(module).double()(*map(double, inputs), **{key: double(one) for key, one in how.items()})
    with torch.no_grad():
        found = twin(*(x.to("spirv") for x in inputs), **{key: to(one, device="spirv") for key, one in how.items()})
    return expected, found


@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"src_key_padding_mask": _PADDING},
        {"mask": _CAUSAL, "is_causal": True},
        {"mask": _CAUSAL, "src_key_padding_mask": _PADDING},
        {"mask": _EACH_HEAD},
        {"mask": torch.linspace(-2, 2, 25).view(5, 5)},
    ],
    ids=["plain", "padding", "causal", "causal and padding", "each head", "bias"],
)
def test_encoder(masks: dict[str, Any]) -> None:
    torch.manual_seed(0)
    for activation, norm_first in (("relu", False), ("gelu", True)):
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, activation, batch_first=True, norm_first=norm_first)
        x = torch.randn(2, 5, 8)
        expected, found = _both(nn.TransformerEncoder(layer, 2).eval(), x, **masks)
        torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"need_weights": False},
        {"key_padding_mask": _PADDING},
        {"average_attn_weights": False, "attn_mask": _EACH_HEAD},
    ],
    ids=lambda how: " ".join(how) or "plain",
)
def test_multi_head_attention(how: dict[str, Any]) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    expected, found = _both(nn.MultiheadAttention(8, 2, batch_first=True).eval(), x, x, x, **how)
    for right, one in zip(expected, found, strict=True):
        if right is None:
            assert one is None
        else:
            torch.testing.assert_close(one.cpu().double(), right, rtol=1e-5, atol=1e-5)
