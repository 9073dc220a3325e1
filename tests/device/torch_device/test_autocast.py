"""``torch.autocast("spirv")``: types and values equal the CPU's, computed in the same types."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from triton.backends.spirv.torch import registration  # noqa: E402
from triton.backends.spirv.torch.device import autocast, tensor_memory  # noqa: E402

_HALVES = [torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()


@pytest.mark.parametrize("dtype", _HALVES, ids=str)
@pytest.mark.parametrize(
    ("function", "lower"),
    [
        (lambda x: x @ x, True),
        (lambda x: F.linear(x, x, x[0]), True),
        (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), True),
        (lambda x: (x @ x).exp(), False),
        (lambda x: (x @ x).softmax(-1), False),
        (lambda x: (x @ x).sum(), False),
        (lambda x: F.layer_norm(x @ x, (8,)), False),
        (lambda x: F.mse_loss(x @ x, x), False),
        (lambda x: torch.addcmul(x @ x, x @ x, x), False),
        (lambda x: (x @ x) + 1, True),
    ],
)
def test_types_are_those_of_an_autocast(function: Callable[..., Any], lower: bool, dtype: Any) -> None:
    torch.manual_seed(0)
    values = torch.randn(8, 8)
    with torch.autocast("spirv", dtype=dtype):
        found = function(values.to("spirv"))
    assert found.dtype == (dtype if lower else torch.float32)
    torch.testing.assert_close(found.float().cpu(), function(values), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize(
    ("macro", "ours", "more"),
    [
        ("AT_FORALL_LOWER_PRECISION_FP", autocast._LOWER, set()),
        ("AT_FORALL_FP32", autocast._SINGLE, {"linalg_matrix_sqrth"}),
        ("AT_FORALL_FP32_SET_OPT_DTYPE", autocast._SINGLE_RESULT, set()),
        ("AT_FORALL_PROMOTE", autocast._WIDEST, set()),
    ],
)
def test_the_lists_are_those_of_torchs_header(macro: str, ours: str, more: set[str]) -> None:
    """``more``: what torch has in no header. Its attention is cast where scaled_dot_product_attention is."""
    header = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text(encoding="utf-8")
    body = re.search(rf"#define {macro}\(_\)(.*?)\n\n", header, re.DOTALL)
    assert body
    named = {".".join(filter(None, one)) for one in re.findall(r"_\((\w+)(?:,\s*(\w+))?\)", body[1])}
    named = {one for one in named if "imname" not in one} - {"_scaled_dot_product_flash_attention"}
    assert set(ours.split()) - more == named


def test_what_it_leaves_alone() -> None:
    x, double = torch.randn(4, 4, device="spirv"), torch.randn(4, 4, dtype=torch.float64, device="spirv")
    with torch.autocast("spirv"):
        assert torch.get_autocast_dtype("spirv") == torch.float16 and (x @ x).dtype == torch.float16
        assert (double @ double).dtype == torch.float64
        assert x.cpu().matmul(x.cpu()).dtype == torch.float32
        assert (x @ x).sum(dtype=torch.float16).dtype == torch.float16
        with torch.autocast("spirv", enabled=False):
            assert (x @ x).dtype == torch.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            F.binary_cross_entropy(x.sigmoid(), x.sigmoid())
    assert (x @ x).dtype == torch.float32


def test_arguments_of_all_sorts() -> None:
    x, bias = torch.randn(4, 4, device="spirv"), torch.nn.Parameter(torch.ones(4, device="spirv"))
    with torch.autocast("spirv", dtype=torch.bfloat16):
        assert torch.einsum("ij,jk", x, x).dtype == torch.bfloat16, "tensors in a list"
        assert F.layer_norm(x.bfloat16(), [4], weight=bias, bias=None).dtype == torch.float32
        assert torch.addmm(bias, x, x, beta=2).dtype == torch.bfloat16
        assert torch.pow(x.half().abs(), 2).dtype == torch.float32
        assert F.linear(x, x.bfloat16()).dtype == torch.bfloat16
        if hasattr(torch.linalg, "matrix_sqrth"):  # since torch 2.14
            assert torch.linalg.matrix_sqrth(torch.eye(4, device="spirv").half()).dtype == torch.float32
        with pytest.raises(RuntimeError):
            x @ torch.ones(3, 3, device="spirv")
        assert (x @ x).dtype == torch.bfloat16, "after an error, too"
        F.linear(x, x, bias).sum().backward()
    assert bias.grad is not None and bias.grad.dtype == torch.float32


class _OwnError(Exception):
    """Of nobody else."""


class _Refusing:
    """Is told of memory and refuses it."""

    def allocated(self, tensor: Any, bytes_: int) -> None:
        raise _OwnError(f"{bytes_} bytes")


def test_errors_are_those_of_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time, with their classes; and the autocast goes on."""
    x = torch.randn(4, 6, device="spirv")
    half = x.bfloat16()
    with torch.autocast("spirv", dtype=torch.bfloat16):
        for _ in range(3):
            for call in (lambda x: F.linear(x, x[:, :3]), lambda x: x @ x, lambda x: F.mse_loss(x, x, reduction="no")):
                with pytest.raises((RuntimeError, ValueError)) as found:
                    call(x)
                with torch.autocast("spirv", enabled=False), pytest.raises((RuntimeError, ValueError)) as wanted:
                    call(half)
                assert (found.type, str(found.value)) == (wanted.type, str(wanted.value))
            assert (x @ x.t()).dtype == torch.bfloat16
        assert not torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutocastPrivateUse1)
        monkeypatch.setattr(tensor_memory, "WATCHERS", [_Refusing()])
        with pytest.raises(_OwnError, match="bytes"):
            F.linear(torch.ones(9, 6).to("spirv"), x)


