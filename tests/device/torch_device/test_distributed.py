"""Two processes whose tensors are on the device, over gloo."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.device.processes import run  # noqa: E402


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo")
def test_collectives_and_gradients_of_two_ranks(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("ranks.py"))
    commands = [[sys.executable, program, str(rank), str(tmp_path / "meeting")] for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda command: run(command, OMP_NUM_THREADS="1"), commands))
    assert all(rank.returncode == 0 and "\nright" in "\n" + rank.stdout for rank in done), [
        rank.stderr for rank in done
    ]


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo")
def test_models_that_two_ranks_train_are_those_of_one_process(tmp_path: Path) -> None:
    """torchrun; see sharded.py."""
    from tests.device.torch_device.sharded import WAYS

    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = run([*command, str(Path(__file__).with_name("sharded.py")), str(tmp_path)], OMP_NUM_THREADS="1")
    told = sorted(line for line in done.stdout.splitlines() if line.endswith(" is right"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert told == sorted(f"rank {rank}: {way.__name__} is right" for rank in range(2) for way in WAYS)


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo")
def test_a_process_ends_after_its_collectives(tmp_path: Path) -> None:
    """Python ends threads that come back from C++ after it, which aborted one process of ten."""
    program = """if True:
        import sys, time, torch
        import torch.distributed as dist
        dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
        work = dist.all_reduce(torch.ones(4, device="spirv"), async_op=True)
        work.get_future().add_done_callback(lambda _: (time.sleep(0.3), print("told")))
        work.wait()
        dist.destroy_process_group()
        print("right")"""
    for turn in range(3):
        done = run([sys.executable, "-c", program, str(tmp_path / str(turn))], OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.split()) == ["right", "told"]


def test_a_storage_keeps_its_size() -> None:
    storage = torch.arange(4.0, device="spirv").untyped_storage()
    assert storage.resize_(16).nbytes() == 16
    for size in (0, 17):
        with pytest.raises(RuntimeError, match=rf"resize_\({size}\): a storage on 'spirv' keeps its 16 bytes"):
            storage.resize_(size)
    assert torch.ones(4).untyped_storage().resize_(0).nbytes() == 0
