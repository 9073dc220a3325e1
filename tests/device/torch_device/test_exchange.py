"""Tensors of the device ``spirv`` on their way to files, other libraries, other processes and other devices."""

import io
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from triton.backends.spirv.runtime.context import current  # noqa: E402
from triton.backends.spirv.torch import registration  # noqa: E402

from tests.device.processes import run  # noqa: E402

#: Built for CUDA, torch 2.11 begins no profile where CUPTI finds no driver, once a device has a name of its own.
BEGINS_NO_PROFILE = torch.backends.cuda.is_built() and torch.__version__ < "2.12"


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()


def saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("source", ["spirv", "cpu"])
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("spirv", "spirv:0"),
        (torch.device("spirv", 0), "spirv:0"),
        ("cpu", "cpu"),
        ({"spirv:0": "cpu", "cpu": "spirv"}, None),
        (lambda storage, _: storage, "cpu"),
    ],
)
def test_loading_across_devices(source: str, place: Any, expected: str | None) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    model = torch.nn.Linear(3, 2).to(source)
    loaded = torch.load(saved({"x": values.to(source), "state": model.state_dict()}), map_location=place)
    assert str(loaded["x"].device) == (expected or ("cpu" if source == "spirv" else "spirv:0"))
    assert torch.equal(loaded["x"].cpu(), values)
    again = torch.nn.Linear(3, 2).to("spirv")
    again.load_state_dict(loaded["state"])
    assert torch.equal(again.weight.cpu(), model.weight.cpu())


def test_a_mapped_file(tmp_path: Any) -> None:
    torch.save(torch.arange(6.0), tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", mmap=True, map_location="spirv")
    assert loaded.device.type == "spirv" and loaded.tolist() == list(range(6))


def test_dlpack_shares_within_torch_and_copies_for_the_host() -> None:
    x = torch.arange(12.0, device="spirv").reshape(3, 4)[:, 1:]
    assert x.__dlpack_device__() == (12, 0)
    for same in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(x.__dlpack__())):
        assert same.device == x.device and same.data_ptr() == x.data_ptr() and torch.equal(same.cpu(), x.cpu())
    found = numpy.from_dlpack(x, device="cpu")
    numpy.testing.assert_array_equal(found, x.cpu().numpy())
    with pytest.raises(BufferError, match="has to be copied"):
        numpy.from_dlpack(x, device="cpu", copy=False)
    with pytest.raises(BufferError, match="require gradient"):
        torch.from_dlpack(torch.ones(2, device="spirv", requires_grad=True))
    assert torch.from_dlpack(numpy.arange(3.0)).to("spirv").tolist() == [0, 1, 2]
    assert torch.ones(2).__dlpack_device__() == (1, 0)


def test_copies_to_the_host_that_need_not_be_waited_for() -> None:
    """They are waited for, unless the program has pinned memory to copy to: what torch made may be read at once."""
    x = torch.arange(12.0).reshape(3, 4)
    for view in (x, x.t(), x[:, ::2], x[:1].expand(3, 4), x.mT[1:, :0]):
        ours = view.to("spirv", non_blocking=True)
        for kind in (None, torch.float64, torch.int32):
            found, right = (one.to("cpu", kind, non_blocking=True, copy=True) for one in (ours, view))
            assert found.device.type == "cpu" and found.dtype == right.dtype and torch.equal(found, right)
            there, here = ours.to(kind or torch.half), view.to(kind or torch.half)
            assert there.stride() == here.stride() and torch.equal(there.cpu(), here)
    model = torch.nn.Linear(4, 2).to("spirv")
    weight = model.weight.detach().cpu()
    assert torch.equal(model.to("cpu", non_blocking=True).weight, weight)
    leaf = torch.ones(3, device="spirv", requires_grad=True)
    (leaf.to("cpu", torch.float64, non_blocking=True) * 2).sum().backward()
    assert leaf.grad.device.type == "spirv" and leaf.grad.tolist() == [2, 2, 2]


