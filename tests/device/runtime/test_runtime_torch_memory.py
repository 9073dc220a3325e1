"""Tensors of the torch device `spirv` that share memory, are pending a conjugation, or have unusual sizes and strides:
each result is that of the CPU."""

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from triton.backends.spirv.torch import registration

from tests.device.threads import together


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()


def check(change: Callable[..., Any], *values: torch.Tensor) -> None:
    """What ``change`` gives, and what it makes of its arguments, is the same on both devices."""
    here = [value.clone() for value in values]
    there = [value.to("spirv") for value in values]
    expected, result = change(*here), change(*there)
    for mine, right in zip((*there, result), (*here, expected), strict=True):
        if isinstance(right, torch.Tensor):
            assert (mine.device.type, mine.dtype, mine.shape) == ("spirv", right.dtype, right.shape)
            torch.testing.assert_close(mine.cpu(), right.resolve_conj().resolve_neg(), rtol=1e-6, atol=1e-6)


def _fill(view: Callable[[torch.Tensor], torch.Tensor], value: complex) -> Callable[..., None]:
    return lambda x, _: (view(x).fill_(value), None)[1]


def _copy(view: Callable[[torch.Tensor], torch.Tensor], source: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return lambda x, y: (view(x).copy_(source(y)), None)[1]


_PENDING: list[Callable[[torch.Tensor, torch.Tensor], Any]] = [
    lambda x, y: x.mH @ y,
    lambda x, y: torch.linalg.solve(x.mT.conj(), y),
    lambda x, y: torch.dot(x[0].conj(), y[0]),
    lambda x, y: torch.view_as_real(x.conj() + y),
    lambda x, y: x.conj().imag * 2,
    lambda x, y: x.conj().imag[1:].sum(),
    _copy(torch.Tensor.conj, lambda y: y),
    _copy(torch.Tensor.conj, torch.Tensor.conj),
    _copy(lambda x: x.conj().imag, lambda y: y.real),
    _copy(lambda x: x[:, ::2].conj(), lambda y: y[:, 1::2].conj()),
    _fill(torch.Tensor.conj, 3 + 2j),
    _fill(lambda x: x.conj().imag, 3),
    lambda x, y: torch.add(x, y, out=y.conj()).numel(),
    lambda x, y: x.conj().mul_(y).numel(),
    lambda x, y: x.conj()[1, 0].item() == x[1, 0].item().conjugate(),
]


@pytest.mark.parametrize("change", _PENDING)
def test_pending_conjugation_and_negation(change: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    check(change, *(torch.randn(4, 4, dtype=torch.complex64) for _ in range(2)))


def test_conjugation_is_kept_or_done_on_the_way() -> None:
    values = torch.randn(4, dtype=torch.complex64)
    there = torch.zeros_like(values).to("spirv")
    there.conj().copy_(values)
    assert torch.equal(there.cpu(), values.conj().resolve_conj())
    here = torch.zeros_like(values)
    here.conj().copy_(there)
    assert torch.equal(here, values)


_SHARING: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x[:, 0:4:2].add_(x[:, 1:5:2]),
    lambda x: x[:4, :4].add_(x[:4, :4].t().clone()),
    lambda x: torch._foreach_add_([x[:, ::2], x[:, 1::2]], [x[:, 1::2], x[:, ::2]]),
    lambda x: torch.cumsum(x[0], 0, out=x[1]),
    lambda x: x.view(torch.int32)[0].bitwise_xor_(x.view(torch.int32)[1]),
]


@pytest.mark.parametrize("change", _SHARING)
def test_arguments_that_share_memory(change: Callable[[torch.Tensor], Any]) -> None:
    check(lambda x: (change(x), x.clone())[1], torch.arange(24.0).reshape(4, 6))


def test_results_in_interleaved_views_of_one_tensor() -> None:
    values, out = torch.randn(4, 6), torch.zeros(8, device="spirv")
    torch.aminmax(values.to("spirv"), dim=1, out=(out[0::2], out[1::2]))
    assert torch.equal(out.cpu(), torch.stack(tuple(values.aminmax(dim=1)), 1).view(-1))


@pytest.mark.parametrize(
    ("size", "stride"), [((2, 2), (0, 3)), ((3, 3), (2, 2)), ((2, 3), (9, 4)), ((2, 1, 2), (1, 7, 2))]
)
def test_elements_between_those_of_a_view_stay(size: tuple[int, ...], stride: tuple[int, ...]) -> None:
    values = torch.arange(24.0)
    check(lambda x: x.as_strided(size, stride).fill_(9).numel(), values)
    check(lambda x: x.as_strided(size, stride).zero_().numel(), values)
    check(lambda x: x.as_strided(size, stride, 1).clone(), values)
    if 0 not in stride and size != (3, 3):
        check(lambda x: x.as_strided(size, stride).uniform_(3, 3).numel(), values)


def test_threads_write_interleaved_views() -> None:
    table = torch.zeros(64, 4, device="spirv")

    def work(column: int) -> None:
        for _ in range(40):
            table[:, column].add_(1)
            table[:, column].copy_(table[:, column] + 1)

    together(work, range(4))
    assert torch.equal(table.cpu(), torch.full((64, 4), 80.0))


def test_sizes_and_strides_that_no_tensor_has() -> None:
    for wrong in ((-1,), (5, -1), (-1, -1), (0, -1)):
        with pytest.raises(RuntimeError, match="negative dimension -1"):
            torch.empty(wrong, device="spirv")
    with pytest.raises(RuntimeError, match=r"negative strides: \[-1, 5\]"):
        torch.empty_strided((3, 3), (-1, 5), device="spirv")
    huge: list[tuple[int, ...]] = [(2**62,), (2**33, 2**33), (2**32, 2**32, 0)]
    for size in huge:
        with pytest.raises(RuntimeError, match="too large"):
            torch.empty(size, device="spirv")
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(3, device="spirv").resize_(5, -2)


def test_zeros_of_types_without_numbers() -> None:
    for dtype in (torch.uint4, torch.float4_e2m1fn_x2, torch.bits16):
        for count in (3, 8):
            assert not any(torch.zeros(count, dtype=dtype, device="spirv").cpu().untyped_storage().tolist())


def test_types_without_numbers_are_copied() -> None:
    for dtype in (torch.uint4, torch.float4_e2m1fn_x2, torch.bits16):
        host = torch.arange(16, dtype=torch.uint8).view(dtype)
        assert torch.equal(host.to("spirv").cpu().view(torch.uint8), host.view(torch.uint8))


def test_shared_memory_does_not_grow() -> None:
    there = torch.arange(6.0).to("spirv")
    row = there[2:]
    with pytest.raises(RuntimeError, match=r"shares its memory of 24 bytes .* clone\(\)"):
        there.resize_(100)
    row.resize_(2)
    assert row.shape == (2,) and there.resize_(3).shape == (3,)
    del row
    assert torch.equal(there.resize_(100).cpu()[:6], torch.arange(6.0))


def test_writing_to_the_cpu_is_refused() -> None:
    there = torch.ones(3, device="spirv")
    for write in (lambda: torch.add(there, 1, out=torch.empty(3)), lambda: torch.zeros(3).masked_fill_(there > 0, 1)):
        with pytest.raises(RuntimeError, match=r"write to a tensor on cpu and there are others on spirv:0: .*\.to\(\)"):
            write()


def test_storages_are_made_here() -> None:
    # In its own process: torch ends the process where it finds no allocator.
    program = """
import torch
from triton.backends.spirv.torch import registration
registration.register()
made = torch.UntypedStorage(12, device="spirv")
assert (made.device.type, made.nbytes()) == ("spirv", 12)
assert torch.UntypedStorage([1, 2], device="spirv").tolist() == [1, 2]
assert torch.UntypedStorage(3).device.type == "cpu" and torch.UntypedStorage(3, device="cpu").nbytes() == 3
values = torch.arange(4.)
moved = values.untyped_storage().to(device=torch.device("spirv"))
assert moved.device.type == "spirv" and torch.empty(0, device="spirv").set_(moved, 1, (2,)).tolist() == [1., 2.]
print("right")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "right\n", done.stderr


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0),
        torch.arange(6.0).view(2, 3).t(),
        torch.arange(6.0)[2:4],
        torch.zeros(0),
        torch.tensor(3),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.nn.Parameter(torch.ones(2)),
    ],
    ids=["vector", "transposed", "part", "empty", "scalar", "bool", "complex", "parameter"],
)
@pytest.mark.parametrize(
    "place",
    [None, "cpu", "spirv", {"spirv:0": "cpu"}, lambda storage, _: storage.to(device=torch.device("spirv"))],
    ids=["none", "cpu", "spirv", "mapping", "function"],
)
def test_saved_tensors_go_where_they_are_wanted(tensor: torch.Tensor, place: Any) -> None:
    there = tensor.to("spirv")
    file = io.BytesIO()
    torch.save(there, file)
    file.seek(0)
    loaded = torch.load(file, map_location=place)
    assert loaded.device.type == ("cpu" if place == "cpu" or isinstance(place, dict) else "spirv")
    again = pickle.loads(pickle.dumps(there))
    for copied in (loaded, again):
        assert copied.stride() == there.stride() and torch.equal(copied.cpu(), tensor.detach())
