"""A program for test_runtime_cuda_tensors.py: one check, named by its argument, on a GPU that torch drives by CUDA."""

from __future__ import annotations

import faulthandler
import json
import sys
import threading
from tempfile import TemporaryDirectory
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends.spirv.inspection.bisect import _text
from triton.backends.spirv.launching.values import values_launcher
from triton.backends.spirv.runtime import ValuesDiffer, cuda
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.errors import NotShareable
from triton.backends.spirv.spirv import fold
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.torch import register

MIB = 1 << 20


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


@triton.jit
def mixed_kernel(x, w, steps, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    value = tl.load(x + i, mask=inside) * tl.load(w + i, mask=inside) + tl.load(steps + i, mask=inside) * 3
    tl.store(out + i, value, mask=inside)


def add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> Any:
    """out = x + y on the Vulkan device. The launch's metadata."""
    n = out.numel()
    return add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def pooled(*shape: int) -> torch.Tensor:
    """Random values in memory of a pool that is shared. torch 2.11 refuses it to two threads at once."""
    with POOLING, torch.cuda.use_mem_pool(POOL):
        return torch.rand(shape, device="cuda")


def slow(tensor: torch.Tensor) -> None:
    """Keep the current CUDA stream busy for about 0.1 s, then fill ``tensor`` with ones."""
    torch.cuda._sleep(200_000_000)
    tensor.fill_(1)


def in_place() -> None:
    x, y, out = pooled(100_003), pooled(100_003), pooled(100_003)
    for _ in range(3):
        add(x, y, out)
        assert torch.equal(out, x + y)
    wide = pooled(1000, 777)
    before = wide.clone()
    add(wide[500:], wide[:500], wide[500:])
    assert torch.equal(wide[500:], before[500:] + before[:500]) and torch.equal(wide[:500], before[:500])
    big = [pooled(64 * MIB) for _ in range(3)]
    add(*big)
    assert torch.equal(big[2], big[0] + big[1])


def memory_that_is_freed_and_taken_again() -> None:
    for size in (3 * MIB, 5 * MIB, 3 * MIB, 40 * MIB, 5 * MIB):
        x, y, out = pooled(size), pooled(size), pooled(size)
        add(x, y, out)
        assert torch.equal(out, x + y)
        del x, y, out
        torch.cuda.empty_cache()


def ordinary_memory_is_refused() -> None:
    x = torch.rand(4096, device="cuda")
    shared = pooled(4096)
    try:
        add(shared, x, shared)
    except NotShareable as error:
        message = str(error)
    else:
        raise AssertionError("it was not refused")
    assert message.startswith(
        "kernel 'add_kernel', argument 'y_ptr': the CUDA tensor's memory was allocated by cudaMalloc"
    )
    assert "use_mem_pool(triton.backends.spirv.runtime.cuda.mem_pool())" in message


def staged() -> None:
    """With TRITON_SPIRV_CUDA=staged."""
    x, y, out = (torch.rand(100_003, device="cuda") for _ in range(3))
    slow(x)
    add(x, y, out)
    assert torch.equal(out, 1 + y)


def streams_in_order() -> None:
    """A launch reads what its stream wrote before it, and the stream reads what the launch wrote."""
    x, y, out = pooled(MIB), pooled(MIB), pooled(MIB)
    torch.cuda.synchronize()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream(priority=-1)):
        with torch.cuda.stream(stream):
            x.fill_(7)
            slow(x)
            add(x, y, out)
            after = out.clone()
        stream.synchronize()
        assert torch.equal(after, 1 + y)


def a_stream_that_is_done_does_not_start_anothers_launch() -> None:
    busy, idle = torch.cuda.Stream(), torch.cuda.Stream()
    tensors = [(pooled(MIB), pooled(MIB), pooled(MIB)) for _ in range(2)]
    for x, _, _ in tensors:
        x.fill_(7)
    torch.cuda.synchronize()
    results = []
    for stream, (x, y, out) in zip((busy, idle), tensors, strict=True):
        with torch.cuda.stream(stream):
            if stream is busy:
                slow(x)
            add(x, y, out)
            results.append(out.clone())
    torch.cuda.synchronize()
    assert torch.equal(results[0], 1 + tensors[0][1]) and torch.equal(results[1], 7 + tensors[1][1])


