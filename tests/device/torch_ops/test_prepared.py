"""Operations that repeat earlier calls of their kind: their results, and which calls are told apart."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from triton import knobs
from triton.backends.spirv import settings
from triton.backends.spirv.runtime import context as vulkan_context
from triton.backends.spirv.torch import registration
from triton.backends.spirv.torch.ops import launching, prepared

#: How often a call is made: it is watched once, or as often as it prepares something of its own.
_TIMES = 4


def _again(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[Any]:
    """What calls with other numbers each give, compared with the CPU's."""
    given = []
    for seed in range(_TIMES):
        torch.manual_seed(seed)
        inputs = [torch.randn(shape).mul(4).to(dtype) for shape in shapes]
        result = function(*(x.to("spirv") for x in inputs))
        torch.testing.assert_close(
            result, function(*inputs), rtol=2e-5, atol=2e-5, check_device=False, check_stride=True
        )
        given.append(result)
    return given


def _overlapping(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat((x[1:] + x[:-1], x[2:] * x[:-2], x[:-1] + y[1:]))


_CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "number": lambda x, y: (x * 0.1, 2 - x, x**2, x / 3),
    "itself": lambda x, y: x * x,
    "in place": lambda x, y: (x.add_(y), x),
    "itself in place": lambda x, y: (x.mul_(x), x),
    "overlapping views": _overlapping,
    "out": lambda x, y: torch.add(x, y, out=torch.empty_like(x)),
    "resized out": lambda x, y: torch.add(x, y, out=x.new_empty(0)),
    "transposed": lambda x, y: (x.t() + y.t(), x.t().contiguous(), x.t().clone()),
    "expanded": lambda x, y: x[:1].expand(8, 16) + y,
    "sums": lambda x, y: (x.sum(), x.mean(-1, keepdim=True), x.amax(0), x.var(1)),
    "products": lambda x, y: (x @ y.t(), torch.addmm(x[0, :8], x, y.t(), alpha=0.5)),
    "rows": lambda x, y: (F.layer_norm(x, (16,), y[0], y[1]), x.softmax(-1), F.gelu(x)),
    "types": lambda x, y: (x.to(torch.bfloat16), x.to(torch.int32), x > y, torch.where(x > y, x, y)),
    "lists": lambda x, y: (torch.cat((x, y)), torch.stack((x, y), 1), x.split(4)[1].clone()),
    "new": lambda x, y: (torch.zeros_like(x), x.new_full((3,), 2.0), torch.ones_like(y, dtype=torch.int64)),
    "counted": lambda x, y: (torch.arange(5, device=x.device), torch.arange(1, 9, 2.5, dtype=y.dtype, device=y.device)),
    "copies": lambda x, y: (x.clone(), x.t().clone(), x[:, ::2].clone(memory_format=torch.contiguous_format)),
    "gradients of parts": lambda x, y: (
        torch.ops.aten.select_backward(x[0], (8, 16), 0, 3),
        torch.ops.aten.slice_backward(x[2:6], (8, 16), 0, 2, 6, 1),
        torch.ops.aten.diagonal_backward(x.diagonal(), (8, 16), 0, 0, 1),
    ),
    "larger images": lambda x, y: (
        F.interpolate(x[None, None], scale_factor=2.0),
        F.interpolate(y[None, None], size=(5, 33), mode="bilinear"),
    ),
    "attention": lambda x, y: F.scaled_dot_product_attention(x[None, None], y[None, None], x[None, None]),
}


@pytest.mark.parametrize("name", _CALLS)
def test_results_are_the_cpus(name: str, no_fallbacks: None) -> None:
    _again(_CALLS[name], (8, 16), (8, 16))


