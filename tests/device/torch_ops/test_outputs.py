"""``out=``: memory that it shares with what is read, gaps between its elements, and types that torch refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from . import op_database
from .test_elementwise import values

_aten = torch.ops.aten
_Function = Callable[..., Any]


def _index(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[0] - 1, -1, -1, device=x.device)


def _places(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.int64, device=x.device)


#: Of a square matrix and an output. The results are of the matrix's shape.
_SQUARE: dict[str, _Function] = {
    "mm": lambda x, out: torch.mm(x, x, out=out),
    "addmm": lambda x, out: torch.addmm(x, x, x, beta=2, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "softmax": lambda x, out: torch.softmax(x, 0, out=out),
    "exp": lambda x, out: torch.exp(x, out=out),
    "tril": lambda x, out: torch.tril(x, out=out),
    "gather": lambda x, out: torch.gather(x, 0, _index(x)[:, None].expand(x.shape), out=out),
    "index": lambda x, out: _aten.index.Tensor_out(x, [_index(x)], out=out),
    "scatter": lambda x, out: torch.scatter(x, 0, _index(x)[:, None].expand(x.shape), x, out=out),
    "scatter_add": lambda x, out: torch.scatter_add(x, 0, _index(x)[:, None].expand(x.shape), x, out=out),
    "sort": lambda x, out: torch.sort(x, out=(out, _places(x)))[0],
    "upsample": lambda x, out: _aten.upsample_nearest1d.out(x[None], [x.shape[1]], None, out=out[None])[0],
}
#: The results have a row of it.
_ROW: dict[str, _Function] = {
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "amax": lambda x, out: torch.amax(x, 0, out=out),
    "max": lambda x, out: torch.max(x, 0, out=(out, _places(x)))[0],
    "mode": lambda x, out: torch.mode(x, 0, out=(out, _places(x)))[0],
    "norm": lambda x, out: torch.linalg.vector_norm(x, dim=0, out=out),
    "var": lambda x, out: torch.var(x, 0, out=out),
    "mv": lambda x, out: torch.mv(x, x[0], out=out),
}


@pytest.mark.parametrize("name", [*_SQUARE, *_ROW])
def test_memory_that_is_read(name: str) -> None:
    function, square = {**_SQUARE, **_ROW}[name], name in _SQUARE
    x = values(7, 7)
    want = function(x[:6, :6], torch.empty(6, 6) if square else torch.empty(6))
    for view in (lambda x: x[1:, 1:], lambda x: x[:6, :6]) if square else (lambda x: x[2, :6], lambda x: x[:6, 1]):
        there = x.to("spirv")
        out = view(there)
        try:
            got = function(there[:6, :6], out)
        except RuntimeError as error:  # torch's own rule for operations element by element
            assert "single memory location" in str(error)
            continue
        expected = x.clone()
        view(expected).copy_(want)
        torch.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(there.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [*_SQUARE, *_ROW])
def test_gaps_stay(name: str) -> None:
    function, x = {**_SQUARE, **_ROW}[name], values(6, 6)
    shape = (6, 12) if name in _SQUARE else (12,)
    here, there = torch.full(shape, 7.0), torch.full(shape, 7.0, device="spirv")
    function(x, here[..., ::2])
    function(x.to("spirv"), there[..., ::2])
    torch.testing.assert_close(there.cpu(), here, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["mm", "tril", "gather", "scatter_add", "sort", "softmax", "amax", "max", "norm"])
def test_another_type_is_refused_as_on_the_cpu(name: str) -> None:
    function, x = {**_SQUARE, **_ROW}[name], values(6, 6)
    with pytest.raises(RuntimeError) as here:
        function(x, torch.empty(0, dtype=torch.float64))
    with pytest.raises(RuntimeError) as there:
        function(x.to("spirv"), torch.empty(0, dtype=torch.float64, device="spirv"))
    assert str(there.value) == str(here.value)


_TYPES = (torch.bool, torch.int8, torch.int32, torch.float16, torch.bfloat16, torch.float64)
#: Of a tensor and an output: operations that torch has write other types, and those that it does not.
_ELEMENTWISE: dict[str, _Function] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "addcmul": lambda x, out: torch.addcmul(x, x, x, out=out),
    "div": lambda x, out: torch.div(x, 3, out=out),
    "clamp": lambda x, out: torch.clamp(x, 0, 1, out=out),
    "neg": lambda x, out: torch.neg(x, out=out),
    "signbit": lambda x, out: torch.signbit(x, out=out),
    "addcdiv": lambda x, out: torch.addcdiv(x, x, x, out=out),
    "lerp": lambda x, out: torch.lerp(x, x.float(), 0.5, out=out),
    "heaviside": lambda x, out: torch.heaviside(x, x.double(), out=out),
    "renorm": lambda x, out: torch.renorm(x[None].float(), 2, 0, float("nan"), out=out.float()),
    "add, alpha": lambda x, out: torch.add(x, x, alpha=True, out=out),
    "sub, a bool": lambda x, out: torch.sub(x, True, alpha=3, out=out),
    "softshrink": lambda x, out: (_aten.softshrink(x, 1, out=x.clone()), _aten.softshrink(x, -1, out=out)),
    "softshrink, itself": lambda x, out: _aten.softshrink(out, -1, out=out),
    "softshrink, too far": lambda x, out: _aten.softshrink(x, 1e5, out=x.clone()),
}


def _came_to(function: _Function, x: torch.Tensor, out: torch.Tensor) -> tuple[torch.Tensor, str]:
    try:
        function(x, out)
    except (RuntimeError, IndexError) as error:  # NotImplementedError is one
        return out.cpu(), str(error)
    return out.cpu(), ""


@pytest.mark.parametrize("name", _ELEMENTWISE)
def test_outputs_of_other_types(name: str) -> None:
    """Results are rounded to their own type first; what torch refuses changes nothing."""
    for dtype in _TYPES:
        x = torch.tensor([127, 100, 1, 0]).to(dtype) / 10 if dtype.is_floating_point else torch.tensor([127, 100, 1, 0])
        x = x.to(dtype)
        for other in (*_TYPES, torch.complex64):
            out = torch.ones(4, dtype=other)
            want, refusal = _came_to(_ELEMENTWISE[name], x, out.clone())
            got, refused = _came_to(_ELEMENTWISE[name], x.to("spirv"), out.to("spirv"))
            assert refused == refusal, (dtype, other)
            torch.testing.assert_close(got, want, equal_nan=True)


#: Of a tensor of five elements.
_REFUSED_OUTPUTS: dict[str, _Function] = {
    "cat of itself": lambda x, out: torch.cat([out], out=out),
    "cat of what it writes": lambda x, out: torch.cat([out[:2], out[:2]], out=out[1:]),
    "cat of other dimensions": lambda x, out: torch.cat([x, x[0]], out=out),
    "cat of other sizes": lambda x, out: torch.cat([x[None], x[:4, None]], out=out),
    "cat past the dimensions": lambda x, out: torch.cat([x, x], 1, out=out),
    "cumsum past the dimensions": lambda x, out: torch.cumsum(x[0], 1, out=out),
    "mm of another type": lambda x, out: torch.mm(x[None].double(), x[:, None].double(), out=out),
    "baddbmm of another type": lambda x, out: _aten.baddbmm.out(*[x[None, :, None].double()] * 3, out=out),
    "sub of a fraction": lambda x, out: torch.sub(x[:2].int(), x[:2].int(), alpha=1.5, out=out),
    "copies of other sizes": lambda x, out: out[:0].copy_(x[:2]),
    "mv of another size": lambda x, out: torch.mv(x.expand(5, 5), x[:3], out=out),
    "addmv to another size": lambda x, out: torch.addmv(x[:3], x.expand(5, 5), x, out=out),
    "addmm to another size": lambda x, out: torch.addmm(x[:3], x.expand(5, 5), x.expand(5, 5), out=out),
    "scatter past the sizes": lambda x, out: torch.scatter(x[None], 0, _index(x.expand(8, 5))[None], 1.0, out=out),
    "scatter of fewer numbers": lambda x, out: torch.scatter(x, 0, _index(x), x[:1], out=out),
    "scatter_add of fewer numbers": lambda x, out: torch.scatter_add(x, 0, _index(x), x[:1], out=out),
    "scatter past the dimensions": lambda x, out: torch.scatter(x, 1, _index(x), x, out=out),
    "gather past the dimensions": lambda x, out: torch.gather(x, 1, _index(x), out=out),
    "index_copy at int32": lambda x, out: torch.index_copy(x, 0, _index(x).int(), x, out=out),
    "gather past the sizes": lambda x, out: torch.gather(x[None], 0, _index(x.expand(8, 5))[None], out=out),
    **{
        f"{name} of another type": lambda x, out, name=name: getattr(torch, name)(
            x[None], 0, dtype=torch.float64, out=out
        )
        for name in ("sum", "mean", "prod", "nansum", "cumsum", "cumprod")
    },
    "avg_pool over nothing": lambda x, out: _aten.avg_pool3d.out(x.expand(1, 5, 5, 5), 2, -1, out=out),
    "avg_pool of padding": lambda x, out: _aten.avg_pool2d.out(x.expand(1, 5, 5), 3, 1, 2, out=out),
    "scatter_reduce past the dimensions": lambda x, out: torch.scatter_reduce(x, 1, _index(x), x, "sum", out=out),
    "nan_to_num of another type": lambda x, out: torch.nan_to_num(x.to(torch.complex64), out=out),
    "logsigmoid of another type": lambda x, out: torch._C._nn.log_sigmoid(x.double(), out=out),
    "mean of integers": lambda x, out: torch.mean(x[None].int(), 0, out=out),
    "silu of integers": lambda x, out: F.silu(x.int()),
    "an output that is read": lambda x, out: (lambda one: torch.addcdiv(x, one, one, out=one))(out[:1]),
}


@pytest.mark.parametrize("name", _REFUSED_OUTPUTS)
def test_refused_outputs_stay(name: str) -> None:
    x = values(5)
    _, refusal = _came_to(_REFUSED_OUTPUTS[name], x, x.clone())
    got, refused = _came_to(_REFUSED_OUTPUTS[name], x.to("spirv"), x.to("spirv"))
    assert refusal
    assert refused.endswith(refusal)
    assert torch.equal(got, x)


def test_sums_and_products_as_bool() -> None:
    x = torch.tensor([[0.5, 0.0], [0.0, 0.0], [128.0, 128.0]])
    for function in (torch.sum, torch.prod):
        for dims in (0, 1):
            want = function(x, dims, dtype=torch.bool)
            assert torch.equal(function(x.to("spirv"), dims, dtype=torch.bool).cpu(), want)


#: Operators whose wrong arguments torch's database has, of each family of kernels.
_REFUSING = ("add", "amax", "aminmax", "cat", "gather", "huber_loss", "index_select", "logcumsumexp", "masked_fill")
_REFUSING += ("kthvalue", "masked_select", "mean", "roll", "scatter", "take", "tril", "where")
_REFUSING += tuple(f"nn.functional.{name}" for name in ("gelu", "huber_loss", "layer_norm", "max_pool2d"))


@pytest.mark.parametrize("name", [name for name in _REFUSING if name in op_database.entries()])
def test_what_torch_refuses(name: str) -> None:
    assert not any(op_database.errors(op_database.entries()[name]))


_MIXED: dict[str, Any] = {
    "cat": lambda x, y: torch.cat([x, y]),
    "stack": lambda x, y: torch.stack([x, y], 1),
    "batch_norm": lambda x, y: F.batch_norm(x, y[0], y[0]),
    "index_put": lambda x, y: x.clone().index_put_((torch.tensor([0]),), y[:1]),
    "add": lambda x, y: x + y,
}


@pytest.mark.parametrize("name", _MIXED)
def test_tensors_of_two_devices_are_refused(name: str) -> None:
    here = torch.ones(3, 4)
    for x, y in ((here, here.to("spirv")), (here.to("spirv"), here)):
        with pytest.raises(RuntimeError, match="device"):
            _MIXED[name](x, y)
