"""Random numbers that are made on the device."""

from typing import Any

import pytest
import torch

from .conftest import compare

pytestmark = pytest.mark.usefixtures("no_fallbacks")
COUNT = 40_000


def test_distributions() -> None:
    torch.manual_seed(5)
    uniform, normal = torch.rand(COUNT, device="spirv").cpu(), torch.randn(COUNT, device="spirv").cpu()
    exponential = torch.empty(COUNT, device="spirv").exponential_(2).cpu()
    assert 0 <= float(uniform.min()) and float(uniform.max()) < 1
    assert abs(float(uniform.mean()) - 0.5) < 0.01 and abs(float(uniform.var()) - 1 / 12) < 0.005
    assert abs(float(normal.mean())) < 0.03 and abs(float(normal.std()) - 1) < 0.03
    assert abs(float((normal**4).mean()) - 3) < 0.3
    assert abs(float(exponential.mean()) - 0.5) < 0.02 and float(exponential.min()) >= 0
    assert len(torch.cat([uniform, torch.rand(COUNT, device="spirv").cpu()]).unique()) > 1.9 * COUNT


def test_halves_stay_below_the_end() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        drawn = torch.empty(COUNT, dtype=dtype, device="spirv").uniform_(1, 3).cpu()
        assert 1 <= float(drawn.min()) and float(drawn.max()) < 3


def test_seeds_and_states() -> None:
    torch.manual_seed(7)
    first = torch.rand(100, device="spirv").cpu()
    state = torch.spirv.get_rng_state()
    second = torch.rand(100, device="spirv").cpu()
    torch.spirv.set_rng_state(state)
    assert torch.equal(torch.rand(100, device="spirv").cpu(), second)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(10, 10, device="spirv").cpu().view(-1), first)
    assert not torch.equal(first, second)


def test_whole_numbers_and_choices() -> None:
    torch.manual_seed(5)
    drawn = torch.randint(-3, 7, (COUNT,), device="spirv").cpu()
    counts = torch.bincount(drawn + 3, minlength=10) / COUNT
    assert drawn.min() == -3 and drawn.max() == 6 and float((counts - 0.1).abs().max()) < 0.02
    assert torch.randint(5, 6, (3, 4), dtype=torch.float32, device="spirv").unique().tolist() == [5.0]
    chances = torch.tensor([0.1, 0.5, 0.0, 1.0], device="spirv").expand(COUNT, 4)
    means = torch.bernoulli(chances).mean(0).cpu()
    assert float((means - chances[0].cpu()).abs().max()) < 0.02
    weights = torch.tensor([[1.0, 2, 0, 5], [0, 0, 3, 1]], device="spirv")
    shares = weights.cpu() / weights.cpu().sum(1, keepdim=True)
    for found in (
        torch.multinomial(weights, COUNT, replacement=True).cpu(),
        torch.multinomial(weights.repeat_interleave(COUNT, 0), 1).view(2, COUNT).cpu(),
    ):
        seen = torch.stack([torch.bincount(row, minlength=4) for row in found]) / COUNT
        assert float((seen - shares).abs().max()) < 0.02 and not seen[0, 2] and not seen[1, :2].any()
    assert torch.multinomial(weights, 2).sort()[0].tolist()[1] == [2, 3]


def test_dropout() -> None:
    torch.manual_seed(1)
    x = torch.ones(COUNT, device="spirv", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    kept = y.detach().cpu()
    assert abs(float((kept == 0).float().mean()) - 0.25) < 0.01
    assert kept[kept != 0].unique().tolist() == pytest.approx([4 / 3])
    assert x.grad is not None and torch.equal(x.grad.cpu(), kept)


@pytest.mark.usefixtures("no_fallbacks")
def test_complex_numbers() -> None:
    torch.manual_seed(3)
    x = torch.empty(40000, dtype=torch.complex64, device="spirv").normal_(1.0, 3.0).cpu()
    assert abs(x.mean() - 1) < 0.1
    assert abs(x.real.var() - 4.5) < 0.2 and abs(x.imag.var() - 4.5) < 0.2
    assert abs(((x.real - 1) * x.imag).mean()) < 0.1
    torch.manual_seed(3)
    again = torch.randn(40000, dtype=torch.complex64, device="spirv").cpu()
    torch.testing.assert_close(again, (x - 1) / 3, rtol=1e-5, atol=1e-5)


def test_rrelu_draws_slopes_of_what_is_not_positive() -> None:
    x = torch.randn(2000, device="spirv")
    x[:3] = torch.tensor([float("nan"), float("inf"), float("-inf")])
    x = x.requires_grad_()
    out = torch.nn.functional.rrelu(x, 0.2, 0.3, training=True)
    (grad,) = torch.autograd.grad(out.nan_to_num(0, 0, 0).sum(), x)
    given, found, slope = (tensor.detach().cpu()[3:] for tensor in (x, out, grad))
    assert torch.equal(found[given > 0], given[given > 0]) and (slope[given > 0] == 1).all()
    below = slope[given <= 0]
    assert ((below >= 0.2) & (below < 0.3)).all() and below.unique().numel() > below.numel() * 0.9
    torch.testing.assert_close(found[given <= 0], (given * slope)[given <= 0])
    assert abs(below.mean().item() - 0.25) < 0.005
    ends = out.detach().cpu()[:3]
    assert ends[0].isnan() and ends[1] == float("inf") and ends[2] == float("-inf")
    inplace = x.detach().clone().t()
    assert torch.nn.functional.rrelu_(inplace, 0.2, 0.3, training=True) is inplace


def test_rrelu_without_training() -> None:
    def run(x: torch.Tensor) -> Any:
        noise = torch.zeros_like(x)
        plain = torch.ops.aten.rrelu_with_noise(x, noise, 0.2, 0.3, False)
        return plain, noise, torch.nn.functional.rrelu(x), torch.nn.functional.rrelu(x, 0.1, 0.4)

    compare(run, torch.tensor([-1.0, 0.0, -0.0, 2.0, float("nan"), float("inf"), -float("inf")]))
    compare(run, torch.randn(3, 4).t())


@pytest.mark.parametrize(
    ("low", "high"), [(-(2**63), 2**63 - 1), (-(2**63), 2**62), (5, 2**32 + 9), (-1, 3 * 2**40)], ids=str
)
def test_whole_numbers_of_wide_ranges(low: int, high: int) -> None:
    """A remainder of 64 bits would draw the lower two thirds of three quarters of them twice as often."""
    torch.manual_seed(5)
    drawn = torch.randint(low, high, (COUNT,), device="spirv").cpu()
    assert low <= int(drawn.min()) and int(drawn.max()) < high
    share = torch.tensor([(number - low) / (high - low) for number in drawn.tolist()])
    assert (torch.histc(share, 8, 0, 1) / COUNT - 1 / 8).abs().max() < 0.01
    assert len(drawn.unique()) > 0.99 * COUNT


def test_all_whole_numbers_of_64_bits() -> None:
    torch.manual_seed(5)
    drawn = torch.empty(COUNT, dtype=torch.int64, device="spirv").random_(-(2**63), None).cpu()
    for bit in range(64):
        assert abs(float(((drawn >> bit) & 1).double().mean()) - 0.5) < 0.02


def test_a_compiled_dropout_runs_on_the_device() -> None:
    """Inductor draws its seeds from all whole numbers."""
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5))
    for _ in range(2):
        kept = compiled(torch.ones(COUNT, device="spirv")).cpu()
    assert abs(float((kept == 2).double().mean()) - 0.5) < 0.02 and set(kept.tolist()) == {0.0, 2.0}
