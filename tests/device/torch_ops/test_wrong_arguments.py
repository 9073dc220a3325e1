"""Wrong arguments of torch's operators: both devices raise, or both agree, but for what the page says."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from . import wrong_arguments
from .conftest import compare
from .wrong_arguments import FAULTS, PAGE, Result, chosen, known, page, run

#: All are run each week.
_SOME = 8


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.device.torch_ops.wrong_arguments --page"


def test_some_operators() -> None:
    """python -m tests.device.torch_ops.wrong_arguments runs them all."""
    results = [*run(chosen(sample=_SOME))]
    assert len(results) > _SOME
    assert [found for found in results if found.kind in FAULTS and not known(found)] == []


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each kind, where a call on the device is another than the CPU's."""
    op = {wrong_arguments.title(op): op for op in wrong_arguments.op_db}["add"]
    (sample,) = wrong_arguments.samples(op)
    original = wrong_arguments.op_database.call
    kinds = set()
    for other in (lambda *_: 1 / 0, lambda *_: [torch.zeros(1)]):

        def call(op: Any, function: Any, given: Any, device: str, _other: Any = other) -> Any:
            return _other() if device == "spirv" else original(op, function, given, device)

        monkeypatch.setattr(wrong_arguments.op_database, "call", call)
        kinds |= {wrong_arguments.compare(op, wrong.sample)[0] for wrong in [*wrong_arguments.wrongs(sample)][:12]}
    assert kinds >= set(FAULTS)
    assert known(Result("add", "argument 2 empty", "silent", "")) is None


def _of(name: str, *args: Any, **how: Any) -> Callable[[str], Any]:
    """A call of F.<name> with its tensors on a device."""

    def run_on(device: str) -> Any:
        given = [x.to(device) if isinstance(x, torch.Tensor) else x for x in args]
        named = {key: x.to(device) if isinstance(x, torch.Tensor) else x for key, x in how.items()}
        return getattr(F if hasattr(F, name) else torch, name)(*given, **named)

    return run_on


