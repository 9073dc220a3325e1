"""Small models, with a training step each."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    """Two layers, for vectors of 20 numbers in 5 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(33, 20), torch.randint(0, 5, (33,))


class Block(nn.Module):
    """Attention and an MLP, each on a residual stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*qkv, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    """A language model of two blocks over 37 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(37, 32), nn.Embedding(16, 32)
        self.blocks = nn.Sequential(Block(32, 4), Block(32, 4))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 37, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(x))).transpose(1, 2)  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[torch.Tensor, torch.Tensor]:
        tokens = torch.randint(0, 37, (3, 14))
        return tokens[:, :-1], tokens[:, 1:]


class ConvNet(nn.Module):
    """Convolutions with batch norm, for images of 3 x 12 x 12 in 5 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3, stride=2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(16, 5)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)  # type: ignore[no-any-return]

    @staticmethod
    def data() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(6, 3, 12, 12), torch.randint(0, 5, (6,))


class Diffusion(nn.Module):
    """A U-Net of one level, with attention in its middle and the time as an embedding, for images of 16 x 16."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.norm, self.time, self.qkv = nn.GroupNorm(4, 16), nn.Linear(8, 16), nn.Conv2d(16, 48, 1)
        self.up, self.last = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outer = F.silu(self.first(x))
        inner = self.down(outer)
        time = self.time(torch.sin(torch.arange(8, device=x.device) * 0.1))
        inner = F.silu(self.norm(inner + time[:, None, None]))
        batch, width, height, length = inner.shape
        qkv = self.qkv(inner).view(batch, 3, 2, width // 2, height * length).transpose(3, 4).unbind(1)
        attended = F.scaled_dot_product_attention(*qkv).transpose(2, 3).reshape(inner.shape)
        upper = F.interpolate(self.up(inner + attended), scale_factor=2)
        return self.last(torch.cat([F.silu(upper), outer], 1))  # type: ignore[no-any-return]


def train(model: Any, device: str, steps: int, **options: Any) -> tuple[list[float], list[torch.Tensor]]:
    """(loss of each step, the state after the last) of AdamW on one batch, on the CPU's random start."""
    torch.manual_seed(0)
    module = model().to(device)
    inputs, targets = (tensor.to(device) for tensor in model.data())
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, **options)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses], [tensor.cpu() for tensor in module.state_dict().values()]
