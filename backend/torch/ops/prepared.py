"""torch operations that repeat an earlier call without the work that led to its launches.

The first call of a kind is recorded: what memory it allocates, which kernels it launches with which arguments, and what
it returns. If it does nothing else, and all pointers that it passes lie in its arguments, in that memory, or in memory
that stays, later calls of the kind do the same with other addresses in one native call (native/torch/prepared.cpp,
which says what a kind is). An operation that reads values on the host, draws random numbers, runs on the CPU, resizes a
tensor or passes its own memory always takes the full path; so does a call while launches are profiled or recorded as a
graph.

What an operation does must depend only on its arguments' types, sizes, strides and numbers, on their addresses modulo
16, on which overlap and how far apart those are, and on torch's default element type. A call that asks for more is not
repeated: Python code that asks for an address or a storage is seen, unless it is entered in ANSWERED_BY_KEYS.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from threading import get_ident
from typing import Any

import torch
from triton import knobs

from ... import runtime
from ...runtime import LaterLauncher, native
from ..device import native_kernels, tensor_memory
from ..device.cpu_fallback import FALLBACKS, TorchsWay, torchs_way
from ..device.native_module import torch_native
from ..device.random_state import GENERATOR
from ..device.tensor_memory import (
    BEFORE_READING,
    DLPACK_CODES,
    WATCHERS,
    WRITING,
    allocate,
    context_of,
    copy_of_host,
    extent,
)

_KEY = "PrivateUse1"

#: Those that watch calls.
_RECORDERS: list[_Recorder] = []
_Operation = Callable[..., Any]
_share_memory: Callable[[torch.Tensor, torch.Tensor], bool] = torch._C._is_alias_of  # type: ignore[attr-defined]


@cache
def _shared() -> Any:
    torch_native().watch_questions(torch.Tensor, _QUESTIONS, tensor_memory.ANSWERED_BY_KEYS, _asked)
    return torch_native().PreparedContext(
        exchange=torch.Tensor.__dlpack_c_exchange_api__,
        tensor_types=(torch.Tensor, torch.nn.Parameter),
        constant_types=(torch.dtype, torch.layout, torch.memory_format),
        runtime=knobs.runtime,
        default_dtype=torch.get_default_dtype,
        from_dlpack=torch._C._from_dlpack,
        writing=WRITING,
        before_reading=BEFORE_READING,
        current=runtime.current_device,
        device_type=torch.device,
    )


def lists_key(lists: tuple[Sequence[torch.Tensor], ...]) -> tuple[bytes, bytes] | None:
    """What tells lists of tensors apart: (lengths, types, device, sizes and strides; addresses). None unless all are
    strided tensors of real numbers on one device."""
    for recorder in _RECORDERS:
        recorder.asked(None)
    key: tuple[bytes, bytes] | None = _shared().lists_key(lists)
    return key


def tensors_like(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What torch.empty_like() makes of each."""
    if not WATCHERS:  # who are told of memory by itself
        context = context_of(tensors[0])
        made: list[torch.Tensor] | None = _shared().tensors_like(
            tensors, context.index, context.memory.pool, partial(allocate, context)
        )
        if made is not None:
            return made
    return [torch.empty_like(tensor) for tensor in tensors]


def prepared(run: _Operation) -> _Operation:
    """The operation ``run``, whose calls are done like earlier ones where they can be."""
    how: dict[str, Any] = {"by_address": False, "takes_negated": True}
    made: _Operation = _shared().prepared(run=run, record=_recording(run, None, False), **how)
    return made


def enter(
    library: torch.library.Library,
    op: torch._ops.OpOverload,
    run: _Operation,
    by_address: bool = False,
    few: Any = None,
) -> None:
    """Makes ``run`` do the operation for tensors of the device. Calls are done like earlier ones where they can be: by
    a native kernel, where torch's C interface passes all that the operation takes and gives. ``by_address``: kernels
    read its tensors' addresses in device memory, so that an earlier call is one with the same addresses. ``few``: what
    does copies of a few elements before (a native FewElements)."""
    operation, takes_negated = native_kernels.operation(op), native_kernels.takes_negated(op)
    how: dict[str, Any] = {"by_address": by_address, "takes_negated": takes_negated}
    how |= {"run": run, "record": _recording(run, op, by_address)}
    if operation is None or not _shared().enter(operation=operation, few=few, **how):
        library.impl(op.name().removeprefix("aten::"), _shared().prepared(**how), _KEY)


