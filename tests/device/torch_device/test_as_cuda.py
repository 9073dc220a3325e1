"""``torch.spirv.as_cuda()``: code that insists on CUDA runs on the device, and nothing is left of it afterwards."""

from __future__ import annotations

import _thread
import concurrent.futures
import contextlib
import dataclasses
import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from operator import attrgetter
from queue import SimpleQueue
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends import backends
from triton.backends.spirv.torch import registration
from triton.backends.spirv.torch.device import cuda_names

from tests.vendor import cuda_packages

if torch.cuda.is_available():
    pytest.skip("as_cuda() is refused where torch has CUDA devices", allow_module_level=True)

registration.register()


@triton.jit
def _double(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def _doubled(x: torch.Tensor) -> torch.Tensor:
    """As kernel libraries write it."""
    assert torch.cuda.is_available() and x.is_cuda
    if torch.cuda.get_device_capability(x.device)[0] < 8:
        raise RuntimeError("needs Ampere")
    shared = torch.cuda.get_device_properties(torch.cuda.current_device()).shared_memory_per_block_optin
    out = torch.empty_like(x)
    with torch.cuda.device(x.device.index):
        _double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256 if shared >= 16384 else 128)
    torch.cuda.synchronize()
    return out


def test_a_library_that_insists_on_cuda() -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        _doubled(torch.ones(300, device="spirv"))
    with torch.spirv.as_cuda():
        assert _doubled(torch.arange(300.0, device="cuda")).tolist() == [2.0 * i for i in range(300)]


@pytest.mark.parametrize("types", [False, True], ids=["spirv", "cuda"])
def test_a_parameters_data_moves_to_cuda(types: bool) -> None:
    with torch.spirv.as_cuda(types=types):
        layer = torch.nn.Linear(3, 2)
        weight, expected = layer.weight, layer.weight.tolist()
        optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
        for parameter in layer.parameters():
            parameter.data = parameter.data.cuda()
        assert layer.weight is weight and weight.is_cuda and weight.is_leaf and weight.requires_grad
        assert type(weight) is torch.nn.Parameter and weight.tolist() == expected
        layer(torch.ones(1, 3, device="cuda")).sum().backward()
        optimizer.step()
        assert weight.cpu().tolist() == (torch.tensor(expected) - 1).tolist()
        with pytest.raises(RuntimeError, match="incompatible tensor type"):  # its gradient is on the device
            weight.data = weight.data.cpu()
        weight.grad = None
        weight.data = weight.data.cpu()
        assert weight.device.type == "cpu"
        assert layer.cuda().weight is weight and weight.is_cuda
        weight.data = weight.data.cpu()
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        weight.data = torch.ones(2, 3, device="spirv")


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: torch.empty(3, **how).fill_(2),
        lambda **how: torch.full((3,), 2.0, **how),
        lambda **how: torch.tensor([2.0, 2.0, 2.0], device="cpu", **how),
    ],
    ids=["empty", "full", "tensor"],
)
def test_new_tensors_in_pinned_memory(make: Callable[..., torch.Tensor]) -> None:
    with torch.spirv.as_cuda():
        made = make(pin_memory=True)
        assert made.is_pinned() == torch.ones(3).pin_memory().is_pinned()
        assert made.device.type == "cpu" and made.tolist() == [2.0, 2.0, 2.0] and not made.requires_grad
        leaf = torch.zeros(3, pin_memory=True, requires_grad=True)
        assert leaf.is_leaf and leaf.requires_grad and not make(pin_memory=False).is_pinned()
        with pytest.raises(RuntimeError, match="pinned"):
            torch.zeros(3, device="cuda", pin_memory=True)


