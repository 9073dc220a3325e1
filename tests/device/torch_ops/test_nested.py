"""Attention of jagged nested tensors, and nested tensors of the old layout."""

import sys
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.device.processes import run

LENGTHS = (3, 7, 1, 5)


def _sequences(lengths: tuple[int, ...], *rest: int, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(length, *rest, generator=generator) for length in lengths]


def _expected(q: list[torch.Tensor], k: list[torch.Tensor], v: list[torch.Tensor], **how: Any) -> list[torch.Tensor]:
    turned = ([t.transpose(-2, 0) if t.dim() > 2 else t for t in ts] for ts in (q, k, v))
    found = [F.scaled_dot_product_attention(*one, **how) for one in zip(*turned, strict=True)]
    return [t.transpose(-2, 0) if t.dim() > 2 else t for t in found]


@pytest.mark.parametrize("heads", [2, None])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("keys", [LENGTHS, (5, 2, 9, 4)])
def test_attention_and_its_gradients(keys: tuple[int, ...], is_causal: bool, heads: int | None) -> None:
    shape = (8,) if heads is None else (heads, 8)
    given = [_sequences(lengths, *shape, seed=seed) for seed, lengths in enumerate((LENGTHS, keys, keys))]
    dense = [[t.double().requires_grad_() for t in ts] for ts in given]
    want = torch.cat(_expected(*dense, is_causal=is_causal))
    weights = torch.randn(want.shape, generator=torch.Generator().manual_seed(9))
    (want * weights).sum().backward()
    parts = [
        torch.nested.nested_tensor([t.to("spirv") for t in ts], layout=torch.jagged, requires_grad=True)
        for ts in given[:2]
    ]
    # Values have the lengths of the keys, as torch's attention of nested tensors has to know.
    values = torch.cat([t.to("spirv") for t in given[2]]).requires_grad_()
    third = torch.nested.nested_tensor_from_jagged(values, parts[1].offsets())
    turned = [t if heads is None else t.transpose(1, 2) for t in (*parts, third)]
    got = F.scaled_dot_product_attention(*turned, is_causal=is_causal)
    got = got if heads is None else got.transpose(1, 2)
    assert got.is_nested and got.layout == torch.jagged
    (got.values() * weights.to("spirv")).sum().backward()
    assert torch.allclose(got.values().cpu().double(), want, atol=1e-5)
    for leaf, tensors in zip(parts, dense, strict=False):
        assert torch.allclose(leaf.grad.values().cpu().double(), torch.cat([t.grad for t in tensors]), atol=1e-5)
    assert torch.allclose(values.grad.cpu().double(), torch.cat([t.grad for t in dense[2]]), atol=1e-5)


def test_without_gradients_and_with_a_scale() -> None:
    given = _sequences(LENGTHS, 2, 8, seed=0)
    nested = torch.nested.nested_tensor([t.to("spirv") for t in given], layout=torch.jagged).transpose(1, 2)
    got = F.scaled_dot_product_attention(nested, nested, nested, scale=0.5).transpose(1, 2).values().cpu()
    assert torch.allclose(got, torch.cat(_expected(given, given, given, scale=0.5)), atol=1e-5)


#: Of a list of tensors, with a history and without.
_MADE = (
    "torch.nested.as_nested_tensor([x, x[:1]])",
    "torch._nested_from_padded(x[None], torch.tensor([[2, 3]], device='spirv'))",
    "torch._nested_tensor_from_mask(x[None], torch.ones(1, 2, dtype=torch.bool, device='spirv'))",
)


@pytest.mark.parametrize("made", _MADE)
def test_the_old_layout_is_refused_and_ends_no_process(made: str) -> None:
    """Also where autograd would ask for its sizes: an error there ends the process."""
    program = f"""
import torch
for grad in (False, True):
    x = torch.ones(2, 3, device="spirv", requires_grad=grad)
    try:
        {made}
    except NotImplementedError as error:
        assert "layout=torch.jagged" in str(error), error
        print("refused")
"""
    done = run([sys.executable, "-c", program])
    assert done.stdout.splitlines() == ["refused", "refused"], done.stderr
