"""A program for test_runtime_beside_cuda.py: what users of CUDA do, each row of it checked; a line of JSON for each.

The environment says who has chosen what. ``use`` as an argument uses the device ``spirv`` before the first row.
"""

import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.device.runtime.kernel_model import trained, worst

ROWS: dict[str, Callable[[], None]] = {}


def row(function: Callable[[], None]) -> Callable[[], None]:
    ROWS[function.__name__.replace("_", " ")] = function
    return function


def _same(found: torch.Tensor, expected: torch.Tensor, bound: float = 1e-4) -> None:
    assert found.device.type == "cuda", found.device
    torch.testing.assert_close(found.cpu(), expected, rtol=bound, atol=bound)


def _of_both(step: Callable[[nn.Module, torch.Tensor], torch.Tensor], bound: float = 1e-4) -> None:
    """Compare the gradients of a small model on CUDA with those on the CPU."""
    torch.manual_seed(0)
    own = nn.Sequential(nn.Linear(33, 65), nn.LayerNorm(65), nn.GELU(), nn.Linear(65, 7))
    x = torch.randn(19, 33)
    step(own, x).backward()
    expected = [p.grad.clone() for p in own.parameters() if p.grad is not None]
    own.zero_grad()
    step(own.cuda(), x.cuda()).backward()
    for parameter, other in zip(own.parameters(), expected, strict=True):
        assert parameter.grad is not None
        _same(parameter.grad, other, bound)


@row
def backward_of_sums() -> None:
    x = torch.rand(1000, device="cuda", requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None and torch.equal(x.grad, 2 * x)


@row
def a_custom_function() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad  # type: ignore[no-any-return]

    x = torch.rand(1000, device="cuda", requires_grad=True)
    (grad,) = torch.autograd.grad(Cube.apply(x).sum(), x)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(grad, 3 * x.detach() ** 2)


@row
def layers() -> None:
    _of_both(lambda model, x: model(x).square().mean())


@row
def layers_of_kernels() -> None:
    """Gradients as near to float64's as those of torch's own operations on CUDA, and the same training."""
    exact, exact_losses = trained("cpu", False, torch.float64)
    own, _ = trained("cuda", False, torch.float32)
    ours, losses = trained("cuda", True, torch.float32)
    error, bound = worst(ours, exact), 4 * worst(own, exact) + 1e-6
    print(json.dumps({"row": "errors of gradients", "kernels": error, "torch": worst(own, exact)}))
    assert error < bound, (error, bound)
    assert max(abs(a - b) for a, b in zip(losses, exact_losses, strict=True)) < 1e-3, (losses, exact_losses)


@row
def checkpointing() -> None:
    torch.manual_seed(1)
    layer = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5), nn.Linear(64, 64)).cuda()
    x = torch.rand(16, 64, device="cuda", requires_grad=True)
    for reentrant in (False, True):
        grads = []
        for wrapped in (False, True):
            torch.manual_seed(2)
            out = checkpoint(layer, x, use_reentrant=reentrant) if wrapped else layer(x)
            grads.append(torch.autograd.grad(out.sum(), x)[0] if not reentrant else _grad(out, x))
        assert torch.equal(*grads), "dropout's mask is another"