def _needs_prepared_calls() -> None:
    if vulkan_context.of_device(0).validates or settings.CHECK_RACES.get():
        pytest.skip("launches that are validated or checked are not prepared")


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Launches that go through Python from now on."""
    _needs_prepared_calls()
    seen: list[Any] = []
    launch = (kernel := launching.OperationKernel).launch
    monkeypatch.setattr(kernel, "launch", lambda *args, **how: (seen.append(args), launch(*args, **how)))
    return seen


def test_a_call_like_an_earlier_one_goes_through_no_python(launches: list[Any]) -> None:
    x, y = torch.randn(6, 14, device="spirv"), torch.randn(6, 14, device="spirv")
    for _ in range(_TIMES):
        (x + y).mul_(y).sum(-1)
        F.layer_norm(x, (14,))
        x.t().contiguous()
        F.interpolate(x[None, None], scale_factor=2.0)
        torch.arange(14, device="spirv")
        torch.ops.aten.select_backward(x[0], (6, 14), 0, 3)
    launches.clear()
    made = (x + y).mul_(y).sum(-1), F.layer_norm(x, (14,)), x.t().contiguous()
    F.interpolate(x[None, None], scale_factor=2.0)
    torch.arange(14, device="spirv")
    torch.ops.aten.select_backward(x[0], (6, 14), 0, 3)
    assert launches == []
    host = x.cpu(), y.cpu()
    torch.testing.assert_close(made[0].cpu(), ((host[0] + host[1]) * host[1]).sum(-1), rtol=2e-5, atol=2e-5)


def test_the_first_call_of_a_kind_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is what it is composed of."""
    _needs_prepared_calls()
    recorded: list[Any] = []
    recorder = prepared._Recorder
    monkeypatch.setattr(prepared, "_Recorder", lambda *call: recorded.append(call) or recorder(*call))
    given = [torch.randn(n, 14, device="spirv") for n in range(301, 311)]
    operations = (lambda x: x + x, F.gelu, lambda x: F.layer_norm(x, (14,)), lambda x: x.sum(-1), lambda x: x @ x.t())
    for operation in operations:
        recorded.clear()
        for fewest in (0, len(given)):
            for x in given:
                operation(x)
            assert len(recorded) >= fewest and (fewest or not recorded)


@pytest.mark.usefixtures("compiled")
def test_the_kind_unused_for_longest_is_dropped(launches: list[Any]) -> None:
    often, once = torch.ones(3, 5, device="spirv"), torch.ones(5, 3, device="spirv")
    memory = torch.ones(1100, device="spirv")
    for x in (often, once) * _TIMES:
        x.erfinv()
    for n in range(1, 1101):
        for _ in range(2):
            memory[:n].erfinv()
        often.erfinv()
    launches.clear()
    often.erfinv()
    memory.erfinv()
    assert launches == []
    once.erfinv()
    assert len(launches) == 1


def test_convolutions_like_earlier_ones_go_through_no_python(launches: list[Any]) -> None:
    """Their copies of images and weights among them."""
    how = [2, 2], [1, 1], [1, 1], False, [0, 0], 1
    images = [torch.randn(2, 5, 9, 7, device="spirv") for _ in range(_TIMES + 1)]
    w = torch.randn(6, 5, 3, 3, device="spirv")
    for x in images[1:]:
        y = torch.ops.aten.convolution(x, w, None, *how)
        torch.ops.aten.convolution_backward(y, x, w, None, *how, [True, True, False])
    launches.clear()
    y = torch.ops.aten.convolution(images[0], w, None, *how)
    gradients = torch.ops.aten.convolution_backward(y, images[0], w, None, *how, [True, True, False])[:2]
    assert launches == []
    host = images[0].cpu(), w.cpu()
    wanted = torch.ops.aten.convolution(*host, None, *how)
    grads = torch.ops.aten.convolution_backward(wanted, *host, None, *how, [True, True, False])[:2]
    torch.testing.assert_close([y.cpu(), *(g.cpu() for g in gradients)], [wanted, *grads], rtol=1e-4, atol=1e-3)


def test_results_have_memory_of_their_own() -> None:
    x = torch.arange(5.0, device="spirv")
    made = [x + n for n in (1, 1, 1, 1)]
    made[0].zero_()
    assert [one.tolist() for one in made[1:]] == [[1.0, 2.0, 3.0, 4.0, 5.0]] * 3


def test_other_distances_of_overlapping_tensors_are_other_calls() -> None:
    for by in (0, 1, 8, 1, 2, 8, 4, 1, 2, 9):
        base, expected = torch.arange(20.0, device="spirv"), torch.arange(20.0)
        products = base[by : by + 8] * base[:8]
        torch.testing.assert_close(products.cpu(), expected[by : by + 8] * expected[:8])
        if 0 < by < 8:
            with pytest.raises(RuntimeError, match="single memory location"):
                base[by : by + 8].add_(base[:8])
        else:
            base[by : by + 8].add_(base[:8])
            expected[by : by + 8].add_(expected[:8])
        torch.testing.assert_close(base.cpu(), expected)


def test_rows_of_one_tensor_are_not_joined_in_later_calls() -> None:
    for apart in (1, 2):
        x, y = (torch.randn(9, 1, 80 * apart, device="spirv") for _ in range(2))
        for pair in ([x[3], y[0]], [y[2], y[2 + apart]], [x[5], y[7]], [y[4], x[0]]):
            torch.testing.assert_close(torch.cat(pair).cpu(), torch.cat([row.cpu() for row in pair]), rtol=0, atol=0)


