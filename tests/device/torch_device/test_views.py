"""Views of tensors on the device: the same sizes, strides, elements and errors as the CPU's."""

import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

Views = Callable[[torch.Tensor], torch.Tensor]


def outcome(call: Views, x: torch.Tensor) -> Any:
    """What a view is, or why there is none."""
    try:
        made = call(x)
    except RuntimeError as error:
        return str(error).split(" at index ")[0].split("\n")[0]
    assert made.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return made.size(), made.stride(), made.storage_offset(), made._is_view(), made.cpu().tolist()


def same(call: Views, base: torch.Tensor, of: Views = lambda x: x) -> Any:
    """Of both devices, which must agree."""
    found = outcome(call, of(base.to("spirv")))
    assert found == outcome(call, of(base))
    return found


def _shape(draw: random.Random, elements: int) -> list[int]:
    """Sizes with so many elements, nearly always."""
    sizes, left = [], elements
    while left > 1 and len(sizes) < 4:
        size = draw.choice([size for size in range(1, left + 1) if left % size == 0])
        sizes.append(size)
        left //= size
    sizes.append(left)
    draw.shuffle(sizes)
    if draw.random() < 0.3:
        sizes[draw.randrange(len(sizes))] = draw.choice([-1, -1, 1, 0, 2])
    return sizes


@pytest.mark.parametrize("seed", range(4))
def test_drawn_views(seed: int) -> None:
    """Of tensors with gaps, overlaps, turned and single dimensions."""
    draw = random.Random(seed)
    made = 0
    for _ in range(300):
        sizes = [draw.choice([1, 1, 2, 3, 4, 6]) for _ in range(draw.randrange(1, 5))]
        turned = draw.sample(range(len(sizes)), len(sizes))
        cut, wide = draw.random() < 0.3, draw.random() < 0.2

        def of(x: torch.Tensor, turned: list[int] = turned, cut: bool = cut, wide: bool = wide) -> torch.Tensor:
            x = x.permute(turned)
            x = x[..., : (x.shape[-1] + 1) // 2] if cut else x
            return x[:, None].expand(x.shape[0], 3, *x.shape[1:]) if wide else x

        base = torch.arange(torch.Size(sizes).numel()).reshape(sizes)
        target = _shape(draw, of(base).numel())
        made += not isinstance(same(lambda x, to=tuple(target): x.view(to), base, of), str)  # type: ignore[misc]
    assert 50 < made < 300


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.view(7),
        lambda x: x.view(-1, -1),
        lambda x: x.view(-2, 3),
        lambda x: x.t().view(-1),
        lambda x: x[:0].view(-1, 0),
        lambda x: x[:0].view(0, 5, 3),
        lambda x: x[0, 0].view(()),
        lambda x: x[0, 0].view(1, 1),
        lambda x: x.as_strided((2, 3), (1, 2), 1),
        lambda x: x[1:].as_strided((2, 2), (2, 1)),
        lambda x: x.as_strided((24,), (1,)),
        lambda x: x.as_strided((25,), (1,)),
        lambda x: x.as_strided((2,), (1,), 23),
        lambda x: x.as_strided((0, 9), (100, 100)),
        lambda x: x.as_strided((3,), (0,), 23),
        lambda x: x.as_strided((2,), (-1,)),
        lambda x: x.as_strided((2**40, 2), (2**40, 1)),
        lambda x: x.as_strided((2**33, 2**33), (2**33, 2**33)),
        lambda x: x.view(2**32, 2**32, 24),
        lambda x: x.as_strided((2,), (1, 1)),
        lambda x: x.as_strided((2,), (1,), -1),
        lambda x: x.as_strided((-2,), (1,)),
        lambda x: x[:, 1:3].reshape(2, 2, 2, 2),
        lambda x: torch.ops.aten._unsafe_view(x, (6, 4)),
    ],
)
def test_views_and_errors(call: Views) -> None:
    same(call, torch.arange(24).reshape(4, 6))


def test_views_keep_what_torch_knows() -> None:
    """Versions, gradients, pending conjugations, and that they are normal tensors in inference mode."""
    x = torch.randn(4, 6, device="spirv", requires_grad=True)
    (x.view(3, 8).t() * 2).sum().backward()
    assert x.grad is not None and x.grad.cpu().eq(2).all()
    y = torch.zeros(4, 6, device="spirv")
    y.view(-1)[3] = 5.0
    assert y._version == 1 and y.cpu()[0, 3] == 5
    z = torch.randn(4, 6, dtype=torch.complex64)
    turned = z.to("spirv").conj().view(6, 4)
    assert turned.is_conj() and torch.equal(turned.cpu(), z.conj().view(6, 4))
    with torch.inference_mode():
        views = y.view(6, 4), y.t(), y.as_strided((2, 2), (1, 3), 5)
        assert not any(view.is_inference() for view in views)
        made = (y * 2).view(6, 4)
        assert made.is_inference()
    host = y.cpu()
    for view, wanted in zip(views, (host.view(6, 4), host.t(), host.as_strided((2, 2), (1, 3), 5)), strict=True):
        assert torch.equal(view.cpu(), wanted)


def test_without_torchs_c_interface() -> None:
    """The CPU's kernels serve, through Python."""
    program = (
        "import sys\n"
        "from triton.backends.spirv.torch.device import native_module\n"
        "native_module.torch_native().enter_torch_views = lambda: False\n"
        "import torch\n"
        "x = torch.arange(6, device='spirv').view(2, 3).t()\n"
        "assert x.cpu().tolist() == [[0, 3], [1, 4], [2, 5]]\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)
