"""What ``benchmarks.models`` measures of a model on a device, in this process."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .model_shapes import MODELS, SMALL, Model, small

#: Name → the dtype of autocast, or None.
PRECISIONS: dict[str, torch.dtype | None] = {"fp32": None, "bf16": torch.bfloat16}
#: Steps behind which a loss is compared between devices; the first compiles.
_FIRST_STEPS = 3
_ROUNDS = 3
#: Seconds that a round takes at least, unless one step takes longer.
_ROUND = 1.0
#: How many operations and kernels a line lists.
_LISTED = 20
#: Calls of an operation that are timed together.
_REPEATS = 4
#: Native calls that copy or fill, by what they are counted as.
_COPIES = {"copy": "copies", "upload": "uploads", "download": "downloads", "fill": "fills"}


class Run:
    """A model on a device, ready for steps."""

    def __init__(self, model: Model, device: str, precision: str, compiled: bool) -> None:
        torch.manual_seed(0)
        self.device, self.dtype, self.model, self.compiled = device, PRECISIONS[precision], model, compiled
        self.module = model.make().to(device)
        *self.inputs, self.target = (part.to(device) for part in model.draw())
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=3e-4)

        def loss_of(*inputs: torch.Tensor) -> torch.Tensor:
            return model.loss(self.module(*inputs[:-1]), inputs[-1])

        self.loss_of = torch.compile(loss_of) if compiled else loss_of

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device, dtype=self.dtype) if self.dtype else nullcontext()

    def step(self) -> torch.Tensor:
        """A step of training; its loss."""
        self.optimizer.zero_grad()
        with self.autocast():
            loss = self.loss_of(*self.inputs, self.target)
        loss.backward()
        self.optimizer.step()
        return loss.detach()  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        if self.device != "cpu":
            getattr(torch, self.device).synchronize()


def speed(run: Run) -> dict[str, Any]:
    """Units a second, and what else ``benchmarks.models`` says of this part."""
    module = getattr(torch, run.device)
    if run.device != "cpu":
        module.reset_peak_memory_stats()
    start = time.perf_counter()
    losses = [run.step().item()]
    first = time.perf_counter() - start
    losses += [run.step().item() for _ in range(_FIRST_STEPS - 1)]
    start = time.perf_counter()
    run.step()
    run.synchronize()
    steps = max(1, min(50, int(_ROUND / (time.perf_counter() - start))))
    whole, issued = [], []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(steps):
            run.step()
        issued.append((time.perf_counter() - start) / steps)
        run.synchronize()
        whole.append((time.perf_counter() - start) / steps)
    found = {
        "units_a_second": run.model.units / statistics.median(whole),
        "unit": run.model.unit,
        "step_ms": 1e3 * statistics.median(whole),
        "issue_ms": 1e3 * statistics.median(issued),
        "first_s": first,
        "losses": losses,
    }
    if run.device != "cpu":
        found["peak_bytes"] = module.max_memory_allocated()
    return found


# ---- Counts ----------------------------------------------------------------------------------------------------------


class _Operations(TorchDispatchMode):
    """Counts torch's operations, also in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


