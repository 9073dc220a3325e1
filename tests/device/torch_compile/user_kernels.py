"""Run by test_user_kernels.py: @triton.jit kernels in compiled functions, the first launch of the process among them.

Arguments: the device, and "fullgraph" or "breaks" for what comes first.
"""

import sys

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256}, num_warps=2)], key=["n"])
@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def added(x, y):
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out * 2


def scaled(x, y):
    out = torch.empty_like(x)
    scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, 3.0, x.numel())
    return out + y


@triton_op("spirv_tests::doubled", mutates_args={})
def doubled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(add)[(triton.cdiv(x.numel(), 128),)](x, x, out, x.numel(), BLOCK=128)
    return out


def check(name, function, expected, device, **options):
    for size in (1000, 777):  # dynamic from the second size on
        x, y = torch.rand(size), torch.rand(size)
        found = torch.compile(function, **options)(x.to(device), y.to(device))
        assert found.device.type == device, found.device
        torch.testing.assert_close(found.cpu(), expected(x, y), msg=lambda text: f"{name} {options}: {text}")
    print(name, options, "right")


def main():
    device, first = sys.argv[1:]
    for full in (first == "fullgraph", first != "fullgraph"):
        torch._dynamo.reset()
        check("jit", added, lambda x, y: (x + y) * 2, device, fullgraph=full)
        check("autotuned", scaled, lambda x, y: x * 3 + y, device, fullgraph=full)
        check("triton_op", lambda x, y: doubled(x, y) - y, lambda x, y: x * 2 - y, device, fullgraph=full)
    check("no Inductor", added, lambda x, y: (x + y) * 2, device, backend="aot_eager", fullgraph=True)


if __name__ == "__main__":
    main()
