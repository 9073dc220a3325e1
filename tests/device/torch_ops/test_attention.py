"""scaled_dot_product_attention by kernels, with its gradients, and what is composed instead."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from triton.backends.spirv.torch.ops import attention
from triton.backends.spirv.torch.ops.dtypes import OnHost
from triton.runtime.errors import OutOfResources

from .conftest import compare

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def _attend(**how: Any) -> Callable[..., Any]:
    """Attention, and the gradients of its query, key and value."""

    def run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *mask: torch.Tensor) -> Any:
        inputs = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
        out = F.scaled_dot_product_attention(*inputs, *mask, **how)
        out.backward(torch.arange(out.shape[-1], device=out.device).to(out.dtype).expand(out.shape))
        return [out.detach(), *(leaf.grad for leaf in inputs if leaf.grad is not None)]

    return run


def _inputs(*lead: int, rows: int = 37, keys: int = 45, width: int = 20, value_width: int = 24) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(*lead, rows, width), torch.randn(*lead, keys, width), torch.randn(*lead, keys, value_width)]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU's driver, too, is given the kernels."""
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", True)


@pytest.mark.usefixtures("kernels")
def test_values_gradients_and_what_is_not_finite() -> None:
    torch.manual_seed(1)
    seen = torch.rand(37, 45) > 0.5
    seen[3] = False  # a query that looks nowhere
    compare(_attend(), *_inputs(2, 3), seen, tolerance=(2e-4, 2e-4))
    query, key, value = _inputs(2, 3)
    query[0, 0, 5, 1], value[0, 1, 7, 2] = float("nan"), float("inf")
    compare(F.scaled_dot_product_attention, query, key, value, seen, tolerance=(2e-4, 2e-4))


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("width", [64, 96, 128])
@pytest.mark.parametrize(
    "dtype, bound", [(torch.float32, 1e-5), (torch.float16, 3e-3), (torch.bfloat16, 2e-2)], ids=str
)
def test_tiles_of_every_width_against_float64(dtype: torch.dtype, bound: float, width: int, causal: bool) -> None:
    """The tiles that the device has for them, whole and not."""
    for rows, keys in ((256, 256), (200, 130)):
        torch.manual_seed(4)
        parts = [torch.randn(1, 2, size, width).to(dtype) for size in (rows, keys, keys, rows)]

        def run(*parts: torch.Tensor) -> list[torch.Tensor]:
            inputs = [part.detach().requires_grad_() for part in parts[:3]]
            out = F.scaled_dot_product_attention(*inputs, is_causal=causal)
            return [out.detach(), *torch.autograd.grad(out, inputs, parts[3])]

        found = run(*(part.to("spirv") for part in parts))
        for one, expected in zip(found, run(*(part.double() for part in parts)), strict=True):
            assert (one.cpu().double() - expected).norm() < bound * expected.norm()


@pytest.mark.usefixtures("kernels")
def test_strides_causes_and_scales() -> None:
    def packed(x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.view(2, 33, 3, 4, 20).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v[..., 1:], is_causal=True, scale=0.3)

    torch.manual_seed(2)
    compare(packed, torch.randn(2, 33, 3 * 80), tolerance=(2e-4, 2e-4))


def _in_order(order: tuple[int, ...], *shape: int) -> torch.Tensor:
    """Random numbers whose dimensions lie in memory in this order, the outermost first."""
    return torch.randn([shape[d] for d in order]).permute([order.index(d) for d in range(4)])


#: How calls of 2 batches, 4 heads, 5 queries, 7 keys and 8 numbers differ: the order in memory of queries and of keys.
_HEADS_FIRST, _ROWS_FIRST = (0, 1, 2, 3), (0, 2, 1, 3)
_ORDERS = [(query, key) for query in (_HEADS_FIRST, _ROWS_FIRST, (1, 2, 0, 3)) for key in (_HEADS_FIRST, _ROWS_FIRST)]


