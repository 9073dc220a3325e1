"""Well-known families of models, trained on the device and on the CPU to the same losses: not among the tests of each
change, since it takes minutes (``pytest tests/device/torch_ops/families.py``; the weekly job runs it).

Each learns a small task that can be learnt. Eagerly nothing may run on the CPU; what the device has learnt is then the
CPU's model, which gives the same outputs.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from triton.backends.spirv.torch import registration

from . import models

_STEPS = 20


class Translator(nn.Module):
    """torch's own encoder and decoder, with masks: a sequence of 12 symbols to the same backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(13, 32), nn.Embedding(8, 32)
        how: dict[str, Any] = {"dim_feedforward": 64, "dropout": 0.0, "batch_first": True}
        self.both = nn.Transformer(32, 4, num_encoder_layers=1, num_decoder_layers=1, **how)
        self.head = nn.Linear(32, 13)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        places = self.places(torch.arange(x.shape[1], device=x.device))
        causal = nn.Transformer.generate_square_subsequent_mask(y.shape[1], device=x.device)
        padded = x == 12
        shown = self.both(
            self.symbols(x) + places, self.symbols(y) + places, tgt_mask=causal, src_key_padding_mask=padded,
            memory_key_padding_mask=padded, tgt_is_causal=True,
        )  # fmt: skip
        return self.head(shown)  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        x = torch.randint(1, 12, (16, 8))
        x[::3, 6:] = 12
        return (x, F.pad(x.flip(1), (1, -1))), x.flip(1)

    @staticmethod
    def loss(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(y.flatten(0, 1), target.flatten(), ignore_index=12)


class Residual(nn.Module):
    """Two convolutions with batch norm beside a shorter way, as ResNet has them."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(out) for _ in range(2))
        self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.short(x))


class ResNet(nn.Module):
    """Where in an image of 16 x 16 the bright square is: 4 quarters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.MaxPool2d(2), Residual(8, 8, 1), Residual(8, 16, 2)),
            *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        x, where = torch.randn(16, 1, 16, 16) * 0.3, torch.arange(16) % 4
        for image, place in zip(x, where.tolist(), strict=True):
            image[0, place // 2 * 8 + 2 : place // 2 * 8 + 6, place % 2 * 8 + 2 : place % 2 * 8 + 6] += 2
        return (x.to(memory_format=torch.channels_last),), where

    loss = staticmethod(F.cross_entropy)


class Tagger(nn.Module):
    """The symbol before each, for sequences of several lengths: an LSTM of two layers each way."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(2, 8)
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.table(x), lengths.cpu(), batch_first=True, enforce_sorted=False)
        y, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        past = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        return self.head(y).squeeze(2).masked_fill(past, -10.0)  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        x = torch.randint(0, 2, (12, 7))
        lengths = torch.arange(12) % 4 + 4
        before = F.pad(x[:, :-1], (1, 0)).float()
        return (x, lengths), before.masked_fill(torch.arange(7) >= lengths[:, None], 0.0)

    loss = staticmethod(F.binary_cross_entropy_with_logits)


class Denoiser(models.Diffusion):
    """The noise in images of waves: what a diffusion model learns."""

    @staticmethod
    def data() -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        line = torch.linspace(0, 2 * math.pi, 16)
        waves = torch.stack([torch.sin(line[:, None] * k) * torch.cos(line * (k + 1)) for k in range(8)])[:, None]
        noise = torch.randn(8, 1, 16, 16)
        return (waves * 0.6 + noise * 0.8,), noise

    loss = staticmethod(F.mse_loss)


class Graph(nn.Module):
    """Which of two communities a node is in: messages along edges, weighed by a softmax over those that arrive (GAT),
    and their mean and greatest (GraphSAGE)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.weigh = nn.Linear(6, 16), nn.Linear(32, 1)
        self.last = nn.Linear(64, 2)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        h = F.elu(self.first(x))
        score = F.leaky_relu(self.weigh(torch.cat([h[source], h[target]], 1)))[:, 0]
        top = torch.full_like(h[:, 0], -1e9).scatter_reduce(0, target, score, "amax")
        weight = (score - top.detach()[target]).exp()
        total = weight.new_zeros(len(x)).index_add(0, target, weight)
        messages = h[source] * (weight / total[target])[:, None]
        sums = messages.new_zeros(h.shape).index_add(0, target, messages)
        place = target[:, None].expand(-1, h.shape[1])
        means, greatest = (
            torch.zeros_like(h).scatter_reduce(0, place, h[source], how, include_self=False) for how in ("mean", "amax")
        )
        return self.last(torch.cat([h, sums, means, greatest], 1))  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        where = torch.arange(40) % 2
        chance = torch.where(where[:, None] == where, 0.3, 0.03).fill_diagonal_(1)  # each knows itself
        return (torch.randn(40, 6) + where[:, None] * 0.5, (torch.rand(40, 40) < chance).nonzero().t()), where

    loss = staticmethod(F.cross_entropy)


class Language(models.GPT):
    """The next symbol of a sequence that repeats."""

    @staticmethod
    def data() -> tuple[Any, torch.Tensor]:
        tokens = torch.arange(14).add(torch.arange(6)[:, None] * 5) * 3 % 37
        return (tokens[:, :-1],), tokens[:, 1:]

    loss = staticmethod(F.cross_entropy)


_FAMILIES = (Language, Translator, ResNet, Tagger, Denoiser, Graph)


def _train(model: nn.Module, family: Any, device: str, call: Callable[..., Any]) -> list[float]:
    """The loss of each step: AdamW, warmed up, with clipped gradients."""
    torch.manual_seed(1)
    inputs, target = family.data()
    inputs, target = [x.to(device) for x in inputs], target.to(device)
    rate = 5e-2 if family is Tagger else 1e-2
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=_STEPS)
    losses = []
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss = family.loss(call(*inputs), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]