def test_errors_in_arguments_are_those_of_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(7, 6, device="spirv"), torch.randn(7, 6, device="spirv")
    monkeypatch.setattr(tensor_memory, "WATCHERS", [_Refusing()])
    with torch.autocast("spirv", dtype=torch.bfloat16):
        for _ in range(2):
            with pytest.raises(_OwnError, match="84 bytes"):
                F.linear(x, y)


def test_gradients_and_optional_arguments() -> None:
    """Of native kernels, of calls by which a gradient goes back through the casts."""
    for bias in (True, False):
        x, w, b = (torch.randn(shape, device="spirv", requires_grad=True) for shape in ((5, 8), (3, 8), (3,)))
        for _ in range(3):
            with torch.autocast("spirv", dtype=torch.bfloat16):
                result = F.linear(x, w, b if bias else None)
            assert result.dtype == torch.bfloat16
            result.float().sum().backward()
        assert x.grad is not None and x.grad.dtype == torch.float32
        wanted = w.detach().bfloat16().float().sum(0).expand(5, 8) * 3
        torch.testing.assert_close(x.grad, wanted, rtol=2e-2, atol=2e-2)
        assert (b.grad is not None) == bias


def test_the_compilers_symbols_pass() -> None:
    """Of sizes that change, within a function that is compiled under an autocast."""
    compiled = torch.compile(lambda x, w: F.layer_norm(F.linear(x, w), (x.shape[0],)), dynamic=True, backend="eager")
    for rows in (6, 8, 9):
        x, w = torch.randn(rows, 4, device="spirv"), torch.randn(rows, 4, device="spirv")
        with torch.autocast("spirv", dtype=torch.bfloat16):
            found = compiled(x, w)
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, F.layer_norm(F.linear(x, w), (rows,)))


def test_training_with_a_gradient_scaler() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1).to("spirv")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scaler = torch.amp.GradScaler("spirv", init_scale=256.0)
    x = torch.randn(64, 16, device="spirv")
    target = x[:, :1] * 0.5
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("spirv", dtype=torch.float16):
            loss = F.mse_loss(model(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert model.weight.dtype == model.weight.grad.dtype == torch.float32
    assert losses[-1] < 0.95 * losses[0], losses
    optimizer.zero_grad()
    scaler.scale(model(x).sum() * float("inf")).backward()
    before = model.weight.clone()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, model.weight) and scaler.get_scale() == 128.0, "a step with infinities is skipped"


def test_compiled_as_eager() -> None:
    torch._dynamo.reset()
    model = torch.nn.Linear(8, 8).to("spirv")
    x = torch.randn(4, 8, device="spirv")

    def function(x: Any) -> Any:
        with torch.autocast("spirv", dtype=torch.bfloat16):
            hidden = model(x)
            return hidden, F.softmax(hidden, -1)

    for found, expected in zip(torch.compile(function, fullgraph=True)(x), function(x), strict=True):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found.float(), expected.float(), rtol=2e-2, atol=2e-2)