def test_sharing_between_processes_is_refused() -> None:
    x = torch.ones(3, device="spirv")
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        ForkingPickler.dumps(x[:0].clone())
    for share in (ForkingPickler.dumps, torch.Tensor.share_memory_):
        with pytest.raises(RuntimeError, match=r"cannot be shared between processes: .*x\.cpu\(\)"):
            share(x)
    assert torch.ones(3).share_memory_().is_shared()


@pytest.mark.parametrize("start", [None, "fork", "spawn"])
def test_loaders_with_workers(start: str | None) -> None:
    """The workers of a program that has used the device make CPU tensors, which the loader pins."""
    torch.ones(2, device="spirv").add_(1)
    data = TensorDataset(torch.arange(10.0))
    workers: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": start} if start else {}
    loader = DataLoader(data, batch_size=4, pin_memory=True, shuffle=False, **workers)
    batches = [batch.to("spirv", non_blocking=True) for (batch,) in loader]
    assert [batch.sum().item() for batch in batches] == [6.0, 22.0, 17.0]


#: A program whose loader has one worker, which gives tensors of the device. Its argument: how the worker starts, and
#: whether the program has used the device before.
_LOADER = """
import sys, torch
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i):
        row = torch.arange(6, device="spirv").reshape(2, 3) + i
        return {"row": row.t(), "halves": (row[0] / 2).half(), "none": row[:0], "host": torch.tensor(i)}
if __name__ == "__main__":
    start, used, pins = sys.argv[1:]
    if used == "True":
        torch.ones(2, device="spirv").add_(1)
    how = {"num_workers": 1, "multiprocessing_context": start, "pin_memory": pins == "True"}
    try:
        for batch in torch.utils.data.DataLoader(Rows(), batch_size=2, **how):
            print(*(x.device for x in batch.values()), batch["row"].stride(), *(x.tolist() for x in batch.values()))
    except RuntimeError as error:
        print("refused:", error)
"""


def _loaded(folder: Any, start: str, used: bool, pins: bool = False) -> str:
    (folder / "loader.py").write_text(_LOADER)
    ended = run([sys.executable, str(folder / "loader.py"), start, str(used), str(pins)], seconds=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(("start", "used"), [("fork", False), ("spawn", False), ("spawn", True), ("forkserver", True)])
def test_workers_that_give_tensors_of_the_device(start: str, used: bool, tmp_path: Any) -> None:
    first, second = _loaded(tmp_path, start, used).splitlines()
    devices, rows = "spirv:0 spirv:0 spirv:0 cpu (6, 2, 1)", "[[[0, 3], [1, 4], [2, 5]], [[1, 4], [2, 5], [3, 6]]]"
    assert first == f"{devices} {rows} [[0.0, 0.5, 1.0], [0.5, 1.0, 1.5]] [[], []] [0, 1]"
    assert second.startswith(devices) and second.endswith("[[1.0, 1.5, 2.0], [1.5, 2.0, 2.5]] [[], []] [2, 3]")


def test_loaders_that_cannot_have_such_tensors_say_why(tmp_path: Any) -> None:
    said = _loaded(tmp_path, "fork", used=True)
    if current().device.api == "Vulkan":
        assert said.startswith("refused:") and "opened before this process was forked" in said and "'spawn'" in said
    else:  # a forked child can use the device, unless kernels ran at the fork
        assert not said.startswith("refused:") or "forked while kernels were running" in said
    said = _loaded(tmp_path, "spawn", used=True, pins=True)
    assert said.startswith("refused:") and "only dense CPU tensors can be pinned" in said


@pytest.mark.skipif(BEGINS_NO_PROFILE, reason="needs torch 2.12, or one that is not built for CUDA")
@pytest.mark.parametrize("activities", [None, [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]])
def test_the_profiler_has_operations_and_labels(activities: Any) -> None:
    x = torch.randn(8, 8, device="spirv")
    with profile(activities=activities, record_shapes=True) as profiler, record_function("my step"):
        (x @ x).relu().sum().item()
    rows = {row.key: row for row in profiler.key_averages()}
    assert {"my step", "aten::mm", "aten::relu", "aten::sum"} <= set(rows)
    assert min(rows["my step"].cpu_time_total, rows["aten::mm"].cpu_time_total) > 0