def _model(family: Any) -> nn.Module:
    torch.manual_seed(0)
    model: nn.Module = family()
    return model


@pytest.fixture(scope="module")
def right() -> Callable[[Any], list[float]]:
    """The CPU's losses of a family, which it has learnt something by."""
    known: dict[Any, list[float]] = {}

    def losses(family: Any) -> list[float]:
        if family not in known:
            model = _model(family)
            known[family] = _train(model, family, "cpu", model)
            assert known[family][-1] < 0.7 * known[family][0]
        return known[family]

    return losses


@pytest.mark.parametrize("family", _FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.usefixtures("no_fallbacks")
def test_trained_on_the_device_and_run_on_both(family: Any, right: Callable[[Any], list[float]]) -> None:
    model = _model(family).to("spirv")
    losses = _train(model, family, "spirv", model)
    torch.testing.assert_close(losses[:5], right(family)[:5], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(losses, right(family), rtol=5e-2, atol=2e-3)
    twin = copy.deepcopy(model).to("cpu")
    inputs, _ = family.data()
    with torch.no_grad():
        for mode in (model.eval(), twin.eval()):
            assert mode.training is False
        torch.testing.assert_close(model(*(x.to("spirv") for x in inputs)).cpu(), twin(*inputs), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", _FAMILIES, ids=lambda family: family.__name__)
def test_trained_in_bfloat16(family: Any, right: Callable[[Any], list[float]]) -> None:
    """To about the loss of float32."""
    model = _model(family).to("spirv")
    before = registration.FALLBACKS.copy()

    def call(*inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast("spirv", dtype=torch.bfloat16):
            return model(*inputs).float()  # type: ignore[no-any-return]

    losses = _train(model, family, "spirv", call)
    torch.testing.assert_close(losses, right(family), rtol=0.2, atol=0.1)
    assert not registration.FALLBACKS - before


@pytest.mark.parametrize("family", [Language, ResNet, Denoiser], ids=lambda family: family.__name__)
def test_trained_compiled(family: Any, right: Callable[[Any], list[float]]) -> None:
    model = _model(family).to("spirv")
    losses = _train(model, family, "spirv", torch.compile(model))
    torch.testing.assert_close(losses[:5], right(family)[:5], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(losses, right(family), rtol=5e-2, atol=5e-3)
