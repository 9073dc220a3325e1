"""Lists of tensors in one kernel: ``_foreach_…``, optimizers, scaled gradients."""

import math
from typing import Any

import pytest
import torch
from triton.backends.spirv.runtime import current
from triton.backends.spirv.torch.ops import lists

from .conftest import compare, to
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def several(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Tensors of several sizes, one of which is not contiguous and one empty."""
    tensors = [values(*shape, dtype=dtype) for shape in ((5,), (3, 700), (2, 1, 7), (0, 4))]
    return [*tensors, values(1, dtype=dtype)[0], values(6, 9, dtype=dtype).t()]


_CASES: dict[str, Any] = {
    "mul_": lambda xs, ys: torch._foreach_mul_(xs, 0.7),
    "add alpha": lambda xs, ys: torch._foreach_add(xs, ys, alpha=3),
    "add tensor": lambda xs, ys: torch._foreach_add(xs, torch.tensor(1.5), alpha=2),
    "div list": lambda xs, ys: torch._foreach_div(xs, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "div list of one number": lambda xs, ys: torch._foreach_div(xs, [0.3] * 6),
    "div list of zeros": lambda xs, ys: torch._foreach_div(xs, [0.0, -0.0, 0.0, 0.0, -0.0, -0.0]),
    "sqrt": lambda xs, ys: torch._foreach_sqrt(torch._foreach_abs(xs)),
    "lerp": lambda xs, ys: torch._foreach_lerp_(xs, ys, 0.25),
    "addcmul": lambda xs, ys: torch._foreach_addcmul_(xs, ys, ys, value=0.5),
    "addcdiv list": lambda xs, ys: torch._foreach_addcdiv(xs, ys, torch._foreach_exp(ys), [1.0, 2, 3, 4, 5, 6]),
    "maximum": lambda xs, ys: torch._foreach_maximum(xs, ys),
    "clamp_min": lambda xs, ys: torch._foreach_clamp_min(xs, 0.1),
    "pow": lambda xs, ys: torch._foreach_pow(torch._foreach_abs(xs), 1.5),
    "copy": lambda xs, ys: torch._foreach_copy_(xs, ys),
    "zero": lambda xs, ys: torch._foreach_zero_(xs),
}


@pytest.mark.parametrize("name", _CASES)
def test_operations_on_lists(name: str, launches: list[Any]) -> None:
    def run(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> Any:
        return _CASES[name](xs, ys), xs

    xs, ys = several(), [x.flip(0) if x.dim() else x * 3 for x in several()]
    ys = [torch.empty_like(x).copy_(y) for x, y in zip(xs, ys, strict=True)]
    there = to("spirv", (xs, ys))
    launches.clear()
    _CASES[name](*there)
    assert len(launches) <= 2
    compare(run, xs, ys, tolerance=(1e-5, 1e-5))


def test_lists_of_other_types_are_done_tensor_by_tensor() -> None:
    for xs in (several(torch.int32), [values(3), values(4).double()], [values(3, 4), values(4, 3)[::2]]):
        compare(lambda xs: (torch._foreach_add(xs, 2), torch._foreach_maximum(xs, 1), xs), xs)
    compare(lambda xs, y: (torch._foreach_mul(xs, [y, y[:1]]),), [values(5), values(5)], values(5))


def test_a_tensor_that_is_twice_in_a_list_is_written_twice() -> None:
    compare(lambda x: (torch._foreach_add_([x, x[2:]], 1.0), x), values(5))
    compare(lambda x: (torch._foreach_add_([x[:2], x[3:]], [x[3:], x[:2]]), x), values(5))


def test_halves_and_memory_that_is_not_aligned() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        compare(lambda xs: torch._foreach_mul(torch._foreach_add(xs, 1), [2.0] * 6), several(dtype))
    compare(lambda x: (torch._foreach_mul_([x[1:30], x[31:]], 3.0), x), values(77))


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_norms_of_lists_and_clipped_gradients(order: float, launches: list[Any]) -> None:
    def run(xs: list[torch.Tensor]) -> Any:
        for x in xs:
            x.grad = x * 3
        launches.clear()
        total = torch.nn.utils.clip_grad_norm_(xs, 0.5, norm_type=order)
        return torch._foreach_norm(xs, order), total, [x.grad for x in xs]

    xs = [x for x in several() if x.numel()]
    compare(run, xs, tolerance=(1e-5, 1e-5))
    assert len(launches) <= 12
    halves = [x.half() for x in xs]
    compare(lambda xs: torch._foreach_norm(xs, order), halves)


def test_norms_have_memory_of_their_own() -> None:
    """As on the CPU: what is compiled for them takes them for aligned."""
    xs = [torch.randn(size, device="spirv") for size in (5, 2000, 7)]
    for order in (1, 2, math.inf, 3):
        for norm in torch._foreach_norm(xs, order):
            assert norm.shape == () and norm.storage_offset() == 0 and norm.data_ptr() % 16 == 0
    clipped = [torch.nn.Parameter(x.clone()) for x in xs]
    for one in clipped:
        one.grad = one.detach() * 2
    total = torch.compile(torch.nn.utils.clip_grad_norm_)(clipped, 0.5)
    exact = torch.cat([x.cpu().double() for x in xs]).norm() * 2
    assert abs(float(total) - float(exact)) < 1e-5 * float(exact)
    assert abs(float(torch.cat([one.grad.cpu() for one in clipped]).norm()) - 0.5) < 1e-4


#: With how many launches a step may take: one, and one for the tensors of steps, where it is fused.
_OPTIMIZERS: list[tuple[Any, dict[str, Any], int]] = [
    (torch.optim.AdamW, {"amsgrad": True, "fused": True}, 2),
    (torch.optim.Adam, {"weight_decay": 0.1, "maximize": True, "fused": True}, 2),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "fused": True}, 2),
    (torch.optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.01, "fused": True}, 2),
    (torch.optim.AdamW, {"foreach": True}, 13),
    (torch.optim.SGD, {"momentum": 0.9, "foreach": True}, 13),
    (torch.optim.Adagrad, {"lr_decay": 0.1, "foreach": True}, 13),
    (torch.optim.RMSprop, {"momentum": 0.5, "centered": True, "foreach": True}, 13),
    (torch.optim.NAdam, {"momentum_decay": 0.01, "decoupled_weight_decay": True, "weight_decay": 0.1}, 60),
    (torch.optim.RAdam, {"weight_decay": 0.1}, 60),
    (torch.optim.Adadelta, {"rho": 0.8}, 60),
    (torch.optim.Adamax, {}, 60),
    (torch.optim.ASGD, {}, 60),
    (torch.optim.Rprop, {}, 60),
]


@pytest.mark.parametrize(
    ("kind", "options", "limit"), _OPTIMIZERS, ids=lambda case: getattr(case, "__name__", None) or str(case)
)
def test_steps_of_optimizers(kind: Any, options: dict[str, Any], limit: int, launches: list[Any]) -> None:
    found = {}
    for device in ("cpu", "spirv"):
        parameters = [x.detach().to(device).requires_grad_() for x in several() if x.numel()]
        optimizer = kind(parameters, lr=0.1, **options)
        for number in range(3):
            for parameter in parameters:
                parameter.grad = parameter.detach() * 0.5 + number
            launches.clear()
            optimizer.step()
        if device == "spirv":
            assert len(launches) <= limit
        found[device] = [parameter.detach().cpu() for parameter in parameters]
    torch.testing.assert_close(found["spirv"], found["cpu"], rtol=1e-4, atol=1e-5)


def test_a_fused_step_of_adagrad() -> None:
    def run(parameters: list[torch.Tensor], grads: list[torch.Tensor], sums: list[torch.Tensor]) -> Any:
        steps = [torch.full((), 2.0, device=sums[0].device) for _ in sums]
        numbers = {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.3, "eps": 1e-8, "maximize": False}
        torch.ops.aten._fused_adagrad_(parameters, grads, sums, steps, **numbers)
        return parameters, sums

    x = several()[:2]
    compare(run, x, [t * 2 for t in x], [t * t for t in x], tolerance=(1e-5, 1e-5))


def test_scaled_gradients() -> None:
    def run(grads: list[torch.Tensor], scale: torch.Tensor) -> Any:
        device = scale.device
        found, tracker = torch.zeros((), device=device), torch.zeros((), dtype=torch.int32, device=device)
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, 1 / scale)
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 1)
        return grads, found, scale, tracker

    scale, grads = torch.tensor(8.0), [values(3, 5), values(1100)]
    compare(run, grads, scale)
    grads[1][1050] = float("inf")
    compare(run, grads, scale)
    x, steps = torch.ones(4, device="spirv", requires_grad=True), {}
    x.grad = torch.ones(4, device="spirv")
    steps = torch.optim.AdamW([x], lr=0.1, fused=True)
    steps.grad_scale, steps.found_inf = torch.tensor(2.0, device="spirv"), torch.ones((), device="spirv")
    steps.step()
    assert x.tolist() == [1.0] * 4


def test_steps_that_repeat_keep_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients have the addresses of the last step's, in whatever order those were freed."""
    made: list[bytes] = []
    table = lists._Form.table

    def counted(self: Any, addresses: bytes) -> Any:
        made.append(addresses)
        return table(self, addresses)

    monkeypatch.setattr(lists._Form, "table", counted)
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4))).to("spirv")
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    x = torch.randn(4, 8, device="spirv")
    counts = []
    for _ in range(6):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        counts.append(len(made))
    assert counts[0] > 0 and counts[-1] == counts[-3], counts


def test_tables_of_addresses_that_do_not_come_again_are_given_back() -> None:
    memory, pools = torch.ones(1 << 16, device="spirv"), (current().memory.pool, current().staying_memory.pool)
    used = []
    for turn in range(900):
        for _ in range(2):  # the second call is recorded
            torch._foreach_mul_([*memory[turn : turn + 3200].split(32)], 1.0)
        if turn % 300 == 299:
            used.append(sum(pool.allocated for pool in pools))
    assert len(set(used)) == 1 and pools[1].allocated < 1 << 20, used
