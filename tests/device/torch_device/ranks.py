"""A program for test_distributed.py: one of two ranks, whose tensors are on the device."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel


def collectives(rank: int) -> None:
    mine = torch.tensor([1.0, 2.0], device="spirv") * (rank + 1)
    total = mine.clone()
    work = dist.all_reduce(total, async_op=True)
    work.wait()
    assert total.tolist() == [3, 6], total
    parts = [torch.empty(2, device="spirv") for _ in range(2)]
    dist.all_gather(parts, mine)
    assert [part.tolist() for part in parts] == [[1, 2], [2, 4]]
    table = torch.zeros(2, 4, device="spirv")
    dist.broadcast(table[:, ::2] if rank else table[:, ::2].fill_(7), src=0)
    assert table.tolist() == [[7, 0, 7, 0]] * 2, table
    joined = torch.empty(4, device="spirv")
    dist.all_gather_into_tensor(joined, mine)
    assert joined.tolist() == [1, 2, 2, 4]
    lists = [torch.empty(2, device="spirv") for _ in range(2)] if rank == 0 else None
    dist.gather(mine, lists, dst=0)
    assert lists is None or lists[1].tolist() == [2, 4]
    dist.reduce(total, dst=0, op=dist.ReduceOp.MAX)
    large = torch.full((1 << 20,), float(rank), device="spirv")
    received = torch.empty_like(large)
    works = [dist.isend(large, 1 - rank), dist.irecv(received, 1 - rank)]
    for work in works:
        work.wait()
    assert received[[0, -1]].tolist() == [1 - rank] * 2
    dist.barrier()
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).to("spirv")


def data_parallel(rank: int) -> None:
    torch.manual_seed(1)
    batch = torch.randn(8, 6)
    alone = model()
    alone(batch.to("spirv")).square().mean().backward()
    for options in ({}, {"gradient_as_bucket_view": True}):
        parallel = DistributedDataParallel(model(), **options)
        for _ in range(2):
            parallel.zero_grad()
            parallel(batch[rank::2].to("spirv")).square().mean().backward()
        for mine, expected in zip(parallel.module.parameters(), alone.parameters(), strict=True):
            assert mine.grad.device.type == "spirv"
            torch.testing.assert_close(mine.grad.cpu(), expected.grad.cpu(), rtol=1e-5, atol=1e-6)


def as_cuda(rank: int, meeting: str) -> None:
    """As programs for CUDA say it: by NCCL's name, by those of devices, and by none."""
    for round_, backend in enumerate(({"backend": "nccl"}, {"backend": "cpu:gloo,cuda:nccl"}, {})):
        one = {"device_id": torch.device("cuda:0")} if round_ == 0 else {}
        where = f"file://{meeting}.{round_}"
        dist.init_process_group(**backend, init_method=where, rank=rank, world_size=2, **one)
        parallel = DistributedDataParallel(torch.nn.Linear(3, 2, bias=False).cuda(), device_ids=[0])
        parallel(torch.full((1, 3), rank + 1.0, device="cuda")).sum().backward()
        assert parallel.module.weight.grad.tolist() == [[1.5] * 3] * 2
        total = torch.ones(2, device="cuda")
        dist.all_reduce(total, group=dist.new_group([0, 1], backend="nccl"))
        assert total.tolist() == [2, 2]
        if round_ == 0:
            assert init_device_mesh("cuda", (2,)).device_type == "spirv"
        dist.destroy_process_group()


if __name__ == "__main__":
    rank = int(sys.argv[1])
    if torch.spirv.is_available() and not torch.cuda.is_available():
        with torch.spirv.as_cuda():
            as_cuda(rank, sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
    collectives(rank)
    data_parallel(rank)
    dist.destroy_process_group()
    print("right", os.getpid())
