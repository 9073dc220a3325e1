"""What `python3 -m tools windows --torch` runs in Windows' Python: torch's device `spirv` against torch on the CPU.

A line for each that was right; an assertion for the first that was not. Bounds are of single precision: the largest
error of each, divided by the largest value that float64 gives.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
import triton

if TYPE_CHECKING:
    from .windows_probe import COLUMNS, ROWS, softmax
else:  # a script of its own, beside that one
    from windows_probe import COLUMNS, ROWS, softmax

DEVICE = "spirv"
_BOUND = 1e-5


def numbers(*shape: int) -> torch.Tensor:
    """Normal numbers in float64 that float32 has, the same ones for the same shape."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).double()


#: A name, what is computed, and what it takes.
OPERATIONS: tuple[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]], ...] = (
    ("sums and products", lambda x, y: x * y + x - 2 * y, (numbers(7, 777), numbers(7, 777))),
    ("broadcasting, a transposed operand", lambda x, y: x.T / (2 + y.abs()), (numbers(33, 65), numbers(33))),
    ("elementary functions", lambda x: x.exp() + x.sin() + (1 + x * x).log() + x.tanh(), (numbers(1001),)),
    ("sum, mean, variance", lambda x: x.sum(1) + x.mean(1) + x.var(1), (numbers(9, 1000),)),
    ("maximum and where it is", lambda x: x.max(1).values + x.argmax(1), (numbers(9, 777),)),
    ("cumulative sum", lambda x: x.cumsum(1), (numbers(5, 300),)),
    ("sort", lambda x: x.sort(1).values, (numbers(4, 100),)),
    ("softmax", lambda x: F.softmax(x, 1), (numbers(7, 777),)),
    ("layer norm", lambda x: F.layer_norm(x, (777,)), (numbers(7, 777),)),
    ("product of matrices", lambda x, y: x @ y, (numbers(65, 70), numbers(70, 33))),
    ("products of batches", lambda x, y: torch.bmm(x, y), (numbers(3, 20, 33), numbers(3, 33, 17))),
    ("convolution", lambda x, w: F.conv2d(x, w, padding=1), (numbers(2, 3, 17, 19), numbers(8, 3, 3, 3))),
    ("pooling", lambda x: F.max_pool2d(x, 2), (numbers(2, 3, 16, 18),)),
    ("causal attention", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (numbers(1, 2, 70, 32),)),
    ("indexing by a mask", lambda x: x[x > 0].sum(), (numbers(1000),)),
    ("gathering rows", lambda x: x[torch.arange(0, 50, 7, device=x.device)], (numbers(50, 13),)),
    ("concatenation", lambda x, y: torch.cat([x, y], 1), (numbers(6, 7), numbers(6, 8))),
)


def report(name: str, found: torch.Tensor, expected: torch.Tensor, bound: float = _BOUND) -> None:
    """Prints the largest error of ``found``; an assertion if it is above the bound."""
    assert found.device.type == DEVICE and found.shape == expected.shape, (name, found.device, found.shape)
    error = float((found.cpu().double() - expected).abs().max() / max(1.0, float(expected.abs().max())))
    assert error <= bound, f"{name}: the largest error is {error}"
    print(f"{name}: largest error {error:.1e}", flush=True)


def on_the_device(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Copies in float32."""
    return [one.float().to(DEVICE) for one in tensors]


def kernel() -> None:
    """A kernel of this program's own, on tensors of the device and on the CPU's."""
    x = numbers(ROWS, COLUMNS)
    expected = F.softmax(x, 1)
    (given,) = on_the_device(x)
    out = torch.empty_like(given)
    softmax[(ROWS,)](given, out, COLUMNS, BLOCK=1024)
    report("a kernel on its tensors", out, expected)
    in_place = triton.runtime.driver.active.get_active_torch_device()
    ours, theirs = x.float().to(in_place), torch.empty(ROWS, COLUMNS, device=in_place)
    softmax[(ROWS,)](ours, theirs, COLUMNS, BLOCK=1024)
    report(f"a kernel on tensors of {in_place}", theirs.to(DEVICE), expected)


def trained(device: str, dtype: torch.dtype, steps: int = 5) -> tuple[list[float], torch.nn.Module]:
    """Losses of a small network, and the network behind its last step of AdamW."""
    torch.manual_seed(3)
    layers = (torch.nn.Linear(20, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 5))
    model = torch.nn.Sequential(*layers).to(device, dtype)
    x, wanted = numbers(48, 20).to(dtype).to(device), (torch.arange(48) % 5).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), wanted)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, model


def training() -> None:
    """The losses are those in float64, and parameters come back from a file."""
    (expected, reference), (found, model) = trained("cpu", torch.float64), trained(DEVICE, torch.float32)
    assert expected[-1] < expected[0], expected
    report(
        "losses of five steps", torch.tensor(found, device=DEVICE), torch.tensor(expected, dtype=torch.float64), 1e-4
    )
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    kept = torch.load(file)
    for (name, one), other in zip(kept.items(), reference.state_dict().values(), strict=True):
        report(f"saved and loaded, {name}", one, other, 1e-3)


def compiled() -> None:
    """torch.compile: forward and backward, without a C++ compiler; and what needs one says so."""
    x, w = numbers(48, 20), numbers(20, 33)

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.softmax(F.gelu(x @ w) * 2 + 1, -1)

    expected = function(x, w)
    given, weights = (one.requires_grad_() for one in on_the_device(x, w))
    found = torch.compile(function)(given, weights)
    report("torch.compile", found.detach(), expected)
    (found * found).sum().backward()
    reference, parameters = x.requires_grad_(), w.requires_grad_()
    (function(reference, parameters) ** 2).sum().backward()
    for name, one, other in (("x", given, reference), ("w", weights, parameters)):
        assert one.grad is not None and other.grad is not None
        report(f"torch.compile, the gradient of {name}", one.grad, other.grad)
    try:
        torch.compile(function)(x.detach(), w.detach())
        print("torch.compile for the CPU: torch found a C++ compiler", flush=True)
    except Exception as error:  # torch's own: its code for CPUs is C++
        assert "Compiler: cl is not found" in str(error), error
        print("torch.compile for the CPU: refused by torch, as there is no compiler of MSVC", flush=True)


def threads() -> None:
    """Four threads compute at once."""
    x = numbers(65, 70)
    found: list[torch.Tensor] = []

    def compute() -> None:
        (given,) = on_the_device(x)
        found.append(given @ given.T + 1)

    started = [threading.Thread(target=compute) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert len(found) == len(started), "a thread failed"
    for one in found:
        report("one of four threads", one, x @ x.T + 1)


def random_numbers() -> None:
    """One seed gives the same numbers again, which are spread as they should be."""
    torch.manual_seed(5)
    first = torch.randn(100_000, device=DEVICE)
    torch.manual_seed(5)
    assert torch.equal(first, torch.randn(100_000, device=DEVICE))
    report("mean of random numbers", first.mean(), torch.zeros((), dtype=torch.float64), 0.02)
    report("their deviation", first.std(), torch.ones((), dtype=torch.float64), 0.02)


def main() -> None:
    print(f"torch {torch.__version__}", flush=True)
    for name, function, tensors in OPERATIONS:
        report(name, function(*on_the_device(*tensors)), function(*tensors))
    kernel()
    random_numbers()
    training()
    threads()
    compiled()


if __name__ == "__main__":
    main()
