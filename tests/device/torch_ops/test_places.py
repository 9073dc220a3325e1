"""Wrong places and lengths raise, and nothing outside of tensors is touched."""

import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from . import places
from .conftest import compare, with_gradients


def test_wrong_places_touch_no_foreign_memory() -> None:
    """In a process whose kernels check the bounds of their tensors."""
    environment = {**os.environ, "TRITON_SPIRV_CHECK_BOUNDS": "1", "TRITON_SPIRV_BACKEND": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.device.torch_ops.places"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert int(done.stdout.split()[-2]) > 500


def test_wrong_places_raise() -> None:
    assert [(name, problem) for name, call in places.cases(7) if (problem := places.outcome(call))] == []


def test_what_was_wrong_is_said() -> None:
    x, table = torch.arange(4.0, device="spirv"), torch.ones(4, 6, device="spirv")
    with pytest.raises(RuntimeError, match="lengths or offsets .* in segment_reduce"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 2], device="spirv")).cpu()
    with pytest.raises(RuntimeError, match="lengths or offsets .* in embedding_bag"):
        F.embedding_bag(x[:3].long(), table, torch.tensor([0, 9], device="spirv")).cpu()
    with pytest.raises(RuntimeError, match="a pivot was not .* in linalg.lu_solve"):
        pivots = torch.tensor([1, 9, 3], dtype=torch.int32, device="spirv")
        torch.linalg.lu_solve(torch.eye(3, device="spirv"), pivots, torch.ones(3, 1, device="spirv")).cpu()
    assert x.tolist() == [0, 1, 2, 3]  # and is said once


def test_right_places_are_right() -> None:
    for mode in ("sum", "mean", "max"):
        for offsets in ([0, 3], [0, 0, 1, 3, 3], [0]):
            compare(
                lambda i, w, o, m=mode: F.embedding_bag(i, w, o, mode=m),
                torch.tensor([3, 1, 1]), torch.arange(24.0).view(4, 6), torch.tensor(offsets),
            )  # fmt: skip
    for how in ("sum", "mean", "max", "min", "prod"):
        compare(lambda x, n, h=how: torch.segment_reduce(x, h, lengths=n), torch.randn(5, 3), torch.tensor([2, 0, 3]))
        compare(
            lambda x, n, h=how: torch.segment_reduce(x, h, offsets=n), torch.randn(5, 3), torch.tensor([0, 2, 2, 5])
        )


@pytest.mark.usefixtures("no_fallbacks")
def test_gradients_by_frequency() -> None:
    i, weight = torch.tensor([1, 2, 1, 4, 1, 2, 0]), torch.randn(5, 3)
    rows = partial(F.embedding, padding_idx=2, scale_grad_by_freq=True)
    compare(with_gradients(lambda weight: rows(i.to(weight.device), weight)), weight)
    # Of bags, torch's CPU divides by how often there is another index (torch 2.13, EmbeddingBag.cpp).
    there = weight.to("spirv").requires_grad_()
    out = F.embedding_bag(
        i.to("spirv"), there, torch.tensor([0, 3], device="spirv"), mode="mean", padding_idx=2, scale_grad_by_freq=True
    )
    out.sum().backward()
    assert there.grad is not None
    want = torch.zeros(5, 3)
    for place, index in enumerate(i.tolist()):
        if index != 2:
            want[index] += 1 / (2 if place < 3 else 3) / i.tolist().count(index)
    torch.testing.assert_close(there.grad.cpu(), want)