def _grad(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    x.grad = None
    out.sum().backward()
    assert x.grad is not None
    return x.grad.clone()


@row
def torch_compile() -> None:
    compiled = torch.compile(lambda x: torch.nn.functional.gelu(x * 2).sum(-1))
    for size in (100, 133):
        x = torch.randn(size, 64, requires_grad=True)
        y = x.detach().cuda().requires_grad_()
        torch.nn.functional.gelu(x * 2).sum().backward()
        compiled(y).sum().backward()
        assert x.grad is not None and y.grad is not None
        _same(y.grad, x.grad)


@row
def autocast() -> None:
    def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            out = model(x)
        return out.float().square().mean()

    _of_both(step, 3e-2)


@row
def pinned_memory() -> None:
    x = torch.arange(1000.0).pin_memory()
    assert x.is_pinned() and not torch.ones(2).is_pinned() and torch.empty(3, pin_memory=True).is_pinned()
    _same(x.to("cuda", non_blocking=True), torch.arange(1000.0))


@row
def save_and_load() -> None:
    file = io.BytesIO()
    torch.save({"x": torch.arange(5, device="cuda"), "layer": nn.Linear(3, 3).cuda().state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["x"].device == torch.device("cuda:0") and loaded["x"].tolist() == [0, 1, 2, 3, 4]
    file.seek(0)
    assert torch.load(file, map_location="cpu")["layer"]["weight"].device.type == "cpu"


@row
def a_data_loader() -> None:
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, pin_memory=True, num_workers=1)
    for batch, start in zip(loader, (0.0, 4.0), strict=True):
        assert batch.is_pinned()
        _same(batch.cuda(non_blocking=True), torch.arange(start, start + 4))


@row
def streams_and_events() -> None:
    side = torch.cuda.Stream()
    x = torch.rand(1 << 20, device="cuda", requires_grad=True)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        start.record()
        y = (x * 3).sum()
        end.record()
    torch.cuda.current_stream().wait_stream(side)
    y.backward()
    end.synchronize()
    assert start.elapsed_time(end) > 0 and x.grad is not None and bool((x.grad == 3).all())


@row
def streams_and_events_of_any_device() -> None:
    assert torch.Stream().device.type == "cuda" and torch.Stream(device="cuda").device.type == "cuda"
    stream, event = torch.Stream(device="cuda"), torch.Event(device="cuda", enable_timing=True)
    event.record(stream)
    event.synchronize()
    assert event.query() and torch.Event().device in (None, torch.device("cuda"), torch.device("cuda:0"))


@row
def torch_accelerator() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream().stream_id == torch.cuda.current_stream().stream_id
    assert torch.accelerator.memory_allocated() == torch.cuda.memory_allocated()


@row
def device_numbers() -> None:
    assert torch.ones(2, device=0).device == torch.ones(2).to(0).device == torch.device("cuda:0")
    assert torch.device(0) == torch.device("cuda:0")


@row
def generators() -> None:
    generator = torch.Generator("cuda").manual_seed(3)
    drawn = torch.rand(4, device="cuda", generator=generator)
    assert torch.equal(drawn, torch.rand(4, device="cuda", generator=torch.Generator("cuda").manual_seed(3)))
    torch.manual_seed(4)
    first = torch.rand(4, device="cuda")
    with torch.random.fork_rng():
        torch.rand(4, device="cuda")
    second = torch.rand(4, device="cuda")
    torch.manual_seed(4)
    assert torch.equal(torch.rand(8, device="cuda")[:0], first[:0]) and torch.initial_seed() == 4
    torch.manual_seed(4)
    assert torch.equal(torch.rand(4, device="cuda"), first) and torch.equal(torch.rand(4, device="cuda"), second)


@row
def gradient_scaling() -> None:
    layer = nn.Linear(8, 8).cuda()
    before = layer.weight.detach().clone()
    optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
    for scaler in (torch.amp.GradScaler("cuda"), torch.amp.GradScaler()):
        with torch.autocast("cuda", torch.float16):
            loss = layer(torch.rand(4, 8, device="cuda")).float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert scaler.is_enabled() and not torch.equal(layer.weight, before)


@row
def a_process_group() -> None:
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
        try:
            x = torch.arange(4.0, device="cuda")
            dist.all_reduce(x)
            _same(x, torch.arange(4.0))
            model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4).cuda())
            model(x).sum().backward()
            assert all(p.grad is not None for p in model.parameters())
        finally:
            dist.destroy_process_group()


@row
def a_process_group_of_nccl() -> None:
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        device = torch.device("cuda:0")
        dist.init_process_group("nccl", init_method=f"file://{folder}/g", rank=0, world_size=1, device_id=device)
        try:
            x = torch.arange(4.0, device="cuda")
            dist.all_reduce(x)
            dist.barrier()
            _same(x, torch.arange(4.0))
        finally:
            dist.destroy_process_group()


@row
def dlpack() -> None:
    x = torch.arange(6.0, device="cuda")
    other = torch.from_dlpack(x)
    other += 1
    assert other.data_ptr() == x.data_ptr() and x.tolist() == [1, 2, 3, 4, 5, 6]


@row
def shared_parameters() -> None:
    embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = embedding.weight
    model = nn.Sequential(embedding, head).cuda()
    assert model[0].weight is model[1].weight and model[0].weight.device.type == "cuda"


@row
def cuda_graphs() -> None:
    x = torch.ones(64, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [11.0] * 64


@row
def threads() -> None:
    found: list[bool] = []

    def work(number: int) -> None:
        x = torch.full((100,), float(number), device="cuda", requires_grad=True)
        (x**2).sum().backward()
        found.append(x.grad is not None and bool((x.grad == 2 * number).all()))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 3, found


def main() -> None:
    """Do each row, whatever becomes of the others."""
    if "use" in sys.argv[1:]:
        torch.zeros(1, device="spirv").add_(1)
    for name, check in ROWS.items():
        try:
            check()
            why = ""
        except Exception as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        print(json.dumps({"row": name, "right": not why, "why": why}), flush=True)
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0)  # whatever a row that failed has left


if __name__ == "__main__":
    main()