@contextmanager
def _counting_copies(found: Counter[str]) -> Iterator[None]:
    """Copies and fills that the runtime of ``spirv`` does outside of kernels."""
    from triton.backends.spirv.runtime import context

    native = type(context.current().native)
    own = {name: getattr(native, name) for name in _COPIES}

    def counted(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found[_COPIES[name]] += 1
            return own[name](*args, **kwargs)

        return call

    for name in _COPIES:
        setattr(native, name, counted(name))
    try:
        yield
    finally:
        for name, function in own.items():
            setattr(native, name, function)


def _kernels(times: list[tuple[str, float]]) -> dict[str, Any]:
    """Launches by the kernels' names: (name, milliseconds) of each."""
    total: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for name, milliseconds in times:
        total[name] += milliseconds  # type: ignore[assignment]
        count[name] += 1
    rows = [{"name": name, "count": count[name], "ms": ms} for name, ms in total.most_common(_LISTED)]
    return {"launches": len(times), "kernels_ms": sum(total.values()), "kernels": rows}


def _of_spirv(step: Callable[[], Any]) -> dict[str, Any]:
    from triton import knobs
    from triton.backends.spirv.inspection.profile import Recorder
    from triton.backends.spirv.runtime import context

    torch.spirv.reset_fallbacks()  # type: ignore[attr-defined]
    found: Counter[str] = Counter(dict.fromkeys(_COPIES.values(), 0))
    native = context.current().native
    before = native.submitted
    with _counting_copies(found):
        step()
    torch.spirv.synchronize()  # type: ignore[attr-defined]
    submissions = native.submitted - before
    fallbacks = torch.spirv.fallbacks()  # type: ignore[attr-defined]
    recorder = Recorder()
    knobs.runtime.launch_enter_hook.add(recorder.enter)
    knobs.runtime.launch_exit_hook.add(recorder.leave)
    try:
        step()
        torch.spirv.synchronize()  # type: ignore[attr-defined]
    finally:
        knobs.runtime.launch_enter_hook.remove(recorder.enter)
        knobs.runtime.launch_exit_hook.remove(recorder.leave)
        recorder._read(len(recorder._pending))
    times = [(launch.name, launch.milliseconds) for launch in recorder.launches]
    return {**_kernels(times), **found, "submissions": submissions, "fallbacks": fallbacks}


def _of_cuda(step: Callable[[], Any]) -> dict[str, Any]:
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        step()
        torch.cuda.synchronize()
    events = [event for event in profiled.events() if event.device_type == DeviceType.CUDA]
    found: Counter[str] = Counter({"copies": 0, "fills": 0})
    times = []
    for event in events:
        name = event.name
        if name.startswith("Memcpy"):
            found["copies"] += 1
        elif name.startswith("Memset"):
            found["fills"] += 1
        elif not getattr(event, "is_user_annotation", False):
            times.append((name[:120], event.time_range.elapsed_us() * 1e-3))
    return {**_kernels(times), **found, "fallbacks": {}}


def counts(run: Run) -> dict[str, Any]:
    """Of one step."""
    found: dict[str, Any] = {}
    if not run.compiled:
        with _Operations() as operations:
            run.step()
        found["operations_of_torch"] = operations.count
    run.synchronize()
    by_device = {"spirv": _of_spirv, "cuda": _of_cuda}
    if run.device in by_device:
        found.update(by_device[run.device](run.step))
    return found


# ---- Operations ------------------------------------------------------------------------------------------------------


class _Timed(TorchDispatchMode):
    """Times each operation by the clock: one that writes nothing is repeated, so that its launches overlap."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        super().__init__()
        self.synchronize = synchronize
        self.seconds: Counter[str] = Counter()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = partial(func, *args, **(kwargs or {}))
        if func.is_view:
            return call()
        repeats = 1 if func._schema.is_mutable or torch.Tag.nondeterministic_seeded in func.tags else _REPEATS
        self.synchronize()
        start = time.perf_counter()
        result = call()
        for _ in range(repeats - 1):
            call()
        self.synchronize()
        name = _name(func, args)
        self.seconds[name] += (time.perf_counter() - start) / repeats  # type: ignore[assignment]
        self.count[name] += 1
        return result


def _name(func: Any, args: Any) -> str:
    """An operation with the shapes of its first tensors; the same for all kinds of attention, which devices choose."""
    name, _, overload = func.name().removeprefix("aten::").partition(".")
    tensors = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    if "scaled_dot_product" in name:
        backward = name.endswith("backward")
        return f"attention{'_backward' if backward else ''} {list(tensors[int(backward)].shape)}"
    if name.startswith(("_foreach", "_fused")):
        return f"{name} of {len(tensors)}"
    kind = str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
    return f"{name} {kind} " + " ".join("x".join(map(str, tensor.shape)) or "()" for tensor in tensors[:3])


def operations(run: Run) -> dict[str, Any]:
    """The slowest of an eager step."""
    with _Timed(run.synchronize):
        run.step()
    with _Timed(run.synchronize) as timed:
        run.step()
    rows = [
        {"name": name, "count": timed.count[name], "ms": 1e3 * seconds}
        for name, seconds in timed.seconds.most_common(_LISTED)
    ]
    return {"operations": rows, "all_ms": 1e3 * sum(timed.seconds.values())}


def host(name: str, device: str) -> dict[str, Any]:
    """Microseconds of the thread for each operation of an eager step."""
    run = Run(small(name), device, "fp32", compiled=False)
    for _ in range(_FIRST_STEPS):
        run.step()
    with _Operations() as counted:
        run.step()
    run.synchronize()
    steps, rounds = 20, []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(steps):
            run.step()
        rounds.append((time.perf_counter() - start) / steps)
        run.synchronize()
    seconds = statistics.median(rounds)
    return {
        "us_an_operation": 1e6 * seconds / counted.count,
        "operations_of_torch": counted.count,
        "step_ms": 1e3 * seconds,
    }


def generate(run: Run) -> dict[str, Any]:
    """Tokens a second of one sequence, behind a first run."""
    assert run.model.prompt is not None
    given, added = run.model.prompt
    prompt = run.inputs[0][:1, :given]
    seconds = []
    for _ in range(_FIRST_STEPS):
        start = time.perf_counter()
        with run.autocast():
            tokens = run.module.generate(prompt, added)  # type: ignore[operator]
        assert tokens.tolist()[0][:given] == prompt.tolist()[0]
        seconds.append(time.perf_counter() - start)
    return {"units_a_second": added / min(seconds[1:]), "unit": "tokens", "first_s": seconds[0]}


# ---- A process -------------------------------------------------------------------------------------------------------


def _machine(device: str) -> dict[str, Any]:
    name = "cpu" if device == "cpu" else str(getattr(torch, device).get_device_properties(0).name)
    found = {"torch": torch.__version__, "name": name}
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        pass
    return found


def work(task: dict[str, Any]) -> None:
    """Prints a line of JSON for each part that a task asks for."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    name, device = task["model"], task["device"]
    model = (SMALL if task["small"] else MODELS)[name]

    def told(part: str, measure: Callable[[], dict[str, Any]], **about: Any) -> bool:
        line = {"model": name, "device": device, **about, "part": part}
        start = time.perf_counter()
        try:
            line.update(measure())
        except Exception as error:
            line["failure"] = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
        line["took_s"] = time.perf_counter() - start
        print(json.dumps(line), flush=True)
        return "failure" not in line

    if not told("machine", lambda: _machine(device)):
        return
    told("host", lambda: host(name, device))
    for mode in task["modes"]:
        for precision in task["precisions"]:
            about = {"precision": precision, "mode": mode}
            run: Run | None = None

            def measure_speed(precision: str = precision, mode: str = mode) -> dict[str, Any]:
                nonlocal run
                run = Run(model, device, precision, mode == "compiled")
                return speed(run)

            if not told("speed", measure_speed, **about) or run is None:
                continue
            told("counts", partial(counts, run), **about)
            if mode == "eager":
                told("operations", partial(operations, run), **about)
                if model.prompt:
                    told("generate", partial(generate, run), **about)
            run = None