class _Doubled(torch.autograd.Function):
    """Twice its argument, through tensors that are made on "cuda" and moved there."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x + torch.empty_like(x, device="cuda:0").copy_(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        assert gradient.to("cuda").data_ptr() == gradient.data_ptr()
        return torch.zeros_like(gradient, device="cuda:0").add_(gradient.cuda()) * 2


def test_names_hold_in_backward() -> None:
    with torch.spirv.as_cuda():
        x = torch.ones(3, device="cuda", requires_grad=True)
        _Doubled.apply(x).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
        (gradient,) = torch.autograd.grad(_Doubled.apply(x).sum(), x)
        torch.autograd.backward(_Doubled.apply(x).sum())
        assert gradient.tolist() == [2, 2, 2] and x.grad.tolist() == [4, 4, 4]


def test_names_hold_in_threads_that_begin_inside() -> None:
    seen: list[Any] = []

    def run() -> None:
        x = torch.ones(3, device="cuda")
        seen.append((x.device.type, x.to("cuda").data_ptr() == x.data_ptr(), torch.ones(2).cuda().tolist()))

    with torch.spirv.as_cuda():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(run).result()
    assert seen == [("spirv", True, [1, 1])] * 2
    after = threading.Thread(target=lambda: seen.append(torch.overrides._len_torch_function_stack()))
    after.start()
    after.join()
    assert seen[2] == 0


def _twice(x: torch.Tensor) -> torch.Tensor:
    return (x * 2.0).relu() + torch.ones(4, device=x.device.type if x.device.type == "cpu" else "cuda")


def test_functions_compile_inside() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(_twice, fullgraph=True)
    assert compiled(torch.ones(4)).tolist() == [3] * 4
    with torch.spirv.as_cuda():
        for again in (compiled, compiled, torch.compile(_twice, mode="reduce-overhead")):
            got = again(torch.ones(4, device="cuda"))
            assert got.device.type == "spirv" and got.tolist() == [3] * 4
    with pytest.raises(Exception, match="cuda|CUDA"):  # the name means nothing outside, whatever was compiled
        compiled(torch.ones(4, device="spirv"))
    assert compiled(torch.ones(4)).tolist() == [3] * 4
    torch._dynamo.reset()


def _by_type(x: torch.Tensor) -> torch.Tensor:
    return x * (2.0 if x.device.type == "cuda" else 3.0 if x.device.type == "cpu" else 5.0)


def _registered(how: str, kernel: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """A kernel for CUDA, in each way that torch has."""
    if how == "of torch's operation":
        library = torch.library.Library("aten", "IMPL", "CUDA")
        library.impl("cosh", kernel)
        return lambda x: (torch.cosh(x), library._destroy())[0]
    name = f"spirv_as_cuda::{how.replace(' ', '_')}"
    if how == "with the operation":
        return torch.library.custom_op(name, kernel, mutates_args=(), device_types="cuda")
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.impl(name, ("cuda", "cpu"), kernel)
    return getattr(torch.ops.spirv_as_cuda, name.partition("::")[2])


@pytest.mark.parametrize("how", ["of torch's operation", "with the operation", "for several devices"])
def test_kernels_that_are_registered_for_cuda_are_called(how: str) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        return x + 40

    with torch.spirv.as_cuda():
        function = _registered(how, kernel)
        assert function(torch.zeros(3, device="cuda")).tolist() == [40, 40, 40]
    assert torch.cosh(torch.zeros(1, device="spirv")).item() == 1
    assert torch.zeros(1).cosh().item() == 1


@pytest.mark.parametrize("order", [("PrivateUse1", "CUDA"), ("CUDA", "PrivateUse1")])
def test_kernels_that_are_registered_for_both(order: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before torch 2.13 a second kernel of a key was refused by default: no library could register a kernel of what
    this device has, and torch's own FSDP could not be imported in the region."""
    own = torch.library.Library.impl
    monkeypatch.setattr(torch.library.Library, "impl", functools.partialmethod(own, allow_override=False))
    with torch.spirv.as_cuda():
        library = torch.library.Library("aten", "IMPL")
        for key in order:
            library.impl("cosh", lambda x: x + 40, key)
        with pytest.raises(RuntimeError, match="already a kernel"):
            library.impl("cosh", lambda x: x, "CUDA")
        assert torch.cosh(torch.zeros(3, device="cuda")).tolist() == [40, 40, 40]
        library._destroy()
    assert torch.cosh(torch.zeros(1, device="spirv")).item() == 1