def _recording(run: _Operation, op: torch._ops.OpOverload | None, by_address: bool) -> Callable[..., tuple[Any, Any]]:
    """``run`` of (args, kwargs), which are recorded: what it gives, and the native plan of such a call or None."""

    def record(args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> tuple[Any, Any]:
        recorder = _Recorder(tensors, op, args, by_address)
        for watchers in (_RECORDERS, WATCHERS):
            watchers.append(recorder)
        BEFORE_READING.append(recorder.reading)
        try:
            result = run(*args, **kwargs)
        finally:
            for watchers in (_RECORDERS, WATCHERS):
                watchers.remove(recorder)
            BEFORE_READING.remove(recorder.reading)
        return result, recorder.plan(result)

    return record


#: Questions about a tensor that what tells calls apart does not answer, by the names of torch's methods, of which 2.11
#: lacks one; others are made of these.
_QUESTIONS = sorted({"const_data_ptr", "data_ptr", "storage_offset", "untyped_storage"} & {*dir(torch.Tensor)})


def _asked(tensor: torch.Tensor) -> None:
    for recorder in _RECORDERS:
        recorder.asked(tensor)


def note_launch(launch: Any, function: int, grid: tuple[int, int, int], arguments: Sequence[Any], kept: Any) -> None:
    """Tell of a launch of an operation's kernel by the launcher ``launch``. ``kept``: what keeps the kernel."""
    for recorder in _RECORDERS:
        recorder.launched(launch, function, grid, arguments, kept)


def note_torchs_kernel(op: torch._ops.OpOverload, args: tuple[Any, ...], result: Any) -> None:
    """Tell that torch's own kernel did an operation on the memory of its arguments."""
    for recorder in _RECORDERS:
        recorder.left_to_torch(op, args, result)


def note_staying(tensor: torch.Tensor, effect: Callable[[], Any] | None = None) -> None:
    """Tell that an operation's kernels use a tensor that is not among its arguments, and stays as long as calls like
    this one are prepared. ``effect`` is called for each of its calls."""
    for recorder in _RECORDERS:
        recorder.uses(tensor, effect)


class _Recorder:
    """What a call does. ``tensors``: those among its arguments, which are of this device."""

    def __init__(self, tensors: list[torch.Tensor], op: Any, args: tuple[Any, ...], by_address: bool) -> None:
        self._op, self._args, self._by_address = op, args, by_address
        self._torchs: TorchsWay | None = None  # how torch's kernel does all of it
        self._thread = get_ident()
        self._tensors = tensors
        self._forms = [_form(tensor) for tensor in tensors]
        self._memory: list[tuple[torch.Tensor, int]] = []  # kept, so that no address is used twice
        self._staying: list[torch.Tensor] = []
        self._effects: list[Callable[[], Any]] = []
        self._steps: list[tuple[str, tuple[Any, ...]]] = []
        self._is_plain, self._has_asked = True, False
        self._before = self._done()

    def _done(self) -> tuple[int, ...]:
        """What changes where a call does more than its steps."""
        submitted = sum(context.native.submitted + context.native.copied for context in runtime.opened())
        return submitted - len(self._steps), GENERATOR.drawn, FALLBACKS.total()

    def allocated(self, tensor: torch.Tensor, bytes_: int) -> None:
        """Implements Watcher.allocated()."""
        if get_ident() == self._thread:
            self._memory.append((tensor, bytes_))

    def copied(self, to: int, from_: int, bytes_: int) -> None:
        """Implements Watcher.copied()."""
        if get_ident() == self._thread:
            self._steps.append(("copy", (to, from_, bytes_)))

    def filled(self, address: int, bytes_: int, word: int) -> None:
        """Implements Watcher.filled()."""
        if get_ident() == self._thread:
            self._steps.append(("fill", (address, bytes_, word)))

    def launched(
        self, launch: Any, function: int, grid: tuple[int, int, int], arguments: Sequence[Any], kept: Any
    ) -> None:
        """Notes a launch, as note_launch() does."""
        if get_ident() == self._thread:
            self._steps.append(("launch", (launch, function, grid, tuple(arguments), kept)))

    def left_to_torch(self, op: torch._ops.OpOverload, args: tuple[Any, ...], result: Any) -> None:
        """Notes what note_torchs_kernel() tells."""
        results = result if isinstance(result, tuple) else (result,)
        is_all = op is self._op and len(args) == len(self._args) and all(map(operator.is_, args, self._args))
        if get_ident() == self._thread and is_all and all(isinstance(one, torch.Tensor) for one in results):
            self._torchs = torchs_way(op)

    def uses(self, tensor: torch.Tensor, effect: Callable[[], Any] | None) -> None:
        """Notes a tensor that stays, as note_staying() does."""
        if get_ident() == self._thread:
            self._staying.append(tensor)
            self._effects += [effect] if effect is not None else []

    def reading(self, _: int) -> None:
        """What tensor_memory.BEFORE_READING calls."""
        if get_ident() == self._thread:
            self._is_plain = False

    def asked(self, tensor: torch.Tensor | None) -> None:
        """Notes a question about a tensor, which matters if an argument has its storage, or about all addresses."""
        if get_ident() == self._thread and not (tensor is None and self._by_address):
            self._has_asked |= tensor is None or any(_share_memory(tensor, one) for one in self._tensors)

    def plan(self, result: Any) -> Any:
        """The native plan of a call that gave ``result``, or None."""
        same = all(_form(tensor) == form for tensor, form in zip(self._tensors, self._forms, strict=True))
        is_plain = self._is_plain and self._done() == self._before
        if not same or self._has_asked or not (is_plain or self._torchs):
            return None
        if any(_share_memory(made, tensor) for made, _ in self._memory for tensor in self._staying):
            return None  # made by this call, the first that uses it
        every = (*self._tensors, *(made for made, _ in self._memory))
        if not every or any(tensor.device != every[0].device for tensor in every):
            return None
        context = runtime.of_device(every[0].device.index or 0)
        results = result if isinstance(result, tuple) else (result,)
        if self._torchs and self._torchs.adopts:
            results, self._memory, self._steps = (), [], []
        memory = [(made, bytes_) for made, bytes_ in self._memory if bytes_ or any(made is value for value in results)]
        plan = torch_native().PreparedPlan(
            device=context.native,
            index=context.index,
            pool=context.memory.pool,
            allocate=partial(allocate, context),
            allocations=[bytes_ for _, bytes_ in memory],
        )
        owner, make = torch_native().Owner, torch_native().PreparedRange
        ranges = [make(*_window(tensor), owner.ARGUMENT, number) for number, tensor in enumerate(self._tensors)]
        for number, (tensor, bytes_) in enumerate(memory):
            ranges.append(make(tensor.data_ptr(), tensor.data_ptr() + bytes_, owner.ALLOCATION, number))
        ranges += [make(*_window(tensor), owner.STAYING) for tensor in self._staying]
        if not all(self._add_step(plan, ranges, context, *step) for step in self._steps):
            return None
        if not all(self._add_result(plan, memory, results, number) for number in range(len(results))):
            return None
        for effect in self._effects:
            plan.add_effect(effect)
        plan.set_tuple(isinstance(result, tuple))
        if self._torchs:
            device = every[0].device
            taken = partial(copy_of_host, device=device) if self._torchs.adopts else None
            plan.set_torchs(self._torchs.overload, partial(self._torchs.write, device=device), taken)
        return plan

    def _add_step(self, plan: Any, ranges: list[Any], context: Any, kind: str, step: tuple[Any, ...]) -> bool:
        if kind != "launch":
            return bool((plan.add_copy if kind == "copy" else plan.add_fill)(*step, ranges))
        launch, function, grid, arguments, kept = step
        if type(launch) is LaterLauncher:
            self._effects.append(partial(context.unread_reports.add, launch))
            launch, arguments = launch.passed_on(arguments)
        if type(launch) is not native().Launcher:
            return False
        if not all(0 < size <= limit for size, limit in zip(grid, launch.grid_limits, strict=True)):
            return False
        if context.native.is_bounded and context.native.parts(function, math.prod(grid)) > 1:
            return False  # it is launched in parts
        return bool(
            plan.add_launch(
                launcher=launch,
                function=function,
                grid=grid,
                arguments=arguments,
                ranges=ranges,
                kept=(kept, *self._staying),
            )
        )

    def _add_result(
        self, plan: Any, memory: list[tuple[torch.Tensor, int]], results: tuple[Any, ...], number: int
    ) -> bool:
        value = results[number]
        if value is None or isinstance(value, (bool, int, float)):
            plan.add_constant(value)
            return True
        if not isinstance(value, torch.Tensor):
            return False
        for same, add in ((self._tensors, plan.add_argument), (results[:number], plan.add_again)):
            for place, tensor in enumerate(same):
                if value is tensor:
                    add(place)
                    return True
        if value.dtype not in DLPACK_CODES or value.is_conj() or value.is_neg() or value.storage_offset():
            return False
        if any(isinstance(one, torch.Tensor) and _share_memory(one, value) for one in results[:number]):
            return False
        bytes_ = extent(value.size(), value.stride()) * value.element_size()
        # A result that was resized has other memory than it was made with.
        places = [place for place, (made, size) in enumerate(memory) if size == bytes_ and _share_memory(made, value)]
        if not places or value.untyped_storage().nbytes() != bytes_:
            return False
        plan.add_tensor(
            allocation=places[0],
            code=DLPACK_CODES[value.dtype],
            bytes=value.element_size(),
            sizes=value.shape,
            strides=value.stride(),
        )
        return True


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.data_ptr()


def _window(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + extent(tensor.size(), tensor.stride()) * tensor.element_size()