def test_numbers_that_change_are_not_those_of_an_earlier_call() -> None:
    x = torch.arange(4.0, device="spirv")
    for n in range(24):
        assert (x * (n + 0.5)).tolist() == [i * (n + 0.5) for i in range(4)]
        assert (x + n).tolist() == [i + n for i in range(4)]
    assert [torch.copysign(x, zero).tolist()[1] for zero in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]


def test_kinds_of_numbers_and_the_default_type_are_told_apart() -> None:
    x = torch.arange(4, device="spirv")
    for _ in range(_TIMES):
        assert ((x * 2).dtype, (x * 2.0).dtype, (x * True).dtype) == (torch.int64, torch.float32, torch.int64)
        assert (x / 2).dtype == torch.float32
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert (x * 2.0).dtype == (x / 2).dtype == torch.bfloat16
    finally:
        torch.set_default_dtype(torch.float32)


def test_alignment_is_told_apart() -> None:
    base = torch.arange(64.0, device="spirv")
    for start in (0, 4, 1, 2, 3, 8, 1):
        assert (base[start : start + 16] * 2).tolist() == [2.0 * (start + i) for i in range(16)]


def test_gradients_and_versions_are_torchs() -> None:
    x = torch.randn(4, 4, device="spirv", requires_grad=True)
    for _ in range(_TIMES):
        y = x * 2
        z = y.exp()
        assert z.grad_fn is not None and z._version == 0
        z.add_(1)
        assert z._version == 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_random_numbers_are_drawn_each_time() -> None:
    x = torch.ones(1000, device="spirv")
    drawn = [torch.rand_like(x).tolist() for _ in range(_TIMES)] + [F.dropout(x, 0.5).tolist() for _ in range(_TIMES)]
    assert all(one != other for n, one in enumerate(drawn) for other in drawn[:n])


def test_what_runs_on_the_cpu_is_counted_each_time() -> None:
    x = torch.randn(8, 8, dtype=torch.complex64, device="spirv")
    before = registration.FALLBACKS.total()
    for n in range(_TIMES):
        torch.linalg.eigvals(x)
        assert registration.FALLBACKS.total() > before + n


def test_faults_of_later_calls_are_raised() -> None:
    table, good, bad = (torch.tensor(of, device="spirv") for of in ([[0.5] * 3] * 4, [1, 2], [1, 7]))
    for _ in range(_TIMES):
        F.embedding(good, table).cpu()
    for _ in range(2):
        with pytest.raises(IndexError, match="index was out of range"):
            F.embedding(bad, table).cpu()
        F.embedding(good, table).cpu()
    integers, zeros = (torch.tensor([n] * 4, device="spirv") for n in (1, 0))
    for _ in range(_TIMES):
        torch.remainder(integers, integers).cpu()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.remainder(integers, zeros).cpu()


def test_errors_of_calls_are_torchs_each_time() -> None:
    x = torch.ones(3, device="spirv", dtype=torch.int64)
    for _ in range(_TIMES):
        with pytest.raises(RuntimeError, match="can't be cast"):
            x.mul_(0.5)
        with pytest.raises(RuntimeError, match="bool tensor"):
            _ = (x > 0) - True
        with pytest.raises(RuntimeError):
            _ = x + torch.ones(4, device="spirv")


def test_launch_hooks_see_later_calls() -> None:
    x, seen = torch.ones(4, device="spirv"), []
    for _ in range(_TIMES):
        _ = x + x
    hook = lambda metadata: seen.append(metadata)  # noqa: E731
    knobs.runtime.launch_enter_hook.add(hook)
    try:
        _ = x + x
    finally:
        knobs.runtime.launch_enter_hook.remove(hook)
    assert len(seen) == 1


def test_tensors_of_the_cpu_are_refused_each_time() -> None:
    x = torch.ones(4, device="spirv")
    for _ in range(_TIMES):
        _ = x + x
        with pytest.raises(RuntimeError):
            _ = x + torch.ones(4)


def _leaves(*shapes: tuple[int, ...]) -> list[list[torch.Tensor]]:
    """The same lists of tensors on the device and on the CPU."""
    on_cpu = [torch.randn(shape) for shape in shapes]
    return [[tensor.to("spirv") for tensor in on_cpu], on_cpu]