def test_a_library_that_cannot_end_another_is_refused() -> None:
    with torch.spirv.as_cuda():
        library = torch.library.Library("aten", "IMPL", "CUDA")
        ends = vars(library).pop("_registration_handles")
        with pytest.raises(RuntimeError, match=r"as_cuda\(\): a library of torch [0-9.]+"):
            library.impl("sinh", lambda x: x)
        library._registration_handles = ends
        library._destroy()


def test_types_of_devices_are_cudas_where_that_is_asked_for() -> None:
    torch._dynamo.reset()
    x, compiled, told = torch.ones(4, device="spirv"), torch.compile(_by_type, fullgraph=True), []
    with torch.spirv.as_cuda(types=True):
        made = torch.zeros(2, device=x.device.type)
        thread = threading.Thread(target=lambda: told.append((x.device.type, torch.ones(2).to("cuda").device.type)))
        thread.start()
        thread.join()
        asked: SimpleQueue[str] = SimpleQueue()  # in a thread of C++ code, without a frame of Python
        _thread.start_new_thread(list, (map(asked.put, map(attrgetter("type"), [x.device])),))
        assert asked.get(timeout=60) == "spirv"
        told += [x.device.type, made.device.type, torch.device("meta").type, (made.device, str(made.device))]
        assert told == [("cuda", "cuda"), "cuda", "cuda", "meta", (torch.device("spirv:0"), "spirv:0")]
        assert [_by_type(x).tolist(), compiled(x).tolist(), _by_type(torch.ones(1)).item()] == [
            [2.0] * 4,
            [2.0] * 4,
            3.0,
        ]
        assert _doubled(made + 1).tolist() == [2.0, 2.0]
        with torch.spirv.as_cuda():  # asked for outside
            assert x.device.type == "cuda"
        with torch.autocast(x.device.type, torch.bfloat16):
            assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype == torch.bfloat16
    for region in (torch.spirv.as_cuda, contextlib.nullcontext):  # nothing is left, in what was compiled neither
        with region():
            assert x.device.type == "spirv" and [_by_type(x)[0].item(), compiled(x)[0].item()] == [5.0, 5.0]
    torch._dynamo.reset()


def test_an_error_leaves_no_types_behind() -> None:
    own = torch.device.__dict__["type"]
    with pytest.raises(KeyError), torch.spirv.as_cuda(types=True):
        raise KeyError(torch.device("spirv").type)
    assert torch.device.__dict__["type"] is own and torch.device("spirv").type == "spirv"


#: A function with a block of torch.cuda's, in a process that imports Dynamo inside, as libraries do, or before.
_BLOCK = """
import torch
FIRST

def twice(x):
    with torch.cuda.BLOCK:
        y = x * 2.0
    return y

with torch.spirv.as_cuda():
    stream = torch.cuda.Stream()
    print(torch.compile(twice, fullgraph=FULL)(torch.ones(3, device="cuda")).tolist())
"""
_BLOCKS = [
    ("", "device(x.device.index)", True),
    ("import torch._dynamo", "device(x.device)", True),
    ("", "stream(stream)", False),
]


@pytest.mark.parametrize(("first", "block", "full"), _BLOCKS)
def test_blocks_of_cuda_compile(first: str, block: str, full: bool) -> None:
    program = _BLOCK.replace("FIRST", first).replace("BLOCK", block).replace("FULL", str(full))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert ended.stdout == "[2.0, 2.0, 2.0]\n", ended.stderr


class _Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


def test_subclasses_override_nothing_while_torch_traces() -> None:
    own = torch.ones(1).as_subclass(_Own)
    with torch.spirv.as_cuda():
        assert torch.autograd.has_torch_function((own,)) and not torch.autograd.has_torch_function((torch.ones(1),))
        with torch._C.DisableTorchFunctionSubclass():
            assert not torch.autograd.has_torch_function((own,))


