"""The models of ``benchmarks.models``, in plain torch, each with a batch of data and its loss.

Their random weights and data are the same on every device: they are drawn on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from examples.train_gpt import GPT


class Llama(nn.Module):
    """Tokens (batch, length) to logits (batch, length, vocabulary): RMS norms, rotated positions, grouped queries and
    gated perceptrons. ``caches``: keys and values of earlier tokens, of each layer, which a call extends."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups, hidden) for _ in range(layers))
        self.norm, self.logits = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        depth = width // heads
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, depth, 2) / depth), persistent=False)

    def forward(self, tokens: torch.Tensor, caches: list[list[torch.Tensor]] | None = None) -> torch.Tensor:
        start = caches[0][0].shape[2] if caches and caches[0] else 0
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        angles = places[:, None] * self.rates
        turns = angles.cos(), angles.sin()
        x = self.tokens(tokens)
        for index, layer in enumerate(self.layers):
            x = layer(x, turns, caches[index] if caches is not None else None)
        return self.logits(self.norm(x))

    @torch.no_grad()
    def generate(self, tokens: torch.Tensor, count: int) -> torch.Tensor:
        """The tokens with ``count`` more, each the likeliest."""
        caches: list[list[torch.Tensor]] = [[] for _ in self.layers]
        found, latest = [tokens], tokens
        for _ in range(count):
            latest = self(latest, caches)[:, -1:].argmax(-1)
            found.append(latest)
        return torch.cat(found, 1)


class LlamaLayer(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        depth = width // heads
        self.heads, self.groups, self.depth = heads, groups, depth
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.queries = nn.Linear(width, heads * depth, bias=False)
        self.keys, self.values = (nn.Linear(width, groups * depth, bias=False) for _ in range(2))
        self.mixed = nn.Linear(heads * depth, width, bias=False)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(
        self, x: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor], cache: list[torch.Tensor] | None
    ) -> torch.Tensor:
        batch, length, _ = x.shape
        normed = self.norms[0](x)
        queries = _turned(self.queries(normed).view(batch, length, self.heads, self.depth).transpose(1, 2), turns)
        keys = _turned(self.keys(normed).view(batch, length, self.groups, self.depth).transpose(1, 2), turns)
        values = self.values(normed).view(batch, length, self.groups, self.depth).transpose(1, 2)
        if cache is not None:
            if cache:
                keys, values = torch.cat((cache[0], keys), 2), torch.cat((cache[1], values), 2)
            cache[:] = keys, values
        repeats = self.heads // self.groups
        keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
        attended = functional.scaled_dot_product_attention(queries, keys, values, is_causal=length > 1)
        x = x + self.mixed(attended.transpose(1, 2).reshape(batch, length, -1))
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


