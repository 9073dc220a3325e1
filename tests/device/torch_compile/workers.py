"""Run by test_workers.py: a function of two kernels, compiled in worker processes. Argument: how they are started."""

import sys

import torch
import torch._inductor.config as inductor


def softmaxes(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.sin(), -1) + torch.softmax(x.cos(), 0)


def main() -> None:
    from torch._inductor import async_compile

    x = torch.randn(33, 70)
    ours = x.to("spirv")  # the device is open before workers are forked
    inductor.compile_threads, inductor.worker_start_method = 2, sys.argv[1]
    async_compile.AsyncCompile.warm_pool()
    async_compile.AsyncCompile.wait_pool_ready()
    assert async_compile.AsyncCompile.use_process_pool(), "kernels would be compiled in this process"
    found = torch.compile(softmaxes)(ours)
    torch.testing.assert_close(found.cpu(), softmaxes(x))
    print("right")


if __name__ == "__main__":
    main()
