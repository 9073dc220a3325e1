"""The names "cuda" and of CUDA's types in ``torch.spirv.as_cuda()``: what each of them means where torch takes it."""

from __future__ import annotations

import contextlib
import importlib
import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.cuda.comm
import torch.package
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.spirv.torch import registration

from .test_exchange import BEGINS_NO_PROFILE

if torch.cuda.is_available():
    pytest.skip("as_cuda() is refused where torch has CUDA devices", allow_module_level=True)

registration.register()

_PARTS = ("memory", "random", "streams")

_WAYS: dict[str, Callable[[], torch.Tensor]] = {
    "factory": lambda: torch.zeros(3, device="cuda"),
    "number": lambda: torch.zeros(3, device="cuda:0"),
    "object": lambda: torch.zeros(3, device=torch.device("cuda")),
    "of a module": lambda: torch.nn.Linear(2, 3).to("cuda").weight,
    "of a module, by name": lambda: torch.nn.Linear(2, 3).cuda().weight,
    "moved": lambda: torch.zeros(3).to("cuda"),
    "moved as named": lambda: torch.zeros(3).to(device="cuda", dtype=torch.float16),
    "by its method": lambda: torch.zeros(3).cuda(),
    "by its method and number": lambda: torch.zeros(3).cuda(0),
    "like": lambda: torch.zeros_like(torch.zeros(3), device="cuda"),
    "tensor": lambda: torch.tensor([1.0], device="cuda"),
    "default": lambda: _inside(lambda: torch.ones(3), torch.device("cuda")),
}


def _inside(ask: Callable[[], Any], block: Any = None) -> Any:
    with block or torch.autocast("cuda", dtype=torch.bfloat16):
        return ask()


@pytest.mark.parametrize("name", _WAYS)
def test_cuda_names_the_device(name: str) -> None:
    with torch.spirv.as_cuda():
        x = _WAYS[name]()
        assert x.device.type == "spirv" and x.is_cuda and not torch.zeros(1).is_cuda
        assert torch.zeros(1, device="cpu").device.type == "cpu"


def _with_default(make: Callable[[], list[torch.Tensor]]) -> list[str]:
    """Where tensors are that are made while new ones are the device's."""
    torch.set_default_device("cuda")
    try:
        return [made.device.type for made in make()]
    finally:
        torch.set_default_device(None)


def _states() -> list[torch.Tensor]:
    with torch.random.fork_rng(device_type="spirv"):
        return [torch.spirv.get_rng_state(), torch.cuda.get_rng_state(), torch.Generator("spirv").get_state()]