def _turned(x: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions of (batch, heads, length, depth)."""
    cosines, sines = turns
    one, other = x.float().chunk(2, -1)
    return torch.cat((one * cosines - other * sines, other * cosines + one * sines), -1).type_as(x)


class ViT(nn.Module):
    """Images (batch, 3, side, side) to logits of classes."""

    def __init__(self, side: int, patch: int, width: int, layers: int, heads: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.logits = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1).to(x.dtype), x), 1) + self.places
        return self.logits(self.layers(x)[:, 0])


class Residual(nn.Module):
    """Two convolutions behind group norms, with the time added between them (batch, channels, side, side)."""

    def __init__(self, given: int, channels: int, times: int) -> None:
        super().__init__()
        self.first_norm, self.first = nn.GroupNorm(8, given), nn.Conv2d(given, channels, 3, padding=1)
        self.time = nn.Linear(times, channels)
        self.second_norm, self.second = nn.GroupNorm(8, channels), nn.Conv2d(channels, channels, 3, padding=1)
        self.direct = nn.Identity() if given == channels else nn.Conv2d(given, channels, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.first(functional.silu(self.first_norm(x))) + self.time(time)[:, :, None, None]
        return self.direct(x) + self.second(functional.silu(self.second_norm(y)))


class UNet(nn.Module):
    """Noisy images and times to the noise: (batch, 3, side, side)."""

    def __init__(self, channels: tuple[int, ...], heads: int) -> None:
        super().__init__()
        first, times = channels[0], 4 * channels[0]
        self.times = nn.Sequential(nn.Linear(first, times), nn.SiLU(), nn.Linear(times, times))
        self.first, self.last = nn.Conv2d(3, first, 3, padding=1), nn.Conv2d(first, 3, 3, padding=1)
        self.last_norm = nn.GroupNorm(8, first)
        steps = list(zip((first, *channels), channels, strict=False))
        self.down = nn.ModuleList(Residual(given, made, times) for given, made in steps)
        self.smaller = nn.ModuleList(nn.Conv2d(made, made, 3, 2, 1) for made in channels)
        inner = channels[-1]
        self.middle = nn.ModuleList(Residual(inner, inner, times) for _ in range(2))
        self.middle_norm = nn.GroupNorm(8, inner)
        self.attention = nn.MultiheadAttention(inner, heads, batch_first=True)
        self.up = nn.ModuleList(Residual(2 * made, given, times) for given, made in reversed(steps))
        rates = 10000.0 ** (-torch.arange(first // 2) / (first // 2))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        angles = times[:, None] * self.rates
        time = functional.silu(self.times(torch.cat((angles.sin(), angles.cos()), 1)))
        x, kept = self.first(x), []
        for block, smaller in zip(self.down, self.smaller, strict=True):
            x = block(x, time)
            kept.append(x)
            x = smaller(x)
        x = self.middle[0](x, time)
        flat = self.middle_norm(x).flatten(2).transpose(1, 2)
        x = x + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(x.shape)
        x = self.middle[1](x, time)
        for block in self.up:
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat((x, kept.pop()), 1), time)
        return self.last(functional.silu(self.last_norm(x)))


class Basic(nn.Module):
    """Two convolutions with batch norm on a residual."""

    def __init__(self, given: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(given, channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))
        self.direct: nn.Module = nn.Identity()
        if stride != 1 or given != channels:
            self.direct = nn.Sequential(nn.Conv2d(given, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.direct(x))


def resnet(channels: tuple[int, ...], blocks: int, classes: int) -> nn.Module:
    """A residual net: a stem, ``blocks`` blocks of each number of channels, logits."""
    stem = (nn.Conv2d(3, channels[0], 7, 2, 3, bias=False), nn.BatchNorm2d(channels[0]), nn.ReLU())
    layers: list[nn.Module] = []
    given = channels[0]
    for stage, made in enumerate(channels):
        for block in range(blocks):
            layers.append(Basic(given, made, 2 if stage and not block else 1))
            given = made
    end = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, classes))
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *layers, *end)


@dataclass(frozen=True)
class Model:
    """``make`` gives the module, ``draw`` its inputs and target, ``loss`` a scalar of (result, target). ``units`` of
    ``unit`` are in a batch. ``prompt``: tokens before those that ``generate`` adds, and how many it adds."""

    make: Callable[[], nn.Module]
    draw: Callable[[], tuple[torch.Tensor, ...]]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    units: int
    unit: str
    prompt: tuple[int, int] | None = None


def _classes(result: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(result.flatten(0, -2).float(), target.flatten())


def _noise(result: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.mse_loss(result.float(), target)


def _gpt(width: int, layers: int, length: int, batch: int, kinds: int = 61) -> Model:
    def draw() -> tuple[torch.Tensor, ...]:
        tokens = torch.randint(kinds, (batch, length + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    heads = max(2, width // 64)
    return Model(lambda: GPT(kinds, length, width, heads, layers), draw, _classes, batch * length, "tokens")


def _llama(width: int, layers: int, length: int, batch: int, vocabulary: int, prompt: tuple[int, int]) -> Model:
    def draw() -> tuple[torch.Tensor, ...]:
        tokens = torch.randint(vocabulary, (batch, length + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    heads = max(4, width // 64)
    hidden = (width * 8 // 3 + 63) // 64 * 64
    make = lambda: Llama(vocabulary, width, layers, heads, heads // 4, hidden)  # noqa: E731
    return Model(make, draw, _classes, batch * length, "tokens", prompt)


def _vit(side: int, patch: int, width: int, layers: int, batch: int, classes: int = 1000) -> Model:
    def draw() -> tuple[torch.Tensor, ...]:
        return torch.randn(batch, 3, side, side), torch.randint(classes, (batch,))

    heads = max(2, width // 64)
    return Model(lambda: ViT(side, patch, width, layers, heads, classes), draw, _classes, batch, "images")


def _unet(channels: tuple[int, ...], side: int, batch: int) -> Model:
    def draw() -> tuple[torch.Tensor, ...]:
        noise = torch.randn(batch, 3, side, side)
        return torch.randn(batch, 3, side, side) + noise, torch.randint(1000, (batch,)).float(), noise

    return Model(lambda: UNet(channels, heads=4), draw, _noise, batch, "images")


def _resnet(channels: tuple[int, ...], side: int, batch: int, classes: int = 1000) -> Model:
    def draw() -> tuple[torch.Tensor, ...]:
        return torch.randn(batch, 3, side, side), torch.randint(classes, (batch,))

    return Model(lambda: resnet(channels, 2, classes), draw, _classes, batch, "images")


#: By name: gpt-WIDTH-LAYERS-LENGTH.
MODELS: dict[str, Model] = {
    "gpt-512-6-256": _gpt(512, 6, 256, batch=32),
    "gpt-512-6-1024": _gpt(512, 6, 1024, batch=8),
    "gpt-1024-12-256": _gpt(1024, 12, 256, batch=32),
    "gpt-1024-12-1024": _gpt(1024, 12, 1024, batch=8),
    "llama": _llama(1024, 8, 512, batch=8, vocabulary=32000, prompt=(64, 64)),
    "vit": _vit(224, 16, 384, 12, batch=64),
    "unet": _unet((64, 128, 256), 64, batch=32),
    "resnet": _resnet((64, 128, 256, 512), 224, batch=64),
}

#: The same, for devices that compute slowly, and for what a step costs the host.
SMALL: dict[str, Model] = {
    "gpt": _gpt(64, 2, 16, batch=2),
    "llama": _llama(64, 2, 16, batch=2, vocabulary=97, prompt=(4, 4)),
    "vit": _vit(32, 8, 64, 2, batch=2, classes=10),
    "unet": _unet((16, 32), 16, batch=2),
    "resnet": _resnet((16, 32), 32, batch=2, classes=10),
}


def small(name: str) -> Model:
    """The small model of the same family."""
    return SMALL[name.partition("-")[0]]