#: Functions of torch.cuda that are torch's own in the region: they ask no device.
_TORCHS = {"classproperty", "current_device", "graph"}
_SPELLINGS = ("cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0"), 0, None)
#: What is called with something else than a device, or changes what other tests see.
_OTHERS = {"set_rng_state", "set_rng_state_all", "can_device_access_peer", "manual_seed", "manual_seed_all", "seed"}
_OTHERS |= {"seed_all", "init", "current_device", "device_count", "stream", "set_stream", "is_bf16_supported"}
_OTHERS |= {"is_available", "is_initialized", "default_generators", "get_rng_state_all", "initial_seed", "empty_cache"}
_OTHERS |= {
    "is_current_stream_capturing",
    "ExternalStream",
    "get_stream_from_external",
    "Event",
    "device_of",
    "CUDAGraph",
    "graph_pool_handle",
    "make_graphed_callables",
    "set_per_process_memory_fraction",
}


def _functions() -> list[str]:
    """The public functions of torch.cuda."""
    names = [name for name in dir(torch.cuda) if not name.startswith("_")]
    own = [name for name in names if str(getattr(getattr(torch.cuda, name), "__module__", "")).startswith("torch")]
    return [
        name for name in own if callable(getattr(torch.cuda, name)) and not isinstance(getattr(torch.cuda, name), type)
    ]


def test_graphs_of_cuda_are_captured() -> None:
    """By a block and by hand, in memory that stays."""
    with torch.spirv.as_cuda():
        x, graph = torch.arange(6.0, device="cuda"), torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cat((x * 2, x))
        with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle(), stream=stream):
            assert torch.cuda.is_current_stream_capturing()
            y = torch.cat((x * 2, x))
        other = torch.cuda.graphs.CUDAGraph()
        other.capture_begin(pool=graph.pool())
        z = y.clone().zero_() + y
        other.capture_end()
        assert not torch.cuda.is_current_stream_capturing()
        for start in (1.0, 5.0):
            x.copy_(torch.arange(start, start + 6))
            graph.replay()
            other.replay()
            wanted = [2 * (start + n) for n in range(6)] + [start + n for n in range(6)]
            assert y.tolist() == z.tolist() == wanted
        graph.reset()
        with pytest.raises(RuntimeError, match="nothing was captured"):
            graph.replay()


def test_graphs_of_cuda_that_cannot_be_replayed() -> None:
    with torch.spirv.as_cuda():
        x, graph = torch.ones(6, device="cuda"), torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="a graph is being captured"), torch.cuda.graph(graph):
            x.tolist()
        with pytest.raises(RuntimeError, match="not captured to its end"):
            graph.replay()
        assert x.tolist() == [1.0] * 6


def test_each_function_of_cuda_answers_or_says_why_not() -> None:
    refused = {name for names in cuda_names.REFUSED.values() for name in names.split()}
    with torch.spirv.as_cuda():
        answered = set(cuda_names.answers(torch.spirv))
    assert not sorted(set(_functions()) - answered - _TORCHS)
    with torch.spirv.as_cuda():
        for name in refused & set(_functions()):
            with pytest.raises(RuntimeError, match=f"torch.cuda.{name}\\(\\) on device 'spirv': "):
                getattr(torch.cuda, name)("cuda")
        for name in sorted(answered - refused - _OTHERS - set(cuda_names.CONSTANT)):
            if not name.startswith("_"):
                for spelling in _SPELLINGS:
                    getattr(torch.cuda, name)(spelling)