#: What takes a device, or the type of one, as a word, where torch asks no mode about it: name → what it gives, and
#: what that must be.
_WORDS: dict[str, tuple[Callable[[], Any], Any]] = {
    "default device": (lambda: _with_default(lambda: [torch.ones(2)]), ["spirv"]),
    "states beside it": (lambda: _with_default(_states), ["cpu", "cpu", "cpu"]),
    "generator": (lambda: torch.Generator("cuda").device.type, "spirv"),
    "generator of the CPU": (lambda: torch.Generator().device.type, "cpu"),
    "its state": (lambda: torch.Generator("cuda:0").get_state().numel(), 16),
    "accelerator": (lambda: torch.accelerator.set_device_index("cuda:0"), None),
    "memory of the accelerator": (lambda: torch.accelerator.memory_allocated("cuda:0") >= 0, True),
    "autocast": (lambda: _autocast(torch.autocast("cuda", dtype=torch.bfloat16)), torch.bfloat16),
    "autocast's default": (lambda: _autocast(torch.autocast("cuda")), torch.float16),
    "autocast off": (lambda: _autocast(torch.autocast("cuda", enabled=False)), torch.float32),
    "autocast of the CPU": (lambda: _autocast(torch.autocast("cpu", dtype=torch.bfloat16)), torch.float32),
    "autocast is available": (lambda: torch.amp.is_autocast_available("cuda"), True),
    "type of autocast": (lambda: _inside(lambda: torch.get_autocast_dtype("cuda")), torch.bfloat16),
    "autocast is enabled": (lambda: _inside(lambda: torch.is_autocast_enabled("cuda")), True),
    "autocast of no device": (lambda: _inside(_of_no_device), (True, torch.bfloat16)),
    "autocast of no device, outside": (lambda: _of_no_device(), (False, torch.float16)),
    "autocast of no device, compiled": (lambda: _compiled_autocasts(), [1, 4, 2, 1]),
    "is_cuda, compiled": (lambda: _compiled_kinds(), [True, False]),
    "compiler": (lambda: torch.compiler.reset(), None),
    "autocast that is set": (lambda: _set_autocast(), torch.bfloat16),
    "default type": (lambda: _default_type(torch.cuda.HalfTensor), ["spirv", torch.float16, "cpu", torch.float32]),
    "default type by name": (lambda: _default_type("torch.cuda.DoubleTensor")[:2], ["spirv", torch.float64]),
    "a default of the user's": (lambda: _with_default(_default_types_of_others), ["spirv", "spirv"]),
    "type of a tensor": (lambda: torch.ones(2, device="cuda", dtype=torch.int8).type(), "torch.cuda.CharTensor"),
    "DataParallel": (lambda: _parallel(), [[3.0], [3.0]]),
    "its parts": (lambda: _pieces(), [[3.0, 3.0], [1.0, 1.0], [3.0, 3.0]]),
    "seeds of the device alone": (lambda: _seeded(), [True, True, True]),
    "seeds of what the CPU draws": (lambda: _drawn_by_the_cpu(), [True] * 8),
    "graph that is kept": (lambda: _kept_graph(), [2.0, 2.0]),
    "stream in a compiled function": (lambda: _in_new_stream(), [2.0]),
    "package": (lambda: _packaged(), ("spirv", [1.0, 1.0])),
    "fraction of the memory": (lambda: _fraction(), (0.0, 1, True)),
    "marks": (
        lambda: [torch.cuda.profiler.start(), torch.cuda.nvtx.range_push("a"), torch.cuda.nvtx.range_pop()],
        [None, 0, 0],
    ),  # type: ignore[no-untyped-call]
    "priorities": (lambda: (torch.cuda.Stream(priority=-1).priority, torch.cuda.Stream.priority_range()), (-1, (0, 0))),
    "custom_fwd": (lambda: _custom(None), (torch.bfloat16, torch.bfloat16)),
    "custom_fwd that casts": (lambda: _custom(torch.float32), (torch.float32, torch.float32)),
    "scaler": (lambda: _scaled(), 0.75),
    "random numbers apart": (lambda: _forked(), True),
    "loaded": (lambda: _loaded(torch.ones(2), map_location="cuda").device.type, "spirv"),
    "loaded at a number": (lambda: _loaded(torch.ones(2), map_location="cuda:0").device.type, "spirv"),
    "loaded as saved": (lambda: _loaded(torch.ones(2, device="cuda")).device.type, "spirv"),
    "loaded elsewhere": (
        lambda: _loaded(torch.ones(2, device="cuda"), map_location={"cuda:0": "cpu"}).device.type,
        "cpu",
    ),
    "loaded script": (lambda: _script().weight.device.type, "spirv"),
    "saved for backward, pinned": (lambda: _offloaded(), [2.0, 2.0]),
    "in an operation": (lambda: _operation(lambda call: call), [4.0, 4.0]),
    "in a compiled operation": (lambda: _operation(lambda call: torch.compile(call, fullgraph=True)), [4.0, 4.0]),
    "of a type": (lambda: isinstance(torch.cuda.FloatTensor([1, 2]), torch.cuda.FloatTensor), True),
    "of no type": (lambda: isinstance(torch.ones(2), (torch.cuda.FloatTensor, torch.cuda.IntTensor)), False),
    "moved to a type": (lambda: _inside(lambda: torch.ones(2).type(torch.cuda.HalfTensor).dtype), torch.float16),
    "moved to its name": (lambda: torch.ones(2).type("torch.cuda.LongTensor").is_cuda, True),
    "pinned for": (lambda: _pinned(), [0.0, 1.0, 2.0, 3.0]),
    "profiled": (lambda: _profiled(), True),
    "module of the device": (lambda: torch.get_device_module("cuda") is torch.cuda, True),
    "storage": (lambda: torch.UntypedStorage(8, device="cuda:0").is_cuda, True),
    "moved storage": (lambda: torch.ones(2).untyped_storage().cuda().is_cuda, True),
    "equal to a tensor's": (lambda: _equal(torch.ones(2, device="cuda").device), [True, False, True, True, False]),
    "equal, compiled": (lambda: _compiled(lambda x: x.device == torch.device("cuda", 0)), True),
    "equal to a stream's": (lambda: torch.cuda.current_stream().device == torch.device("cuda:0"), True),
    "properties, compiled": (lambda: _compiled(lambda x: torch.cuda.get_device_properties(x.device).major >= 8), True),
    "capability, compiled": (lambda: _compiled(lambda _: torch.cuda.get_device_capability()[0] >= 8), True),
    "pinned for cuda": (lambda: torch.ones(2).pin_memory("cuda").is_pinned("cuda"), True),
    "in operations of a mode's own": (lambda: _inside(lambda: torch.sin(torch.zeros(2)).tolist(), _Moving()), [3, 3]),
    "in a distance": (lambda: _distance(), 1.0),
    "in a branch": (lambda: _branch(), [2.0, 2.0]),
    "parts of torch.cuda": (lambda: _parts(), [True] * 6),
    "as copies of torch's checkpoints ask": (lambda: torch.cuda._initialized, True),
    "statistics by levels": (
        lambda: torch.cuda.memory_stats_as_nested_dict("cuda:0")["allocated_bytes"]["all"].keys(),
        {"current", "peak"},
    ),
    "stream": (lambda: torch.Stream("cuda:0").device, torch.device("spirv", 0)),
    "event": (lambda: (torch.Event("cuda").device.type, issubclass(torch.cuda.Event, torch.Event)), ("spirv", True)),
}


