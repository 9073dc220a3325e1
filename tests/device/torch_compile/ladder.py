"""Models of the ladder: what PyTorch users compile, from a chain of pointwise operations to a diffusion U-Net."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from examples.train_gpt import Block


class Function(nn.Module):
    """A function of the input, with a parameter, so that there is a gradient of each."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function, self.scale = function, nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x * self.scale)


def pointwise(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * x.exp().log1p() + x.tanh()).clamp(-2, 2)


def reductions(x: torch.Tensor) -> torch.Tensor:
    parts = (x.sum(), x.mean(), x.amax(), x.amin(), x.var(), x.norm(), x.cumsum(0).sum(), x.argmax().float())
    return torch.stack(parts)


class Embedding(nn.Module):
    """Numbers to rows of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table((x.abs() * 10).long().clamp(max=49)).sum(1)


class Convolutions(nn.Module):
    """Convolution, batch norm, convolution, mean, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.last = nn.Conv2d(8, 8, 3, stride=2), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.first(x)))
        return self.last(functional.relu(self.second(x)).mean((2, 3)))


class Recurrent(nn.Module):
    """An LSTM, and a linear layer of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.last = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(x)[0][:, -1])


class UNet(nn.Module):
    """Down and up again by two, with a skip, and an embedding of the time: a step of a diffusion model."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.middle, self.norm, self.time = nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.Linear(8, 16)
        self.up, self.last = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outer = functional.silu(self.first(x))
        inner = functional.silu(self.down(outer))
        time = self.time(torch.sin(torch.arange(8, device=x.device) * 0.1))
        inner = functional.silu(self.norm(self.middle(inner) + time[:, None, None]))
        return self.last(torch.cat([self.up(inner), outer], 1))


@dataclass(frozen=True)
class Rung:
    """A model, and the shape of its input, whose first size is the batch."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    quick: bool = False
    input_gradient: bool = True


RUNGS = (
    Rung("pointwise", lambda: Function(pointwise), (33, 17)),
    Rung("softmax", lambda: Function(lambda x: torch.softmax(x, -1)), (33, 129), quick=True),
    Rung("layer_norm", lambda: nn.LayerNorm(100), (7, 100)),
    Rung("matmul_relu", lambda: nn.Sequential(nn.Linear(48, 33), nn.ReLU()), (17, 48), quick=True),
    Rung("reductions", lambda: Function(reductions), (37, 53)),
    Rung("embedding", Embedding, (5, 7), input_gradient=False),
    Rung(
        "mlp",
        lambda: nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 10), nn.LogSoftmax(-1)),
        (9, 20),
        quick=True,
    ),
    Rung("convolutions", Convolutions, (2, 3, 9, 9)),
    Rung("gpt_block", lambda: Block(32, 4), (2, 8, 32)),
    Rung("lstm", Recurrent, (2, 5, 16)),
    Rung("unet", UNet, (2, 1, 16, 16)),
)

#: Single precision, sums in another order.
_CLOSE = {"rtol": 1e-3, "atol": 1e-3}


def compare(rung: Rung, device: str, *, dynamic: bool) -> None:
    """Check a model compiled on the device, forward and backward, against the CPU's; two batches if ``dynamic``."""
    torch.manual_seed(0)
    expected = rung.make()
    model = copy.deepcopy(expected).to(device)
    compiled = torch.compile(model, fullgraph=rung.name != "lstm")
    for batch in (rung.shape[0], rung.shape[0] + 3)[: 1 + dynamic]:
        x = torch.randn(batch, *rung.shape[1:])
        ours, theirs = x.to(device), x.clone()
        if dynamic:
            torch._dynamo.mark_dynamic(ours, 0)
        if rung.input_gradient:
            ours.requires_grad_()
            theirs.requires_grad_()
        found, right = compiled(ours), expected(theirs)
        assert found.device.type == device
        torch.testing.assert_close(found.cpu(), right, **_CLOSE)
        found.square().sum().backward()
        right.square().sum().backward()
        if rung.input_gradient:
            torch.testing.assert_close(ours.grad.cpu(), theirs.grad, **_CLOSE)
        for name, parameter in model.named_parameters():
            gradient = expected.get_parameter(name).grad
            torch.testing.assert_close(
                parameter.grad.cpu(), gradient, **_CLOSE, msg=lambda text, name=name: name + text
            )