def threads_with_streams_of_their_own() -> None:
    wrong: list[str] = []

    def work(seed: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            x, y, out = pooled(50_000 + seed), pooled(50_000 + seed), pooled(50_000 + seed)
            for round_ in range(50):
                x.fill_(seed + round_)
                add(x, y, out)
                if not torch.equal(out, y + (seed + round_)):
                    wrong.append(f"{seed}, {round_}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def with_other_memory() -> None:
    """Beside host memory, and beside this runtime's own device memory."""
    x, y = pooled(5000), torch.rand(5000)
    out = torch.zeros(5000)
    slow(x)
    add(x, y, out)
    assert torch.equal(out, 1 + y)
    register()
    own = torch.zeros(5000, device="spirv")
    add(x, x, own)
    assert torch.equal(own.cpu(), torch.full((5000,), 2.0))


def expandable_segments() -> None:
    """With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: tensors in one chunk, and in several."""
    for count in (1000, 3 * MIB, 5 * MIB + 13, 64 * MIB):
        x, y, out = (torch.rand(count, device="cuda") for _ in range(3))
        for _ in range(2):
            add(x, y, out)
            assert torch.equal(out, x + y), count
        half = count // 2
        out.zero_()
        add(x[half:], y[half:], out[half:])
        assert torch.equal(out[half:], x[half:] + y[half:]) and not out[:half].any(), count


def expandable_segments_that_change() -> None:
    """Chunks that CUDA unmaps, and others in their place."""
    for count in (64 * MIB, 32 * MIB, 96 * MIB, 16 * MIB, 64 * MIB):
        x, y, out = (torch.rand(count, device="cuda") for _ in range(3))
        add(x, y, out)
        assert torch.equal(out, x + y), count
        del x, y, out
        torch.cuda.empty_cache()


def _mixed() -> tuple[torch.Tensor, torch.Tensor]:
    """What a compared launch with views of odd starts and three types of elements wrote, and what it should have."""
    x, w = torch.rand(1300, device="cuda")[3:], torch.rand(1300, device="cuda", dtype=torch.bfloat16)[1:]
    steps = torch.arange(1300, device="cuda", dtype=torch.int32)[5:]
    out = torch.full((1300,), 7.0, device="cuda")
    try:
        mixed_kernel[(6,)](x, w, steps, out[1:], 1290, BLOCK=256, check_values=True)
    finally:
        expected = out.clone()
        expected[1:1291] = (x.double()[:1290] * w.double()[:1290] + 3 * steps[:1290]).float()
        MIXED.append((out, expected))
    return out, expected


def compared_launches() -> None:
    """Launches that are compared with the reference's leave what the usual kernel wrote."""
    for launch in range(3):
        out, expected = _mixed()
        torch.testing.assert_close(out, expected)
        assert values_launcher.compared_here == launch + 1
    x, out = torch.rand(100, device="cuda"), torch.zeros(100, device="cuda", dtype=torch.int32)
    add_kernel[(1,)](x, x, triton.reinterpret(out, tl.float32), 100, BLOCK=1024, check_values=True)
    assert torch.equal(out.view(torch.float32), 2 * x) and values_launcher.compared_here == 4
    in_place = x.clone()
    add_kernel[(1,)](in_place, x, in_place, 90, BLOCK=1024, check_values=True)
    assert torch.equal(in_place[:90], 2 * x[:90]) and torch.equal(in_place[90:], x[90:])
    own = torch.rand(100)
    add_kernel[(1,)](x, own, out.view(torch.float32), 100, BLOCK=1024, check_values=True)
    assert torch.equal(out.view(torch.float32).cpu(), x.cpu() + own) and values_launcher.compared_here == 6


def a_wrong_item_is_named() -> None:
    """A rule of simplification that takes i * 3 for i."""
    fold.RIGHT_IDENTITY[op.IMul] = 3
    with TemporaryDirectory() as triton.knobs.cache.dir:
        try:
            _mixed()
        except ValuesDiffer as error:
            found = error
        else:
            raise AssertionError("no value differs")
    assert found.items == ("simplification",) and (found.kernel, found.argument) == ("mixed_kernel", "out"), found
    line = mixed_kernel.fn.__code__.co_firstlineno + 5
    assert str(found).startswith(f"cuda_tensors.py:{line}: kernel 'mixed_kernel': out[0] is "), (line, str(found))
    out, expected = MIXED[-1]
    steps = torch.arange(5, 1295, device="cuda")
    torch.testing.assert_close(out[1:1291], expected[1:1291] - 2 * steps)  # what the usual kernel wrote
    assert (out[0], *out[1291:].unique()) == (7, 7)
    told = json.loads(_text(found, data=True))
    types = [one["dtype"] for one in told["arguments"] if "dtype" in one]
    assert types == ["torch.float32", "torch.bfloat16", "torch.int32", "torch.float32"]
    assert len(told["data"]) == 4


MIXED: list[tuple[torch.Tensor, torch.Tensor]] = []


def _added_on(index: int, size: int = 100_003) -> None:
    """Adds on a GPU that is to be torch.cuda's current one, on its current stream, beside its other work."""
    device = f"cuda:{index}"
    x, y, out = (torch.rand(size, device=device) for _ in range(3))
    for _ in range(20):
        x.add_(1)
        add(x, y, out)
        assert torch.equal(out, x + y), device


def _refusal(x: torch.Tensor) -> str:
    """What a launch with a tensor of another GPU says."""
    try:
        add(x, x, x)
    except NotShareable as error:
        return str(error)
    raise AssertionError("it was not refused")


def the_current_gpu() -> None:
    """As torch.cuda has it: chosen for the thread, or for a block; and no other GPU's tensors."""
    for index in (0, 1, 0):
        torch.cuda.set_device(index)
        _added_on(index)
        with torch.cuda.device(1 - index):
            _added_on(1 - index)
            with torch.cuda.stream(torch.cuda.Stream()):
                _added_on(1 - index)
        _added_on(index)
    message = _refusal(torch.rand(4096, device="cuda:1"))
    assert "the tensor is on 'cuda:1', and the kernel was launched on another GPU, 'cuda:0'" in message, message
    assert "with torch.cuda.device(1):" in message


def the_current_gpu_of_the_device_spirv() -> None:
    _added_on(0)
    with torch.cuda.device(1):
        assert "torch.spirv.device(1)" in _refusal(torch.rand(4096, device="cuda:1"))
    for index in (1, 0):
        with torch.spirv.device(index):
            _added_on(index)


def a_gpu_for_each_thread() -> None:
    wrong: list[BaseException] = []

    def work(index: int) -> None:
        try:
            torch.cuda.set_device(index)
            for round_ in range(10):
                _added_on(index, 50_000 + round_)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(index % 2,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


class _Doubled(torch.autograd.Function):
    """Twice a tensor, by a kernel, in both directions; torch's engine runs them in a thread of its GPU."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        add(x, x, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        grad = grad.contiguous()
        out = torch.empty_like(grad)
        add(grad, grad, out)
        return out


def gradients_on_both_gpus() -> None:
    parts = [torch.rand(5000, device=f"cuda:{index}", requires_grad=True) for index in range(2)]
    results = []
    for index, part in enumerate(parts):
        with torch.cuda.device(index):
            results.append(_Doubled.apply(part))
    (results[0].sum() + results[1].to("cuda:0").sum()).backward()
    for part in parts:
        assert torch.equal(part.grad, torch.full_like(part, 2.0))


@triton.jit
def endless_kernel(flag_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass


def a_limit_does_not_count_what_cuda_takes() -> None:
    """With a limit of half a second: a launch waits 2 s for its stream."""
    x, y, out = pooled(4096), pooled(4096), pooled(4096)
    torch.cuda._sleep(4_000_000_000)
    add(x, y, out)
    assert torch.equal(out, x + y)


def a_kernel_that_never_ends() -> None:
    """With a limit of 2 s."""
    with POOLING, torch.cuda.use_mem_pool(POOL):
        flag = torch.zeros(64, dtype=torch.int32, device="cuda")
    endless_kernel[(1,)](flag)
    try:
        torch.cuda.synchronize()
        while True:  # the error shows once Python runs again
            pass
    except RuntimeError as error:
        assert "cuda_tensors.py" in str(error) and "endless_kernel" in str(error), error
        assert "TRITON_SPIRV_CHECK_BOUNDS=1" in str(error), error
    print("right")
    raise SystemExit(0)


POOL, POOLING = cuda.mem_pool(), threading.Lock()

if __name__ == "__main__":
    faulthandler.enable()  # tests.device.processes.run() asks for the stacks where a program does not end
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    current().native.synchronize()
    print("right")