def test_lists_of_many_tensors_go_through_no_python(launches: list[Any]) -> None:
    torch.manual_seed(0)
    shapes = [(7, 5), (3,), (), (2, 3, 4), *[(n,) for n in range(1, 30)]]
    values, others, squares = (_leaves(*shapes) for _ in range(3))
    for step in range(6):
        launches.clear()
        for on in range(2):
            squares[on] = [tensor.abs_() for tensor in squares[on]]
            torch._foreach_mul_(values[on], 0.9)
            torch._foreach_addcdiv_(values[on], others[on], squares[on], -0.5)
            torch._foreach_lerp_(others[on], values[on], 0.25)
        # A call is recorded when it comes again, and calls of earlier tests may have had the first one forgotten.
        assert step < 3 or launches == []
        torch.testing.assert_close(values[0], values[1], rtol=2e-5, atol=2e-5, check_device=False)
        torch.testing.assert_close(others[0], others[1], rtol=2e-5, atol=2e-5, check_device=False)


def test_a_fused_step_goes_through_no_python(launches: list[Any]) -> None:
    torch.manual_seed(0)
    shapes = [(n % 5 + 1, n) for n in range(1, 25)]
    params = [[torch.nn.Parameter(tensor) for tensor in on] for on in _leaves(*shapes)]
    grads = _leaves(*shapes)
    optimizers = [torch.optim.AdamW(on, lr=0.01, fused=True) for on in params]
    for step in range(6):
        launches.clear()
        for on, optimizer in enumerate(optimizers):
            for parameter, grad in zip(params[on], grads[on], strict=True):
                parameter.grad = grad
            if step == 5:
                optimizer.param_groups[0]["lr"] = 0.5  # another number is another call
            optimizer.step()
        assert step in (0, 1, 2, 5) or launches == []
        torch.testing.assert_close(params[0], params[1], rtol=2e-5, atol=2e-5, check_device=False)


def test_lists_with_other_addresses_types_and_orders_are_told_apart() -> None:
    torch.manual_seed(0)
    base, expected = torch.randn(64).to("spirv"), torch.zeros(0)
    expected = base.cpu()
    for place in (0, 4, 1, 0, 4, 1, 0, 4, 1):
        views = [[on[place : place + 6].view(2, 3), on[place + 32 : place + 40]] for on in (base, expected)]
        for lists in views:
            torch._foreach_mul_(lists, 1.5)
        torch.testing.assert_close(base.cpu(), expected)
        for lists in views:
            torch._foreach_add_([lists[0].t(), lists[1]], [lists[0].t(), lists[1]])
        torch.testing.assert_close(base.cpu(), expected)


def test_tables_stay_as_long_as_calls_use_them() -> None:
    kept, expected = torch.ones(5, device="spirv"), 1.0
    for _ in range(4):
        torch._foreach_mul_([kept], 2.0)
        expected *= 2
    others = [torch.ones(5, device="spirv") for _ in range(70)]  # as many tables are kept of calls like this
    for other in others:
        torch._foreach_mul_([other], 2.0)
    junk = [torch.full((64,), -1, dtype=torch.int64, device="spirv") for _ in range(50)]
    torch._foreach_mul_([kept], 2.0)
    assert kept.tolist() == [expected * 2] * 5
    assert all(other.tolist() == [2.0] * 5 for other in others)
    assert all((one == -1).all() for one in junk)


def test_lists_of_lazily_negative_tensors() -> None:
    base = torch.randn(6, dtype=torch.complex64)
    plain, negative = base.imag.contiguous(), base.conj().imag
    on, on_negative = plain.to("spirv"), base.to("spirv").conj().imag
    assert negative.is_neg() and on_negative.is_neg()
    like = on.repeat_interleave(2).roll(1)[1::2]  # of the same strides and place within 16 bytes
    assert (like.stride(), like.data_ptr() % 16) == (on_negative.stride(), on_negative.data_ptr() % 16)
    for one, other in ((like, plain), (like, plain), (on_negative, negative), (like, plain)):
        torch.testing.assert_close(torch.cat((one, one)).cpu(), torch.cat((other, other)))
        torch.testing.assert_close(torch.stack((one, like)).cpu(), torch.stack((other, plain)))
        results = [torch.zeros(6, device="spirv")], [torch.zeros(6)]
        torch._foreach_add_(results[0], [one])
        torch._foreach_add_(results[1], [other])
        torch._foreach_copy_(results[0], [one])
        torch.testing.assert_close(results[0][0].cpu(), other.resolve_neg())