@pytest.mark.parametrize("compiled", [False, True], ids=["composed", "kernel"])
def test_results_lie_as_the_cpus(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As queries do."""
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", compiled)
    torch.manual_seed(0)
    forward = F.scaled_dot_product_attention
    for query, key in _ORDERS:
        inputs = _in_order(query, 2, 4, 5, 8), _in_order(key, 2, 4, 7, 8), _in_order(key, 2, 4, 7, 8)
        compare(forward, *inputs, tolerance=(2e-4, 2e-4))
    compare(forward, *inputs, torch.rand(5, 7) > 0.5, tolerance=(2e-4, 2e-4))
    halves = (x.half() for x in inputs)
    compare(lambda *x: forward(*x, is_causal=True), *halves, tolerance=(1e-2, 1e-2))
    compare(lambda x: forward(*x.permute(2, 0, 3, 1, 4)), torch.randn(2, 5, 3, 4, 8), tolerance=(2e-4, 2e-4))


def test_what_torch_composes_on_the_cpu_lies_as_there() -> None:
    """One after another: results of values of another width, of rows that are not contiguous, and with dropout."""
    torch.manual_seed(0)
    forward = F.scaled_dot_product_attention
    query, key, value = (_in_order(_ROWS_FIRST, 2, 4, n, 8) for n in (5, 7, 7))
    compare(forward, query, key, value[..., :6], tolerance=(2e-4, 2e-4))
    compare(forward, query, _in_order((0, 1, 3, 2), 2, 4, 7, 8), value, tolerance=(2e-4, 2e-4))
    compare(forward, query[0], key[0], value[0], tolerance=(2e-4, 2e-4))
    compare(forward, query, key[:, :1], value[:, :1], tolerance=(2e-4, 2e-4))
    dropped = forward(*(x.to("spirv") for x in (query, key, value)), dropout_p=0.1)
    assert dropped.stride() == forward(query, key, value, dropout_p=0.1).stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_what_is_composed_here_alone_lies_as_the_cpus(dtype: torch.dtype) -> None:
    """float64, heads that share keys, wide heads and compiled calls: rows can be viewed with their heads joined."""
    torch.manual_seed(0)
    forward = F.scaled_dot_product_attention
    query, key, value = (_in_order(_ROWS_FIRST, 2, 4, n, 8).to(dtype) for n in (5, 7, 7))
    compare(forward, query, key, value, tolerance=(2e-2, 2e-2))
    compare(lambda *x: forward(*x, enable_gqa=True), query, key[:, :2], value[:, :2], tolerance=(2e-2, 2e-2))
    wide = (_in_order(_ROWS_FIRST, 2, 2, 5, 200).to(dtype) for _ in range(3))
    compare(forward, *wide, tolerance=(2e-2, 2e-2))

    def joined(*inputs: torch.Tensor) -> torch.Tensor:
        return forward(*inputs).transpose(1, 2).view(2, 5, 32)

    compiled = torch.compile(joined, backend="aot_eager", fullgraph=True)
    for function in (joined, compiled):
        compare(function, query, key, value, tolerance=(2e-2, 2e-2))


#: Of 2 batches, 2 heads, 5 queries and 7 keys.
_MASKS = [(2, 1, 1, 7), (2, 1, 5, 7), (5, 7), (1, 7), (1, 2, 5, 1)]


@pytest.mark.parametrize("compiled", [False, True], ids=["composed", "kernel"])
def test_masks_that_are_broadcast(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", compiled)
    query, key, value = _inputs(2, 2, rows=5, keys=7, width=16, value_width=16)
    for shape in _MASKS:
        bias = torch.randn(shape)
        for mask in (bias > 0, bias):
            compare(F.scaled_dot_product_attention, query, key, value, mask, tolerance=(2e-4, 2e-4))
    for pending in range(4):  # the place of one whose sign is

        def run(*given: torch.Tensor, at: int = pending) -> torch.Tensor:
            return F.scaled_dot_product_attention(*given[:at], torch._neg_view(given[at]), *given[at + 1 :])

        compare(run, query, key, value, torch.ones(5, 7), tolerance=(2e-4, 2e-4))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_heads_that_share_keys(dtype: torch.dtype) -> None:
    query, key, value = (x.to(dtype) for x in _inputs(2, 4, rows=5, keys=7, width=16, value_width=16))
    tolerance = (2e-4, 2e-4) if dtype == torch.float32 else (1e-2, 1e-2)
    compare(_attend(enable_gqa=True), query, key[:, :2], value[:, :2], tolerance=tolerance)


@pytest.mark.parametrize("compiled", [False, True], ids=["composed", "kernel"])
def test_heads_of_keys_that_are_broadcast(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One head of keys serves all without ``enable_gqa``, too; other numbers of heads are refused, as on the CPU."""
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", compiled)
    query, key, value = _inputs(2, 4, rows=5, keys=7, width=16, value_width=16)

    def attend(*given: torch.Tensor) -> Any:  # a stride of one head says nothing
        return [x.squeeze(1) for x in _attend()(*given)]

    compare(attend, query, key[:, :1], value[:, :1], tolerance=(2e-4, 2e-4))
    compare(attend, query, key[:1], value[:1], tolerance=(2e-4, 2e-4))
    for device in ("cpu", "spirv"):
        with pytest.raises(RuntimeError):
            _attend()(*(x.to(device) for x in (query, key[:, :2], value[:, :2])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("compiled", [False, True], ids=["composed", "kernel"])
def test_rows_of_the_smallest_number(compiled: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask of finfo.min, as models add it, leaves a query that looks nowhere the mean of all values."""
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", compiled)
    query, key, value = (x.to(dtype) for x in _inputs(2, 3, rows=5, keys=37, width=16, value_width=16))
    lowest = torch.finfo(dtype).min
    mask = torch.zeros(5, 37, dtype=dtype)
    mask[1], mask[2, 30:], mask[3] = lowest, lowest, float("-inf")
    mask[3, 7] = lowest
    exact = mask.double()
    exact[1], exact[3] = 0, float("-inf")
    exact[3, 7] = 0
    lost = torch.zeros(5, 1, dtype=torch.float64)
    lost[1] = 1  # scores beside the mask, but not their gradients
    wanted = [x.double().requires_grad_() for x in (query, key, value)]
    grad = torch.arange(16.0).double().expand(2, 3, 5, 16)
    scores = wanted[0] @ wanted[1].mT / 4
    right = torch.softmax(scores - lost * scores.detach() + exact, -1) @ wanted[2]
    right.backward(grad)
    found = _attend()(*(x.to("spirv") for x in (query, key, value)), mask.to("spirv"))
    for mine, other in zip(found, (right, *(x.grad for x in wanted)), strict=True):
        scale = other.abs().max().item() * (2e-4 if dtype == torch.float32 else 4 * torch.finfo(dtype).eps)
        torch.testing.assert_close(mine.cpu().double(), other.detach(), rtol=0, atol=scale)


@pytest.mark.parametrize("compiled", [False, True], ids=["composed", "kernel"])
def test_more_heads_than_a_grid_has_programs_on_an_axis(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", compiled)
    inputs = _inputs(32_769, 2, rows=3, keys=4, width=8, value_width=8)
    compare(_attend(), *inputs, tolerance=(2e-4, 2e-4))


def test_what_is_composed() -> None:
    query, key, value = _inputs(2, 2)
    compare(_attend(), query, key, value, torch.randn(37, 45), tolerance=(2e-4, 2e-4))
    value.fill_(1)
    dropped = F.scaled_dot_product_attention(*(x.to("spirv") for x in (query, key, value)), dropout_p=0.5)
    assert 0.8 < dropped.mean().item() < 1.2 and dropped.std().item() > 0.01


@pytest.mark.parametrize("compiled", [False, True], ids=["composed", "kernel"])
def test_halves_are_as_close_as_rounded_weights_are(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel rounds weights to float16 before their product with values, as torch's own kernels do: of the sum of
    |weight value| and of the result, a unit in the last place at most is lost. Measured: 0.8 of that, as on the CPU,
    and 0.5 where it is composed, which rounds the result alone."""
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", compiled)
    torch.manual_seed(0)
    query, key, value = (torch.rand(40, 2, n, 16).mul(18).sub(9).half() for n in (5, 7, 7))
    weights = (query.double() @ key.double().mT / 4).softmax(-1)
    exact, size = weights @ value.double(), weights @ value.double().abs()
    found = F.scaled_dot_product_attention(*(x.to("spirv") for x in (query, key, value))).cpu().double()
    unit = torch.finfo(torch.float16).eps / 2
    composed = attention._by_products(query.to("spirv"))
    assert ((found - exact).abs() <= unit * (exact.abs() + (0 if composed else size)) + 1e-6).all()


def test_forward_mode_differentiation() -> None:
    """Through torch.func and by hand. The CPU's kernel has none, so that it composes the operation."""
    q, k, v = _inputs(2, 3, rows=5, keys=7, width=4, value_width=4)

    def directional(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        def attend(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v).contiguous()

        by_hand = torch.autograd.forward_ad
        with by_hand.dual_level():
            dual = by_hand.unpack_dual(attend(by_hand.make_dual(q, q.cos()), v))
            assert dual.tangent is not None
            first = dual.primal.clone(), dual.tangent.clone()
        return *first, *torch.func.jvp(attend, (q, v), (q.sin(), v.cos()))

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        compare(directional, q, k, v, tolerance=(1e-4, 1e-5))


@pytest.mark.parametrize("reason", [OnHost("no reason"), OutOfResources(99, 9, "shared memory")], ids=["host", "room"])
@pytest.mark.parametrize("failing", ["_forward_kernel", "_backward_kernels"])
@pytest.mark.parametrize("causal", [False, True])
def test_what_the_kernels_cannot_do_is_composed(
    failing: str, reason: Exception, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise reason

    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", True)
    monkeypatch.setattr(attention, failing, fail)
    seen = torch.rand(37, 45, generator=torch.Generator().manual_seed(1)) > 0.5
    seen[3] = False
    if causal:
        compare(_attend(is_causal=True), *_inputs(2, 3), tolerance=(2e-4, 2e-4))
    else:
        compare(_attend(), *_inputs(2, 3), seen, tolerance=(2e-4, 2e-4))


def test_the_operation_itself_takes_other_types() -> None:
    query, key, value = (tensor.double().to("spirv").requires_grad_() for tensor in _inputs(2, 3))
    operation = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    out = operation(query, key, value)[0]
    (gradient,) = torch.autograd.grad(out.sum(), key)
    inputs = [tensor.detach().cpu().requires_grad_() for tensor in (query, key, value)]
    expected = F.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(out.cpu(), expected)
    torch.testing.assert_close(gradient.cpu(), torch.autograd.grad(expected.sum(), inputs[1])[0])
