"""A program for test_distributed.py, started by torchrun: two ranks train a model in each of torch's ways, on the
device, and compare it with one process on the CPU. ``sharded.py FOLDER``: an empty one, for checkpoints."""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

STEPS = 3


def make() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


torch.manual_seed(1)
X, Y = torch.randn(8, 8), torch.randn(8, 4)


def train(module: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int = STEPS) -> torch.optim.Optimizer:
    """AdamW on one batch; the optimizer."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for _ in range(steps):
        go_on(module, optimizer, x, y)
    return optimizer


def go_on(module: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    """A step."""
    optimizer.zero_grad()
    (module(x) - y).square().mean().backward()
    optimizer.step()


def expect(module: nn.Module, steps: int = STEPS, tolerance: float = 1e-5) -> None:
    """Check that its parameters, on the device, equal the parameters of one process on the CPU."""
    alone = make()
    train(alone, X, Y, steps)
    for found, expected in zip(module.parameters(), alone.parameters(), strict=True):
        assert found.device.type == "spirv", found.device
        whole = found.full_tensor() if hasattr(found, "full_tensor") else found
        torch.testing.assert_close(whole.detach().cpu(), expected.detach(), rtol=1e-4, atol=tolerance)


def mine(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[dist.get_rank() :: 2].to("spirv")


def data_parallel(mesh: DeviceMesh, folder: Path) -> None:
    parallel = DistributedDataParallel(make().to("spirv"))
    train(parallel, mine(X), mine(Y))
    expect(parallel.module)


def sharded(mesh: DeviceMesh, **how: object) -> nn.Module:
    module = make().to("spirv")
    for layer in module:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, **how)
    return fully_shard(module, mesh=mesh, **how)


def fully_sharded(mesh: DeviceMesh, folder: Path) -> None:
    module = sharded(mesh)
    assert [parameter.to_local().shape[0] for parameter in module.parameters()] == [8, 8, 2, 2]
    train(module, mine(X), mine(Y))
    expect(module)


def fully_sharded_in_halves(mesh: DeviceMesh, folder: Path) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    module = sharded(mesh, mp_policy=policy)
    train(module, mine(X), mine(Y))
    expect(module, tolerance=2e-2)


def fully_sharded_as_before(mesh: DeviceMesh, folder: Path) -> None:
    """FSDP1 takes a storage's size for whether its parameters were gathered."""
    try:
        module = FullyShardedDataParallel(make().to("spirv"), device_id=torch.device("spirv", 0), use_orig_params=True)
        train(module, mine(X), mine(Y))
    except RuntimeError as error:
        assert "use torch.distributed.fsdp.fully_shard" in str(error), error
    else:
        raise AssertionError("it is not refused")


def tensor_parallel(mesh: DeviceMesh, folder: Path) -> None:
    module = parallelize_module(make().to("spirv"), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert module[0].weight.to_local().shape == (8, 8)
    train(module, X.to("spirv"), Y.to("spirv"))
    expect(module)


def distributed_tensors(mesh: DeviceMesh, folder: Path) -> None:
    whole = torch.arange(32.0).view(8, 4)
    rows = distribute_tensor(whole.to("spirv"), mesh, [Shard(0)])
    assert rows.to_local().device.type == "spirv"
    torch.testing.assert_close((rows @ rows.T).full_tensor().cpu(), whole @ whole.T)
    columns = rows.redistribute(mesh, [Shard(1)]).to_local()
    torch.testing.assert_close(columns.cpu(), whole.chunk(2, 1)[dist.get_rank()])
    torch.testing.assert_close(rows.sum().redistribute(mesh, [Replicate()]).to_local().cpu(), whole.sum())


def checkpoints(mesh: DeviceMesh, folder: Path) -> None:
    """Saved after two steps, loaded into another model that has one step before it goes on."""
    module = sharded(mesh)
    optimizer = train(module, mine(X), mine(Y), STEPS - 1)
    state, steps = get_state_dict(module, optimizer)
    # Where torch has CUDA, the writer copies CUDA's tensors ahead, and takes all others for the CPU's.
    writer = checkpoint.FileSystemWriter(folder / "saved", per_thread_copy_ahead=0)
    checkpoint.save({"model": state, "optimizer": steps}, storage_writer=writer)
    other = sharded(mesh)
    optimizer = train(other, mine(Y @ X[:4]), mine(Y), 1)
    state, steps = get_state_dict(other, optimizer)
    checkpoint.load({"model": state, "optimizer": steps}, checkpoint_id=folder / "saved")
    set_state_dict(other, optimizer, model_state_dict=state, optim_state_dict=steps)
    go_on(other, optimizer, mine(X), mine(Y))
    expect(other)


def pipeline(mesh: DeviceMesh, folder: Path) -> None:
    whole, rank = make(), dist.get_rank()
    part = (nn.Sequential(whole[0], whole[1]) if rank == 0 else whole[2]).to("spirv")
    stage = PipelineStage(part, rank, 2, torch.device("spirv"))
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda out, target: (out - target).square().mean())
    out = schedule.step(X.to("spirv")) if rank == 0 else schedule.step(target=Y.to("spirv"))
    if rank:
        torch.testing.assert_close(out.cpu(), make()(X).detach(), rtol=1e-4, atol=1e-5)
    alone = make()
    (alone(X) - Y).square().mean().backward()
    expected = (alone[0], alone[2])[rank].weight.grad
    found = (part[0] if rank == 0 else part).weight.grad
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


WAYS: tuple[Callable[[DeviceMesh, Path], None], ...] = (
    data_parallel,
    fully_sharded,
    fully_sharded_in_halves,
    fully_sharded_as_before,
    tensor_parallel,
    distributed_tensors,
    checkpoints,
    pipeline,
)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    mesh = init_device_mesh("spirv", (2,))
    for way in WAYS:
        way(mesh, Path(sys.argv[1]))
        # In one piece: the ranks write to one pipe.
        sys.stdout.write(f"rank {dist.get_rank()}: {way.__name__} is right\n")
        sys.stdout.flush()
    fallbacks = torch.spirv.fallbacks()
    assert not fallbacks, fallbacks
    dist.barrier()
    dist.destroy_process_group()