@pytest.mark.parametrize("masked", [False, True])
def test_the_gradient_of_attention_goes_through_no_python(launches: list[Any], masked: bool) -> None:
    q, k, v, grad = (torch.randn(2, 3, 9, 16) for _ in range(4))
    mask = torch.randn(9, 9) > 0 if masked else None
    found = []
    for device in ("spirv", "spirv", "spirv", "cpu"):
        inputs = [tensor.to(device).requires_grad_() for tensor in (q, k, v)]
        on = None if mask is None else mask.to(device), grad.to(device)
        launches.clear()
        result = F.scaled_dot_product_attention(*inputs, attn_mask=on[0])
        result.backward(on[1])
        found.append((result.detach().cpu(), *(tensor.grad.cpu() for tensor in inputs)))
        seen = [*launches]
        if len(found) == 3:
            assert seen == []
    for one in found[:3]:
        torch.testing.assert_close(one, found[3], rtol=2e-5, atol=2e-5)


def test_attention_within_a_mode_or_with_tangents_is_done_anew() -> None:
    from torch.autograd import forward_ad
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    q, tangent = torch.randn(1, 1, 4, 8, device="spirv"), torch.randn(1, 1, 4, 8, device="spirv")
    expected = [F.scaled_dot_product_attention(q, q, q) for _ in range(3)][-1]
    with Seen():
        again = F.scaled_dot_product_attention(q, q, q)
    assert names and torch.equal(again.cpu(), expected.cpu())
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, tangent)
        assert forward_ad.unpack_dual(F.scaled_dot_product_attention(dual, q, q)).tangent is not None


def test_empty_arguments_are_told_apart() -> None:
    x = torch.arange(6.0, device="spirv")
    for _ in range(_TIMES):
        for count in (0, 2, 0, 1):
            assert torch.cat((x[:count], x[1:3])).tolist() == [*range(count), 1.0, 2.0]
            assert torch.cat((x.new_empty(0), x[1:3])).tolist() == [1.0, 2.0]
            assert x[:count].sum().item() == sum(range(count))
            assert (x[3 : 3 + count] * 2).tolist() == [2.0 * (3 + n) for n in range(count)]


_ASKED: dict[str, Callable[[torch.Tensor], Any]] = {
    "address": lambda x: x.data_ptr() // 64 % 2,
    "address of a view": lambda x: x.view(2, 2).data_ptr() // 64 % 2,
    "place in the storage": lambda x: x.storage_offset() // 16 % 2,
    "bytes of the storage": lambda x: x.untyped_storage().nbytes() // 64 % 2,
    "value": lambda x: int(x.sum().item()) // 64 % 2,
    "addresses of a list": lambda x: int.from_bytes(prepared.lists_key(([x],))[1], "little") // 64 % 2,
    "within another operation": lambda x: not x.view(4).resize_((2, 2), memory_format=torch.contiguous_format).dim(),
    "nothing": lambda x: x.numel() + x.stride(0),
}


@pytest.mark.parametrize("asked", _ASKED)
def test_what_asks_for_more_than_tells_calls_apart_is_not_repeated(asked: str) -> None:
    """Whatever an operation asks, and however deep."""
    _needs_prepared_calls()
    asks, runs = _ASKED[asked], []

    def add(x: torch.Tensor) -> torch.Tensor:
        runs.append(x)
        return x + (1.0 if asks(x) else 2.0)

    again = prepared.prepared(add)
    memory = [torch.arange(float(n)).to("spirv") for n in (16, 32)]
    given = [base[start : start + 4] for start in (0, 16, 4, 0, 16) for base in memory[start > 8 :]]
    for x in given:
        made, so_far = again(x), len(runs)
        assert made.tolist() == add(x).tolist()
        del runs[so_far:]
    assert len(runs) == (2 if asked == "nothing" else len(given))


def test_cat_asks_nothing_that_is_not_repeated(launches: list[Any]) -> None:
    x = torch.randn(9, 80, device="spirv")
    for _ in range(_TIMES):
        launches.clear()
        joined = torch.cat([x[:3], x[3:5], x[6:]])
    assert launches == [] and torch.equal(joined.cpu(), torch.cat([x[:5], x[6:]]).cpu())


@pytest.mark.parametrize("mode", ["sum", "max"])
def test_a_kernel_may_be_passed_a_tensor_without_elements(launches: list[Any], mode: str) -> None:
    """Bags have no places of maxima where they are sums."""
    table, rows = torch.randn(19, 24), torch.arange(30).view(10, 3) % 19
    for turn in range(_TIMES):
        launches.clear()
        found = torch.nn.functional.embedding_bag((rows + turn).to("spirv") % 19, table.to("spirv"), mode=mode)
    assert launches == []
    torch.testing.assert_close(found.cpu(), torch.nn.functional.embedding_bag((rows + turn) % 19, table, mode=mode))
