"""benchmarks/kernel_times shows what each kernel of a program took to compile."""

import os

import pytest
import torch
import triton
import triton.language as tl

from benchmarks.kernel_times import Observer, table


@triton.jit
def doubled_kernel(x_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)


def test_each_kernel_has_a_row_with_its_launches() -> None:
    cache, x = os.environ.get("TRITON_CACHE_DIR"), torch.ones(64)
    observer = Observer()
    with observer.watching():
        for size in (32, 64, 64):
            doubled_kernel[(1,)](x, size)
    doubled_kernel[(1,)](x, 16)  # no longer watched
    assert x.tolist() == [16.0] * 16 + [8.0] * 16 + [4.0] * 32
    assert os.environ.get("TRITON_CACHE_DIR") == cache
    kernels = observer.taken()
    assert [(times.name, len(times.launches)) for times in kernels] == [("doubled_kernel", 1), ("doubled_kernel", 2)]
    assert not observer.taken()
    for times in kernels:
        assert times.triton > 0 and times.driver > 0 and times.size > 0 and times.warps == 4
        assert times.total == pytest.approx(times.triton + times.pipeline + times.launches[0])
        assert "test_each_kernel_has_a_row_with_its_launches" in times.place
    assert kernels[0].run is None and kernels[1].run == kernels[1].launches[1]
    lines = table(kernels, 1).splitlines()
    assert len(lines) == 3 and "doubled_kernel" in lines[1] and lines[2].startswith("2 kernels, ")