_HALF, _X, _IMAGE = torch.full((2, 3), 0.5), torch.randn(2, 3), torch.randn(1, 2, 5, 5)
_HEADS = torch.randn(1, 2, 4, 8)
#: What each torch refuses, and the device took silently once.
_REFUSED = {
    "chances of a loss": _of("binary_cross_entropy", _HALF * 3, _HALF),
    "wanted chances of a loss": _of("binary_cross_entropy", _HALF, -_HALF),
    "weights of a loss": _of("binary_cross_entropy", _HALF, _HALF, weight=torch.ones(1, 2, 3)),
    "a truth that is subtracted from": _of("rsub", _X, _X > 0),
    "logarithms of integers": _of("logaddexp", torch.tensor([2]), torch.tensor([3])),
    "a chance of integers": _of("logsigmoid", torch.tensor([2])),
    "a shift of truths": _of("bitwise_left_shift", _X > 0, _X > 0),
    "types of a norm": _of("layer_norm", _X.double(), (3,), torch.ones(3)),
    "weights of a norm": _of("layer_norm", torch.randn(4, 2, 3), (2, 3), torch.ones(2, 3, dtype=torch.int64)),
    "types of a group's norm": _of("group_norm", _IMAGE, 2, torch.ones(2, dtype=torch.float64)),
    "sizes of a group's norm": lambda d: torch.ops.aten.native_group_norm(
        torch.ones(1, 6, 3, device=d), torch.ones(1, 6, device=d), None, 1, 6, 3, 2, 1e-5
    )[0],
    "types of a batch's norm": _of("batch_norm", _IMAGE.double(), torch.zeros(2), torch.ones(2), training=True),
    "dilation": _of("conv2d", _IMAGE, torch.randn(3, 2, 2, 2), dilation=0),
    "padding of the output": _of("conv_transpose2d", _IMAGE, torch.randn(2, 3, 2, 2), output_padding=4),
    "types of attention": _of("scaled_dot_product_attention", _HEADS, _HEADS.double(), _HEADS),
    "mask of attention": _of("scaled_dot_product_attention", _HEADS, _HEADS, _HEADS, torch.ones(4, 4).long()),
    "dropout of attention": _of("scaled_dot_product_attention", _HEADS, _HEADS, _HEADS, None, -0.5),
    "deviations": _of("normal", torch.zeros(2), torch.tensor([1.0, float("nan")])),
    "types of classes' losses": _of("nll_loss", torch.randn(2, 3).double(), torch.tensor([0, 2]), torch.ones(3)),
    "weights of classes": _of("nll_loss", torch.randn(1, 3, 2, 1), torch.zeros(1, 2, 1).long(), torch.ones(2)),
    "steepness": _of("huber_loss", _X, _X, delta=float("nan")),
    "deviation": _of("normal", torch.zeros(3), float("nan")),
    "order of a distance": _of("cdist", _X, _X, float("nan")),
    "type of an index": _of("index_fill", _X, 0, torch.tensor([1], dtype=torch.int32), 2.0),
    "types of a gradient": lambda d: torch.ops.aten._softmax_backward_data(
        torch.ones(2, 3, device=d, dtype=torch.float64), torch.ones(2, 3, device=d), 1, torch.float32
    ),
    "real transform of complex numbers": lambda d: torch.ops.aten._fft_r2c(
        torch.ones(4, device=d, dtype=torch.complex64), [0], 0, True
    ),
    "dropped gradients": lambda d: torch.ops.aten.native_dropout_backward(
        torch.ones(2, 3, device=d), torch.ones(2, 2, dtype=torch.bool, device=d), 2.0
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_refused_on_both(name: str) -> None:
    for device in ("cpu", "spirv"):
        with pytest.raises((RuntimeError, IndexError, TypeError)):
            _REFUSED[name](device).cpu()
            torch.zeros(1, device="spirv").cpu()


def test_a_mode_is_no_nan_where_there_is_a_number() -> None:
    nan = float("nan")
    rows = ([nan, nan, 1.0], 1.0, 2), ([nan, 1.0, nan, 1.0], 1.0, 3), ([2.0, nan, 1.0, nan, 1.0], 1.0, 4)
    for row, value, place in (*rows, ([3.0, nan], 3.0, 0)):
        found = torch.mode(torch.tensor(row, device="spirv"))
        assert (found.values.item(), found.indices.item()) == (value, place)
    assert torch.mode(torch.tensor([nan, nan], device="spirv")).values.isnan()


def test_equal_on_both() -> None:
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        numbers, bits = torch.iinfo(dtype), torch.iinfo(dtype).bits
        x = torch.tensor([numbers.max, numbers.min, 1, 0, 5], dtype=dtype)
        for count in (0, 1, bits - 1, bits, bits + 1, 100):
            compare(lambda x, n: (x << n, x >> n), x, torch.full_like(x, count))
    x = torch.randn(5, 3)
    x[-1, -1] = float("nan")
    for order in (0.0, 1.0, 2.0, float("inf")):
        compare(lambda x, p=order: torch.pdist(x, p), x, tolerance=(1e-3, 1e-3))
    compare(lambda x: (torch.logit(x, float("nan")), F.hardtanh(x, float("nan"), 2.0)), torch.rand(5))
    compare(lambda x: F.hardtanh(x, -1.0, 0.5), torch.tensor([float("nan"), -3.0, -0.0, 0.2, 0.7, float("inf")]))
    compare(F.relu6, torch.tensor([-0.0, 0.0, 6.0, 7.0]))
    compare(lambda x: (torch.round(x, decimals=400), torch.polygamma(40, x)), torch.rand(5) + 1)
    dropped = torch.tensor([True, False, False])
    compare(
        lambda x, m: torch.ops.aten.native_dropout_backward(x, m, 2.0), torch.tensor([1.0, float("nan"), 2.0]), dropped
    )
