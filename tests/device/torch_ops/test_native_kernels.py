"""Operations that torch calls as native kernels: as on the CPU, whether a call is like an earlier one or not."""

import contextlib
import gc
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from triton import knobs
from triton.backends.spirv.torch.device import native_kernels, tensor_memory

from tests.device.threads import together

aten = torch.ops.aten
_Call = Callable[..., Any]

#: Of two tensors of the same sizes, of floats.
_OF_TWO: dict[str, _Call] = {
    "mul": lambda x, y: x * y,
    "itself": lambda x, y: x * x,
    "number": lambda x, y: (x * 3, y * 0.5, x / 2.0),
    "scalar of the CPU": lambda x, y: (x * torch.tensor(0.5, dtype=torch.float64), x * torch.tensor(3)),
    "of no dimensions": lambda x, y: (x.sum() * 2.0, x.sum() * y, x.sum() * torch.tensor(0.5, dtype=torch.float64)),
    "in place": lambda x, y: x.clone().mul_(y),
    "partly in place": lambda x, y: x.clone()[:1].mul_(2.0),
    "neg": lambda x, y: (-x, x.abs(), y.rsqrt()),
    "gelu": lambda x, y: (F.gelu(x), F.gelu(y, approximate="tanh"), F.silu(x)),
    "sum": lambda x, y: (x.sum(-1), x.sum(), y.mean(0, keepdim=True), x.float().sum(dtype=torch.float64)),
    "products": lambda x, y: x.float() @ y.float().t(),
    "cat": lambda x, y: (torch.cat((x, y)), torch.cat((x, y[:1], x), 0), torch.stack((y, x))),
    "types": lambda x, y: (x.to(torch.float64), y.to(torch.int32), x.to(torch.bool), x.to(torch.bfloat16).float()),
    "copies": lambda x, y: (x.clone(), x.contiguous(), torch.empty_like(y).copy_(x), x.t().contiguous()),
    "memory": lambda x, y: (torch.zeros_like(x), x.new_zeros(3, 2), torch.ones_like(y, dtype=torch.int16)),
    "strides": lambda x, y: torch.empty_strided(x.shape, (1, x.shape[0]), dtype=x.dtype, device=x.device).zero_(),
    "rows": lambda x, y: (x.softmax(-1), F.layer_norm(x, x.shape[1:]), x.log_softmax(0)),
    "where": lambda x, y: (torch.where(x > y, x, y), torch.maximum(x, y), x.masked_fill(y > 0, 1.5)),
    "indices": lambda x, y: (F.embedding(torch.tensor([0, 1, 0], device=x.device), x), x[[0, 1, 1]]),
    "parts": lambda x, y: (x.split(1)[0].clone(), aten.slice_backward(y[1:], y.shape, 0, 1, y.shape[0], 1)),
}


def _states(result: Any) -> list[Any]:
    results = result if isinstance(result, tuple) else (result,)
    return [
        (x.dtype, x.shape, _strides(x), x.storage_offset(), "inference" if x.is_inference() else x._version)
        for x in results
    ]


def _strides(x: torch.Tensor) -> list[int]:
    """Those that say something."""
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]


