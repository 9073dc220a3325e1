"""Pinned memory: which tensors are in it, and copies of devices that read and write it by themselves."""

from typing import Any

import pytest
from triton.backends.spirv.runtime import PINNED, current

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from triton.backends.spirv.torch.device.pinned_tensors import pins  # noqa: E402

#: Elements that take more bytes than go into a device's commands, in odd numbers.
_MANY = 100_003


@pytest.fixture(autouse=True)
def _on_a_device_that_pins() -> None:
    torch.ones(1, device="spirv")
    if not pins(current()):
        pytest.skip(f"{current().device.name} imports no host memory")


def test_what_is_pinned() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for host in (x, x.t(), x[:, ::2], x[:1].expand(3, 4), x.half(), x.to(torch.complex64).conj(), x > 3, x[0, 0]):
        pinned = host.pin_memory()
        assert pinned.is_pinned() and not host.is_pinned() and torch.equal(pinned, host)
        assert pinned.pin_memory() is pinned and pinned.device.type == "cpu"
        assert pinned.untyped_storage().nbytes() == pinned.numel() * pinned.element_size()
    assert x.t().pin_memory().stride() == (1, 4) and x[:, ::2].pin_memory().is_contiguous()
    assert x.pin_memory()[1:, 2].is_pinned() and not x.pin_memory().clone().is_pinned()
    assert x[:0].pin_memory().shape == (0, 4)


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
def test_copies_both_ways(dtype: Any, non_blocking: bool) -> None:
    """Of views that begin anywhere; what lies beside them stays."""
    x = torch.arange(_MANY).to(dtype)
    pinned, there = x.pin_memory(), torch.full((_MANY + 9,), 7, dtype=dtype, device="spirv")
    there[3:-9].copy_(pinned[3:], non_blocking=non_blocking)
    expected = torch.full((_MANY + 9,), 7, dtype=dtype)
    expected[3:-9] = x[3:]
    assert torch.equal(there.cpu(), expected)
    back = torch.full((_MANY + 9,), 9, dtype=dtype).pin_memory()
    back[5:-2].copy_(there[5:-2], non_blocking=non_blocking)
    torch.spirv.synchronize()
    assert torch.equal(back[5:-2], expected[5:-2])
    assert bool((back[:5] == 9).all()) and bool((back[-2:] == 9).all())


def test_memory_that_its_owner_gave_up_stays_until_it_is_copied() -> None:
    """And is taken again later: the process keeps a few blocks."""
    PINNED.clear()  # blocks of other sizes, of tests before this one
    x = torch.arange(float(_MANY))
    for turn in range(40):
        there = (x + turn).pin_memory().to("spirv", non_blocking=True)
        (x - turn).pin_memory()
        assert torch.equal(there.cpu(), x + turn)
    idle = sum(map(len, PINNED._pool._idle.values()))
    assert not PINNED._live and 0 < idle < 12


def test_a_blocking_copy_is_done_when_it_returns() -> None:
    pinned = torch.full((_MANY,), 5.0).pin_memory()
    there = torch.empty(_MANY, device="spirv")
    there.copy_(pinned)
    pinned.fill_(6)
    assert bool((there.cpu() == 5).all())
    pinned.copy_(there + 1)
    assert bool((pinned == 6).all())


def test_loaders_pin_their_batches() -> None:
    data = TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20))
    seen = []
    for x, y in DataLoader(data, batch_size=8, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
        seen.append(float(x.to("spirv", non_blocking=True).sum() + y.to("spirv", non_blocking=True).sum()))
    assert seen == [148.0, 468.0, 354.0]


@pytest.mark.parametrize("shift", [1, 5 << 20])
def test_large_copies_within_a_tensor(shift: int) -> None:
    """Source and target overlap: they are no copy between devices."""
    x = torch.arange(8 << 20, dtype=torch.int32)
    there = x.to("spirv")
    there[shift:].copy_(there[:-shift])
    assert torch.equal(there.cpu(), torch.cat((x[:shift], x[:-shift])))
