"""Mistakes of programs that use the device: each is one error, which says what to do."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from triton.backends.spirv import runtime  # noqa: E402

from tests.device.processes import run  # noqa: E402


@pytest.mark.parametrize(
    "call",
    [
        lambda x: nn.Linear(3, 4)(x),
        lambda x: nn.LayerNorm(3)(x),
        lambda x: nn.Conv1d(2, 2, 1)(x),
        lambda x: nn.Embedding(3, 3)(x.long()),
        lambda x: x @ torch.ones(3, 3),
        lambda x: torch.ones(3, 2) @ x,
        lambda x: x + torch.ones(2, 3),
        lambda x: torch.where(x > 0, torch.ones(2, 3), x),
        lambda x: x.gather(0, torch.zeros(1, 3, dtype=torch.long)),
        lambda x: F.cross_entropy(x, torch.zeros(2, dtype=torch.long)),
    ],
    ids=lambda call: call.__code__.co_names[0] if call.__code__.co_names else "matmul",
)
def test_tensors_on_two_devices(call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"(on one|on the same) device.* spirv:0 and cpu"):
        call(torch.ones(2, 3, device="spirv"))


def test_numbers_indices_and_lengths_may_be_on_the_cpu() -> None:
    x = torch.arange(6.0, device="spirv").reshape(2, 3)
    assert (x * torch.tensor(2.0)).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert x[torch.tensor([1])].tolist() == [[3, 4, 5]]
    x[torch.tensor([0])] = 7
    assert x[0].tolist() == [7, 7, 7]
    packed = nn.utils.rnn.pack_padded_sequence(x[:, :, None], torch.tensor([3, 2]), batch_first=True)
    assert packed.data.flatten().tolist() == [7, 3, 7, 4, 7]


def test_memory_that_is_not_there() -> None:
    before = torch.spirv.memory_allocated()
    free, total = torch.spirv.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError, match=r"spirv:0 is out of memory\. \d+ of its (\d+) bytes") as caught:
        torch.empty(1 << 44, device="spirv")
    assert isinstance(caught.value, MemoryError) and f"of its {total} bytes are free" in str(caught.value)
    assert f"no room for {4 << 44} bytes" in str(caught.value)
    assert torch.spirv.memory_allocated() <= before and torch.ones(3, device="spirv").sum().item() == 3


_TAKING_MEMORY: dict[str, Callable[[torch.Tensor], Any]] = {
    "add": lambda x: x + x,
    "mm": lambda x: x @ x,
    "softmax": lambda x: x.softmax(1),
    "half": lambda x: x.half(),
    "contiguous": lambda x: x.t().contiguous(),
    "index": lambda x: x[x > 0],
    "foreach": lambda x: torch._foreach_add([x] * 3, 1.0),
    "random": torch.rand_like,
    "to": lambda x: torch.ones(1300, 1300).to("spirv"),
}


@pytest.mark.parametrize("name", _TAKING_MEMORY)
def test_memory_that_is_not_there_for_repeated_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(1500, 1500, device="spirv")
    for _ in range(3):
        _TAKING_MEMORY[name](x)
    torch.spirv.synchronize()
    memory = runtime.of_device(0).memory
    memory.release_idle()

    def refuse(bytes_: int, read: bool) -> Any:
        error: Any = RuntimeError(f"{bytes_} bytes are not there")
        error.no_memory = True
        raise error

    with monkeypatch.context() as patch, pytest.raises(torch.OutOfMemoryError, match="spirv:0 is out of memory") as it:
        patch.setattr(memory, "_allocate", refuse)
        # What other tests keep may lie in a buffer that has room for more: results are kept until it is full.
        assert [_TAKING_MEMORY[name](x) for _ in range(1000)]
    assert isinstance(it.value, MemoryError)


@pytest.mark.skipif(torch.cuda.is_available(), reason="where torch has CUDA, DataParallel takes CUDA's devices")
def test_data_parallel_takes_one_device() -> None:
    module = nn.Linear(3, 2).to("spirv")
    x = torch.randn(4, 3, device="spirv")
    for given in (x, x.cpu()):
        y = nn.DataParallel(module, device_ids=[0])(given)
        torch.testing.assert_close(y.cpu(), module(x).cpu())
    y.sum().backward()
    assert module.weight.grad is not None and module.weight.grad.device.type == "spirv"
    with pytest.raises(RuntimeError, match="DistributedDataParallel"):
        torch.nn.parallel.comm.scatter(x, [0, 1])


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda x: x.to_sparse(), "sparse tensors"),
        (lambda x: x.to_sparse_csr().to_dense(), "sparse tensors"),
        (lambda x: torch.sparse_coo_tensor(torch.zeros(2, 2, dtype=torch.long, device="spirv"), x[0, :2]), "sparse"),
        (lambda x: F.embedding(x.long(), x.requires_grad_(), sparse=True).sum().backward(), "sparse tensors"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "quantized tensors"),
        (lambda x: torch.nested.nested_tensor([x, x]) * 2, "nested tensors of layout=torch.strided"),
    ],
    ids=["coo", "csr", "indices", "embedding", "quantized", "nested"],
)
def test_tensors_of_other_layouts(make: Callable[[Any], Any], what: str) -> None:
    with pytest.raises(NotImplementedError, match=f"the device 'spirv' has no kernels for {what}"):
        make(torch.ones(2, 3, device="spirv"))


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (
            "torch.linalg.eigvals(x); torch.linalg.eigvals(x)",
            "2 operations ran on the CPU, on copies: aten::_linalg_eigvals 2\n",
        ),
        ("torch.linalg.eigvals(x)", "1 operation ran on the CPU, on copies: aten::_linalg_eigvals 1\n"),
        ("x + 1", "0 operations ran on the CPU, on copies\n"),
    ],
)
def test_what_ran_on_the_cpu_is_told_in_one_line_at_the_end(work: str, told: str) -> None:
    script = f"import torch\nx = torch.eye(3, device='spirv')\n{work}\n"
    done = run([sys.executable, "-W", "ignore", "-c", script], TRITON_SPIRV_TORCH_FALLBACK="tell")
    assert done.returncode == 0 and done.stderr.endswith(f"torch on 'spirv': {told}"), done.stderr