def _draw(draw: random.Random, sizes: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of these sizes: turned, a part of another, or as it is."""
    kind = draw.randrange(4)
    if kind == 0:
        return torch.randn(sizes[::-1]).add(0.25).to(dtype).t()
    if kind == 1:
        return torch.randn(sizes[0], sizes[1] + 3).to(dtype)[:, 1 : 1 + sizes[1]]
    return torch.randn(sizes).to(dtype)


def _on(tensor: torch.Tensor) -> torch.Tensor:
    """The same on the device, with the same sizes and strides and place in its memory."""
    whole = torch.as_strided(tensor, (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
    return whole.to("spirv").as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.weekly("[0]")) for seed in (1, 2))])
def test_drawn_calls(seed: int) -> None:
    """Of few sizes, so that most calls are like earlier ones."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(250):
        name = draw.choice(list(_OF_TWO))
        sizes = draw.choice([(2, 3), (4, 8), (3, 1)])
        dtype = draw.choice([torch.float32, torch.float32, torch.bfloat16])
        x, y = (_draw(draw, sizes, dtype) for _ in range(2))
        on, other = _on(x), _on(y)
        with torch.inference_mode(draw.random() < 0.3):
            found, wanted = _OF_TWO[name](on, other), _OF_TWO[name](x, y)
        assert _states(found) == _states(wanted), name
        tolerance = 0.02 if dtype == torch.bfloat16 else 2e-5
        torch.testing.assert_close(
            found,
            wanted,
            check_device=False,
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
            msg=lambda text, n=name: n + text,
        )


def test_most_operations_are_native() -> None:
    """All that the interface passes: of these, those without numbers of an open type."""
    for op in (aten.mul.Tensor, aten.mm.default, aten.zeros_like.default, aten._copy_from.default, aten.cat.default):
        assert native_kernels.operation(op) is not None
    for op in (
        aten.add.Tensor,
        aten.addmm.default,
        aten.fill_.Scalar,
        aten.normal_.default,
        aten._local_scalar_dense.default,
        aten.empty.memory_format,  # for tensors of types without numbers
        aten._to_copy.default,
    ):
        assert native_kernels.operation(op) is None


@pytest.mark.parametrize(
    ("op", "given", "wanted"),
    [
        (aten.gelu.default, [None, "none"], ((None,), {})),
        (aten.gelu.default, [None, "tanh"], ((None,), {"approximate": "tanh"})),
        (aten.sum.dim_IntList, [None, [1], False, None], ((None, [1]), {})),
        (aten.sum.dim_IntList, [None, None, True, 7], ((None, None, True), {"dtype": torch.float64})),
        (
            aten.empty.memory_format,
            [[2], 15, 0, (20, 0), False, 2],
            (
                ([2],),
                {
                    "dtype": torch.bfloat16,
                    "layout": torch.strided,
                    "device": torch.device("spirv:0"),
                    "pin_memory": False,
                    "memory_format": torch.channels_last,
                },
            ),
        ),
        (aten.empty.memory_format, [[], None, None, (0, -1), None, None], (([],), {"device": torch.device("cpu")})),
    ],
)
def test_python_is_called_as_torch_calls_it(op: Any, given: list[Any], wanted: tuple[Any, Any]) -> None:
    assert native_kernels._unpacking(op)(given) == (*wanted, True)


class _OwnError(Exception):
    """Of nobody else."""


class _Refusing:
    """Is told of memory and refuses it."""

    def allocated(self, tensor: torch.Tensor, bytes_: int) -> None:
        raise _OwnError(f"{bytes_} bytes")


def test_errors_keep_their_classes_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a call, within a graph of gradients, and each time."""
    x = torch.randn(5, 7, device="spirv", requires_grad=True)
    result = (x * x).sum()
    monkeypatch.setattr(tensor_memory, "WATCHERS", [_Refusing()])
    for elements in (11, 11, 12):
        with pytest.raises(_OwnError, match=f"{4 * elements} bytes"):
            torch.empty(elements, device="spirv")
    with pytest.raises(_OwnError, match="bytes"):
        result.backward()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x @ x, RuntimeError),
        (lambda x: torch.cat((x, x[:, :2])), RuntimeError),
        (lambda x: torch.empty(3, device="spirv", pin_memory=True), ValueError),
        (lambda x: torch.empty(2**50, device="spirv"), torch.OutOfMemoryError),
        (lambda x: torch.empty(2**60, 2**10, device="spirv"), RuntimeError),
        (lambda x: x.sum(5), IndexError),
        (lambda x: x * torch.ones(4, 6), RuntimeError),
        (lambda x: F.gelu(x, approximate="never"), RuntimeError),
    ],
)
def test_refusals_are_the_same_each_time(call: _Call, error: type[Exception]) -> None:
    x = torch.randn(4, 6, device="spirv")
    said = []
    for _ in range(3):
        with pytest.raises(error) as found:
            call(x)
        # How much memory is free is other processes' doing too.
        said.append((type(found.value), re.sub(r"\d{6,}", "…", str(found.value))))
    assert said == said[:1] * 3
    assert torch.equal((x * x).cpu(), x.cpu() * x.cpu())


def test_numbers_and_scalars_decide_types_as_on_the_cpu() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int32, torch.bool):
        for shape in ((3,), ()):
            host = torch.ones(shape, dtype=dtype)
            on = host.to("spirv")
            for _ in range(3):
                for other in (2, 0.5, True, torch.tensor(2), torch.tensor(0.5, dtype=torch.float64), torch.tensor(0.5)):
                    found, wanted = on * other, host * other
                    assert (found.dtype, found.cpu().tolist()) == (wanted.dtype, wanted.tolist()), (dtype, shape, other)


def test_threads() -> None:
    x, y = torch.randn(6, 9), torch.randn(6, 9)
    on, other = x.to("spirv"), y.to("spirv")
    wanted = (x * y).to(torch.bfloat16).float().sum(-1)

    def run(_: int) -> None:
        for _ in range(60):
            found = (on * other).to(torch.bfloat16).float().sum(-1)
            assert torch.allclose(found.cpu(), wanted, rtol=1e-4, atol=1e-4)

    together(run, range(4))


def test_memory_and_versions_are_given_back_and_counted() -> None:
    x = torch.randn(16, 16, device="spirv")
    y = x * x
    for step in range(40):
        (x * x).mm(x).to(torch.bfloat16)
        if step == 20:
            before = torch.spirv.memory_allocated()  # type: ignore[attr-defined]
    assert torch.spirv.memory_allocated() == before  # type: ignore[attr-defined]
    for count in range(1, 5):
        given = y.mul_(x)
        assert given is y and y._version == count
    part = y[2:4]
    assert part.mul_(x[2:4]) is part and y._version == 5


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[:3] * x[:3],
        lambda x: torch.cat((x[:3], x[1:2])),
        lambda x: x[:3] @ x[:3],
        lambda x: torch.empty(3, device="spirv"),
        lambda x: x[:3].clone().mul_(2.0),
    ],
)
@pytest.mark.parametrize("hooked", [False, True])
def test_python_keeps_no_tensor(call: _Call, hooked: bool) -> None:
    """Of calls that enter Python, and of those that raise, either."""
    x = torch.randn(6, 6, device="spirv")
    hook = lambda _: None  # noqa: E731
    if hooked:
        knobs.runtime.launch_enter_hook.add(hook)
    try:
        counts = []
        for _ in range(4):
            for _ in range(5):
                with contextlib.suppress(RuntimeError):
                    call(x)
            gc.collect()
            counts.append(sum(type(one) is torch.Tensor for one in gc.get_objects()))
    finally:
        if hooked:
            knobs.runtime.launch_enter_hook.remove(hook)
    assert counts[-1] == counts[-2]


def test_gradients_of_numbers_and_products() -> None:
    for _ in range(3):
        x, w = torch.randn(4, 6), torch.randn(6, 3)
        leaves = [t.detach().to("spirv").requires_grad_() for t in (x, w)], [t.clone().requires_grad_() for t in (x, w)]
        for a, b in leaves:
            (F.silu(a * 0.5) @ b).softmax(-1).square().sum().backward()
        for one, other in zip(*leaves, strict=True):
            torch.testing.assert_close(one.grad, other.grad, check_device=False)


def test_launch_hooks_see_native_kernels() -> None:
    x = torch.randn(4, 6, device="spirv")
    for _ in range(3):
        x * x
    seen: list[Any] = []
    knobs.runtime.launch_enter_hook.add(seen.append)
    try:
        x * x
    finally:
        knobs.runtime.launch_enter_hook.remove(seen.append)
    assert len(seen) == 1


def test_without_torchs_c_interface() -> None:
    """Kernels in Python do it."""
    program = (
        "from triton.backends.spirv.torch.device import native_module\n"
        "native_module.torch_native().has_torch_operations = lambda: False\n"
        "import torch\n"
        "x = torch.arange(6.0, device='spirv').view(2, 3)\n"
        "for _ in range(3):\n"
        "    assert (x * x @ x.t()).to(torch.int32).cpu().tolist() == [[9, 24], [66, 216]]\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)