def _script() -> Any:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file)
    file.seek(0)
    return torch.jit.load(file, map_location="cuda")


def _offloaded() -> list[float]:
    x = torch.ones(2, device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = x * x
    y.sum().backward()
    assert x.grad is not None
    return x.grad.tolist()


def _operation(way: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[float]:
    """What the code of an operation of the program's own names, which torch runs within the call."""

    @torch.library.custom_op("spirv_as_cuda::more", mutates_args=())
    def more(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(x.shape).cuda() + torch.ones(x.shape).to("cuda")

    more.register_fake(lambda x: torch.empty(x.shape, device="cuda"))
    return way(lambda x: more(x) + 1)(torch.ones(2, device="cuda")).tolist()


def _equal(device: torch.device) -> list[bool]:
    named = torch.device("cuda:0")
    return [device == named, device != named, {named: True}[device], device in (named,), device == torch.device("cuda")]


def _compiled(ask: Callable[[torch.Tensor], bool]) -> bool:
    answer = torch.compile(lambda x: x + 1 if ask(x) else x - 1, fullgraph=True)
    return bool(answer(torch.zeros(1, device="cuda")).item() == 1)


class _Moving(TorchDispatchMode):
    """Code that torch runs within its calls, where no mode for functions is active any more."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is not torch.ops.aten.sin.default:
            return made
        return made.to("cuda") + made.cuda() + torch.tensor([3.0], device="cuda")


def _distance() -> float:
    x = torch.ones(2, 3, device="cuda")
    measure = torch.nn.functional.triplet_margin_with_distance_loss
    return measure(x, x, x, distance_function=lambda a, b: (a - b).sum(-1) + torch.zeros(1).to("cuda")).item()


def _branch() -> list[float]:
    x = torch.ones(2, device="cuda")
    return torch.cond(x.sum() > 0, lambda x: x + torch.ones(2, device="cuda"), lambda x: x - 1, (x,)).tolist()


def _parts() -> list[bool]:
    """Of what programs import from the parts of torch.cuda: the memory of a tensor, states of random numbers."""
    memory, numbers, streams = (importlib.import_module(f"torch.cuda.{part}") for part in _PARTS)
    kept = torch.ones(1 << 20, device="cuda")
    found = [
        memory.max_memory_allocated() >= memory.memory_allocated() >= kept.nbytes,
        len(memory.memory_snapshot()) > 0,
    ]
    numbers.manual_seed_all(3)
    first, states = torch.rand(4, device="cuda"), numbers.get_rng_state_all()
    second = torch.rand(4, device="cuda")
    numbers.set_rng_state_all(states)
    found.append(torch.equal(torch.rand(4, device="cuda"), second))
    numbers.manual_seed(3)
    found.append(torch.equal(torch.rand(4, device="cuda"), first))
    return [*found, isinstance(torch.cuda.current_stream(), streams.Stream), streams.Event is torch.cuda.Event]


def _autocast(block: torch.autocast) -> torch.dtype:
    x = torch.ones(16, 16, device="cuda")
    with block:
        return (x @ x).dtype


def _of_no_device() -> tuple[bool, torch.dtype]:
    return torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()


def _compiled_autocasts() -> list[float]:
    """Of a compiled function that asks for an autocast, without one, in bfloat16, in float16 and for the CPU."""

    @torch.compile(fullgraph=True)
    def ask(x: torch.Tensor) -> torch.Tensor:
        more = 1 + torch.is_autocast_enabled() + 2 * (torch.get_autocast_dtype("cuda") is torch.bfloat16)
        return (x * more) @ x

    x = torch.ones(1, 1, device="cuda")
    blocks = [torch.autocast("cuda", dtype=dtype) for dtype in (torch.bfloat16, torch.float16)]
    return [value.item() for value in (ask(x), *(_inside(lambda: ask(x), one) for one in blocks), ask(x))]


def _compiled_kinds() -> list[bool]:
    ask = torch.compile(lambda x: x + 1 if x.is_cuda else x - 1, fullgraph=True)
    return [ask(torch.zeros(1, device=device)).item() == 1 for device in ("cuda", "cpu")]


def _set_autocast() -> torch.dtype:
    torch.set_autocast_enabled(True)
    torch.set_autocast_gpu_dtype(torch.bfloat16)
    try:
        return _autocast(contextlib.nullcontext())
    finally:
        torch.set_autocast_enabled(False)
        torch.set_autocast_gpu_dtype(torch.float16)


def _default_type(kind: Any) -> list[Any]:
    """Devices and types of tensors that are made while it is that of new ones, and afterwards."""
    torch.set_default_tensor_type(kind)
    made = torch.nn.Linear(2, 3).weight
    torch.set_default_tensor_type(torch.FloatTensor)
    after = torch.ones(2)
    return [made.device.type, made.dtype, after.device.type, after.dtype]


def _default_types_of_others() -> list[torch.Tensor]:
    """What is made after a type of the CPU was chosen, and after one that is refused."""
    torch.set_default_tensor_type(torch.FloatTensor)
    made = torch.ones(2)
    with pytest.raises(TypeError, match="floating-point"):
        torch.set_default_tensor_type(torch.cuda.LongTensor)
    return [made, torch.ones(2)]


def _parallel() -> Any:
    layer = torch.nn.Linear(2, 1).cuda()
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.ones_(layer.bias)
    return torch.nn.DataParallel(layer)(torch.ones(2, 2).cuda()).tolist()


def _pieces() -> Any:
    layer = torch.nn.Linear(2, 1).cuda()
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.ones_(layer.bias)
    (copy,), x = torch.nn.parallel.replicate(layer, [0]), torch.ones(2, 2)
    ended = torch.nn.parallel.parallel_apply([copy], torch.nn.parallel.scatter((x,), [0]))
    whole = torch.cuda.comm.gather(ended, 0, "cuda:0").flatten()
    whole.sum().backward()
    assert layer.weight.grad is not None
    (one,) = torch.cuda.comm.broadcast(x[0], ["cuda:0"])
    again = torch.nn.parallel.gather([whole.detach()], 0).tolist()
    return [whole.tolist(), one.tolist(), again] if layer.weight.grad.tolist() == [[2.0, 2.0]] else layer.weight.grad


def _seeded() -> list[bool]:
    """Whether seeds that torch.cuda is given leave the CPU's numbers as they are, and are the device's."""
    torch.manual_seed(0)
    first, found = torch.rand(3), []
    for seed in (torch.cuda.manual_seed, torch.cuda.manual_seed_all, lambda _: torch.cuda.seed_all()):
        torch.manual_seed(0)
        seed(5)
        drawn = torch.rand(3, device="cuda")
        torch.cuda.manual_seed(torch.cuda.initial_seed())
        found.append(torch.equal(first, torch.rand(3)) and torch.equal(drawn, torch.rand(3, device="cuda")))
    return found


def _drawn_by_the_cpu() -> list[bool]:
    """Whether operations without a kernel repeat with a seed and with a state of torch.cuda's, and not otherwise; and
    leave the CPU's numbers as they are."""
    x = torch.full((64,), 5.0, device="cuda")
    calls = [torch.poisson, torch._standard_gamma, lambda x: torch.rand(64, device="cuda", dtype=torch.float64)]
    torch.manual_seed(0)
    apart, found = torch.rand(3), []
    torch.manual_seed(0)
    for call in calls:
        torch.cuda.manual_seed(3)
        first, state = call(x), torch.cuda.get_rng_state()
        second = call(x)
        torch.cuda.set_rng_state(state)
        third = call(x)
        torch.cuda.manual_seed(3)
        found += [torch.equal(first, call(x)), torch.equal(second, third) and not torch.equal(first, second)]
    given = torch.poisson(x, torch.Generator().manual_seed(1))
    found.append(torch.equal(given, torch.poisson(x, torch.Generator().manual_seed(1))))
    return [*found, torch.equal(apart, torch.rand(3))]


def _kept_graph() -> list[float]:
    graph, x = torch.cuda.CUDAGraph(keep_graph=True), torch.ones(2, device="cuda")
    with torch.cuda.graph(graph):
        y = x + 1
    graph.instantiate()
    graph.replay()
    return y.tolist()


def _in_new_stream() -> list[float]:
    """Of a compiled function that breaks off in a block of a stream of its own."""

    @torch.compile
    def twice(x: torch.Tensor) -> torch.Tensor:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = x * 2
            torch._dynamo.graph_break()
            y = y + 0
        torch.cuda.current_stream().wait_stream(stream)
        return y

    return twice(torch.ones(1, device="cuda")).tolist()


def _packaged() -> tuple[str, list[float]]:
    file = io.BytesIO()
    with torch.package.PackageExporter(file) as exporter:
        exporter.save_pickle("all", "one", torch.ones(2, device="cuda"))
    file.seek(0)
    loaded = torch.package.PackageImporter(file).load_pickle("all", "one", map_location="cuda")
    return loaded.device.type, loaded.tolist()


def _fraction() -> tuple[float, int, bool]:
    """What is allowed, how often that was too little, and that it holds no longer than it is said."""
    before = torch.cuda.memory_stats()["num_ooms"]
    torch.cuda.set_per_process_memory_fraction(0.0, "cuda:0")
    try:
        allowed = torch.cuda.get_per_process_memory_fraction()
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"set_per_process_memory_fraction\(\) allows 0"):
            torch.empty(1 << 30, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return allowed, torch.cuda.memory_stats()["num_ooms"] - before, torch.empty(1 << 10, device="cuda").is_cuda


def _custom(cast_inputs: torch.dtype | None) -> tuple[torch.dtype, torch.dtype]:
    """Types that a product has in the forward and in the backward part of a function of the user's."""
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=cast_inputs)
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            seen.append((x @ x).dtype)
            return x.clone()

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            seen.append((gradient @ gradient).dtype)
            return gradient

    x = torch.ones(16, 16, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = Product.apply(x)
    y.sum().backward()
    return seen[0], seen[1]


def _scaled() -> float:
    """A weight of 1 after a step of SGD with rate 1/8 and gradient 2, scaled and unscaled."""
    weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=0.125)
    scaler = torch.amp.GradScaler("cuda")
    assert scaler.is_enabled()
    scaler.scale((weight * 2).sum()).backward()  # type: ignore[no-untyped-call]
    scaler.step(optimizer)
    scaler.update()
    return float(weight.item())


def _forked() -> bool:
    torch.manual_seed(3)
    with torch.random.fork_rng(device_type="cuda"):
        inside = torch.rand(4, device="cuda")
    return torch.equal(inside, torch.rand(4, device="cuda"))


def _loaded(tensor: torch.Tensor, **how: Any) -> torch.Tensor:
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    loaded: torch.Tensor = torch.load(file, **how)
    assert loaded.tolist() == [1, 1]
    return loaded


def _pinned() -> list[float]:
    loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, pin_memory=True)
    return [value for batch in loader for value in batch.to("cuda", non_blocking=True).tolist()]


def _profiled() -> bool:
    if BEGINS_NO_PROFILE:
        pytest.skip("needs torch 2.12, or one that is not built for CUDA")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        torch.ones(3, device="cuda").add_(1)
    return any("add_" in event.key for event in profile.key_averages())


def test_a_profile_of_cuda_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """torch's way to time CUDA's work without its library warned of each operation, with a stack."""
    with torch.spirv.as_cuda():
        assert _profiled()
    assert "Failed to record" not in capfd.readouterr().err


@pytest.mark.parametrize("name", _WORDS)
def test_words_for_devices(name: str) -> None:
    ask, expected = _WORDS[name]
    with torch.spirv.as_cuda():
        assert ask() == expected
    assert torch.Generator().device.type == "cpu"


@pytest.mark.parametrize("part", [*_PARTS, "graphs"])
def test_parts_of_cuda_have_what_it_has(part: str) -> None:
    module = importlib.import_module(f"torch.cuda.{part}")
    shared = {name for name, value in vars(module).items() if value is getattr(torch.cuda, name, None)}
    asked = {name for name in shared if not name.startswith("_") and callable(getattr(module, name))}
    assert len(asked) >= 3
    with torch.spirv.as_cuda():
        assert all(getattr(module, name) is getattr(torch.cuda, name) for name in asked)


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="this torch has it")
def test_what_only_cuda_has_says_so() -> None:
    with torch.spirv.as_cuda():
        assert not hasattr(torch._C, "_cuda_sleep")
        with pytest.raises(AttributeError, match=r"torch has it with CUDA alone, and torch.spirv.as_cuda\(\) nothing"):
            torch.cuda._sleep(1)  # type: ignore[no-untyped-call]


def test_devices_are_equal_inside_alone() -> None:
    place, named = torch.device("spirv:0"), torch.device("cuda:0")
    before = hash(place), hash(named)
    with torch.spirv.as_cuda(), torch.spirv.as_cuda():
        assert place == named and hash(place) == hash(named) == before[0] and place != torch.device("cpu")
        assert named != "cuda:0" and named != torch.device("cuda:1")
    assert place != named and (hash(place), hash(named)) == before
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1).to("cuda")


#: A compiled function whose matmul is timed, which Inductor does on "cuda" if nobody names a device.
_TIMED = """
import torch, torch._dynamo

def product(x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return x @ x

with torch.spirv.as_cuda():
    print(torch.compile(product, fullgraph=True)(torch.ones(4, 4, device="cuda")).sum().item())
"""


def test_a_compiler_imported_before_asks_this_device() -> None:
    ended = subprocess.run([sys.executable, "-c", _TIMED], capture_output=True, text=True, timeout=240)
    assert ended.stdout == "64.0\n", ended.stderr
