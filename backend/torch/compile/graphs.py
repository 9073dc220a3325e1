"""``mode="reduce-overhead"``: the launches of a compiled function are captured once and replayed with one submission.

A graph works on the memory that it was captured with (runtime/launches/graph.py). A call is replayed only where that
gives what running it would:

- Parameters, and what a captured forward pass kept for this backward pass, are where they were: a graph is found by
  their addresses. All other inputs are copied into memory of the graph's own.
- Nothing that the graph gave the last time is in use any more, views included: the results stay where they are. A
  function has several graphs, so that the loss of the last step may be kept.
- The function changes no input that is copied, draws no random numbers, and does nothing on the host: otherwise it is
  not captured, nor where a size is not known when it is compiled.

What is not captured runs as without the mode.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...runtime import NAME, Graph, OutOfDeviceMemory, device_index
from ..device.random_state import GENERATOR
from ..device.tensor_memory import WRITING, is_dense, window

#: Graphs of one compiled function.
_MOST_GRAPHS = 4

_log = logging.getLogger(__name__)

Function = Callable[[list[Any]], Any]


class _Cannot(Exception):
    """Why a function is not captured."""


class _Results(dict[int, int]):
    """Storages that are graphs' results: a storage's address → how many references graphs themselves have to it."""

    def in_use(self, storage: int) -> bool:
        """Whether anything else refers to it."""
        return bool(torch._C._storage_Use_Count(storage) > self[storage])


#: Of all graphs. A graph that reads another's results has references to them, too.
_results = _Results()
#: Addresses of inputs that graphs take where they are.
_fixed: set[int] = set()


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


class _Captured:
    """One graph of a function. ``copied``: positions of the inputs that have memory of the graph's own."""

    def __init__(self, function: Function, inputs: Sequence[torch.Tensor], copied: Sequence[int]) -> None:
        self._extra: dict[int, int] = {}
        self._made: list[int] = []
        self._copies = {position: _twin(inputs[position]) for position in copied}
        self._graph = Graph(device_index(inputs[0].device))
        self._native = self._graph.context.native
        self.load(inputs)
        before = {storage: torch._C._storage_Use_Count(storage) for storage in _results}
        drawn = GENERATOR.drawn
        try:
            with self._graph.capture():
                # Tensors of the graph's own: it keeps them, and the caller's are to go.
                outputs = function(
                    [self._copies[at] if at in self._copies else x.detach() for at, x in enumerate(inputs)]
                )
        except (RuntimeError, OutOfDeviceMemory) as error:  # what is refused in a capture, and what the device says
            raise _Cannot(str(error)) from error
        if GENERATOR.drawn != drawn:
            raise _Cannot("it draws random numbers")
        self._is_tuple = isinstance(outputs, tuple)
        self._outputs: list[Any] = list(outputs)
        del outputs
        self._given_back = self._inputs_given_back()
        self._note_others(before)
        made = {_storage(x) for x in self._outputs if isinstance(x, torch.Tensor)}
        self._made = list(made - {_storage(x) for x in inputs} - set(before))
        for storage in self._made:
            _results[storage] = torch._C._storage_Use_Count(storage)

    def _inputs_given_back(self) -> dict[int, int]:
        """Results that are copied inputs, by their places: place of the result → that of the input, which is given."""
        copies = {_storage(copy): (position, copy) for position, copy in self._copies.items()}
        found = {}
        for place, result in enumerate(self._outputs):
            if isinstance(result, torch.Tensor) and _storage(result) in copies:
                position, copy = copies[_storage(result)]
                if (result.size(), result.stride(), result.dtype) != (copy.size(), copy.stride(), copy.dtype):
                    raise _Cannot("it returns a view of an input")
                found[place] = position
                self._outputs[place] = None
        return found

    def fits(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether the inputs that are copied have the sizes and strides of those that it was captured with."""
        return all(
            inputs[position].stride() == copy.stride() and inputs[position].size() == copy.size()
            for position, copy in self._copies.items()
        )

    def _note_others(self, before: dict[int, int]) -> None:
        """Note the references that this graph has to results of others."""
        kept = {id(tensor): tensor for tensor, _ in self._graph.tensors if isinstance(tensor, torch.Tensor)}
        listed = Counter(_storage(tensor) for tensor in kept.values())
        for storage, count in before.items():
            extra = min(listed[storage], torch._C._storage_Use_Count(storage) - count)
            if extra > 0:
                self._extra[storage] = extra
                _results[storage] += extra

    def load(self, inputs: Sequence[torch.Tensor]) -> None:
        """Copy the inputs that are to be copied."""
        for position, copy in self._copies.items():
            source = inputs[position]
            if source.is_conj() or source.is_neg():
                copy.copy_(source)
            elif copy.numel():
                address, bytes_ = window(copy)
                with WRITING:
                    self._native.copy(address, source.data_ptr(), bytes_)

    def is_free(self) -> bool:
        """Whether nothing uses the results of the last replay."""
        return not any(_results.in_use(storage) for storage in self._made)

    def replay(self, inputs: Sequence[torch.Tensor]) -> Any:
        """The function's results for the inputs, as tensors of the caller's own."""
        self.load(inputs)
        self._graph.replay()
        found = [x.detach() if isinstance(x, torch.Tensor) else x for x in self._outputs]
        for place, position in self._given_back.items():
            found[place] = inputs[position].detach()
        return tuple(found) if self._is_tuple else found

    def __del__(self) -> None:
        for storage in self._made:
            _results.pop(storage, None)
        for storage, extra in self._extra.items():
            if storage in _results:
                _results[storage] -= extra


def _twin(x: torch.Tensor) -> torch.Tensor:
    if not is_dense(x):
        raise _Cannot("an input has gaps between its elements, or elements that share memory")
    try:
        return torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)
    except OutOfDeviceMemory as error:
        raise _Cannot(str(error)) from error


class Replayed:
    """A compiled function in the place of ``function``, which takes a list of inputs.

    ``static``: positions of inputs that Inductor expects to stay where they are, in a backward pass all that the
    forward pass kept; ``mutated``: of those that are written.
    """

    def __init__(self, function: Function, static: Sequence[int], mutated: Sequence[int], is_backward: bool) -> None:
        self._function = function
        self._is_backward = is_backward
        self._static, self._mutated = frozenset(static), frozenset(mutated)
        self._graphs: dict[tuple[int, ...], list[_Captured]] = {}
        self._captured = 0
        self._runs = False
        self._why_not: str | None = None
        self._lock = threading.RLock()

    @property
    def why_not(self) -> str | None:
        """Why the function is not captured, where it cannot be."""
        return self._why_not

    @property
    def captured(self) -> int:
        """How many graphs were captured."""
        return self._captured

    def __call__(self, inputs: list[Any]) -> Any:
        """The function's results."""
        if self._why_not is not None:
            return self._function(inputs)
        if not self._runs:  # kernels are compiled and tuned by the first call
            self._runs = True
            return self._function(inputs)
        with self._lock:
            try:
                found = self._by_graph(inputs)
            except _Cannot as reason:
                self._why_not = str(reason)
                _log.info("launches of a compiled function are not captured: %s", reason)
                found = None
        return self._function(inputs) if found is None else found

    def _by_graph(self, inputs: list[Any]) -> Any:
        """The results by a graph, captured now if there is none; None if this call is to run as it is."""
        if not inputs or not all(isinstance(x, torch.Tensor) and x.device.type == NAME for x in inputs):
            raise _Cannot("a size is known only at the call, an input is on another device, or there is no input")
        if len({x.device for x in inputs}) > 1:
            raise _Cannot("the inputs are on several devices")
        addresses = [x.data_ptr() for x in inputs]
        if not self._graphs:
            self._positions = [
                position for position in self._static if self._is_fixed(inputs[position], addresses[position])
            ]
            if not self._mutated.issubset(self._positions):
                raise _Cannot("it writes an input")
        key = tuple(addresses[position] for position in self._positions)
        for graph in self._graphs.get(key, ()):
            if not graph.fits(inputs):
                return None
            if graph.is_free():
                return graph.replay(inputs)
        if self._captured >= _MOST_GRAPHS:
            return None
        copied = [position for position in range(len(inputs)) if position not in self._positions]
        graph = _Captured(self._function, inputs, copied)
        self._captured += 1
        _fixed.update(key)
        self._graphs.setdefault(key, []).append(graph)
        return graph.replay(inputs)

    def _is_fixed(self, x: torch.Tensor, address: int) -> bool:
        return not self._is_backward or address in _fixed or _storage(x) in _results