def test_classes_of_cuda_are_classes() -> None:
    with torch.spirv.as_cuda():
        properties = torch.cuda.get_device_properties()
        assert isinstance(properties, torch.cuda._CudaDeviceProperties) and not dataclasses.is_dataclass(properties)
        assert (properties.gcnArchName, properties.is_multi_gpu_board) == (properties.name, 0)
        assert properties.is_integrated == (properties.kind == "integrated")
        assert torch.cuda.device("cuda:0").idx == 0 and torch.cuda.device(-1).idx == -1
        with torch.cuda.device_of(torch.ones(1, device="cuda")) as entered, torch.cuda.device_of(torch.ones(1)):
            assert entered is None
        assert isinstance(torch.cuda.device_of(torch.ones(1)), torch.cuda.device)
        assert isinstance(torch.cuda.stream(None), torch.cuda.StreamContext)
        assert isinstance(torch.cuda.current_stream("cuda"), torch.cuda.Stream)
        assert isinstance(torch.Generator(), torch.Generator) and torch.cuda.get_rng_state().numel() == 16
        state = torch.cuda.get_rng_state()
        first = torch.rand(5, device="cuda")
        torch.cuda.set_rng_state(state)
        assert torch.equal(first, torch.rand(5, device="cuda"))


def test_refused_functions_are_wrapped_around_torchs() -> None:
    """torch 2.14 reads ``torch.cuda.use_mem_pool.__wrapped__`` when torch._dynamo is imported, maybe inside."""
    for name in " ".join(cuda_names.REFUSED.values()).split():
        own = getattr(torch.cuda, name, None)
        with torch.spirv.as_cuda():
            refused = getattr(torch.cuda, name)
            assert own is None or (refused is not own and refused.__wrapped__ is own)
            with pytest.raises(RuntimeError, match=rf"torch.cuda.{name}\(\)"):
                refused()


def test_one_driver_of_triton_is_active() -> None:
    def active() -> list[str]:
        return [name for name, backend in backends.items() if backend.driver and backend.driver.is_active()]

    before = active()
    with torch.spirv.as_cuda():
        assert active() == before == ["spirv"]
    assert active() == before


@pytest.mark.parametrize("kept", ["", "import builtins; builtins.kept = block"], ids=["", "after modules"])
def test_python_may_end_inside(kept: str) -> None:
    program = "import sys, torch\nfrom triton.backends.spirv.torch import registration\nregistration.register()\n"
    program += "block = torch.spirv.as_cuda()\nblock.__enter__()\nprint(torch.ones(2, device='cuda').sum().item())\n"
    ended = subprocess.run([sys.executable, "-c", program + kept], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (0, "2.0\n") and "Error" not in ended.stderr


def test_nothing_is_left_afterwards() -> None:
    before = {name: getattr(torch.cuda, name) for name in dir(torch.cuda) if callable(getattr(torch.cuda, name, None))}
    others = [getattr(owner, name) for owner, name, _ in cuda_names.takers()]
    others += [threading.Thread.start, torch.autograd.has_torch_function, torch.serialization._package_registry]
    version = torch.version.cuda  # None, unless torch was built with CUDA
    with torch.spirv.as_cuda(), torch.spirv.as_cuda():
        assert torch.cuda.device_count() == torch.spirv.device_count() and torch.version.cuda
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.is_available()))
        thread.start()
        thread.join()
        assert seen == [True]
    with pytest.raises(ZeroDivisionError), torch.spirv.as_cuda():
        raise ZeroDivisionError
    assert {name: getattr(torch.cuda, name) for name in before} == before
    assert not torch.cuda.is_available() and torch.version.cuda == version
    assert not torch.ones(1, device="spirv").is_cuda and "is_cuda" not in vars(torch.Tensor)
    left = [getattr(owner, name) for owner, name, _ in cuda_names.takers()]
    left += [threading.Thread.start, torch.autograd.has_torch_function, torch.serialization._package_registry]
    assert all(a is b for a, b in zip(left, others, strict=True))
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1, device="cuda")


def test_cudas_own_devices_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(RuntimeError, match="CUDA devices of its own"), torch.spirv.as_cuda():
        pass


def test_a_kernel_library_runs() -> None:
    """liger-kernel, which is installed for the tests; tests/vendor/cuda_packages.py has others."""
    torch.manual_seed(0)
    with torch.spirv.as_cuda():
        cuda_packages.PACKAGES["liger_kernel"]()
