"""``torch.cuda.CUDAGraph`` and ``torch.cuda.graph`` in ``torch.spirv.as_cuda()``: launches of a thread, captured
once and replayed (runtime/launches/graph.py). A graph keeps its tensors itself, so that it needs no pool of memory."""

from __future__ import annotations

import functools
import threading
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch.cuda import graphs
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ...runtime import Graph
from .random_state import CAPTURED, Draws

_made = graphs.make_graphed_callables


class CUDAGraph:
    """``torch.cuda.CUDAGraph`` of this device. Each replay draws random numbers of its own, of any generator."""

    _graph: Graph | None = None
    _open: ExitStack | None = None

    def __init__(self, keep_graph: bool = False) -> None:
        """``keep_graph`` has no effect: what was captured can be replayed at once."""

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", **_: Any) -> None:
        """Captures what this thread launches from now on."""
        torch.cuda.synchronize()
        self._graph, self._draws, self._lock = Graph(), Draws(), threading.Lock()
        with ExitStack() as begun:
            begun.enter_context(self._graph.capture())
            begun.enter_context(mock.patch.object(CAPTURED, "draws", self._draws))
            begun.callback(register_optimizer_step_pre_hook(_refuse_numbers_of_the_host).remove)
            self._open = begun.pop_all()

    def capture_end(self, *error: Any) -> None:
        """Ends that. Raises RuntimeError where nothing is captured."""
        began, self._open = self._open, None
        if began is None:
            raise RuntimeError("torch.cuda.CUDAGraph: capture_end() without a capture_begin()")
        began.__exit__(*(error or (None, None, None)))

    def register_generator_state(self, generator: Any) -> None:
        """Does nothing: all generators are known."""

    def replay(self) -> None:
        """Runs what was captured. Raises RuntimeError where nothing was."""
        if self._graph is None:
            raise RuntimeError("torch.cuda.CUDAGraph: nothing was captured that can be replayed")
        with self._lock:
            self._draws.renew()
            self._graph.replay()

    def instantiate(self) -> None:
        """Does nothing, as there is nothing between the capture and replays."""

    def enable_debug_mode(self) -> None:
        """Does nothing: there is nothing to dump."""

    def reset(self) -> None:
        """Forgets what was captured."""
        self._graph = None

    def pool(self) -> tuple[int, int]:
        """What other graphs' captures are given."""
        return graph_pool_handle()


class graph:
    """``torch.cuda.graph``: captures a block. Launches are captured by thread, whatever their stream."""

    def __init__(self, cuda_graph: CUDAGraph, *_: Any, **__: Any) -> None:
        self.cuda_graph = cuda_graph

    def __enter__(self) -> None:
        self.cuda_graph.capture_begin()

    def __exit__(self, *error: Any) -> None:
        self.cuda_graph.capture_end(*error)


@functools.wraps(graphs.make_graphed_callables)
def make_graphed_callables(callables: Any, *args: Any, **how: Any) -> Any:
    """torch's own, whose parameters get copies of gradients: those that stay would be written by the next replay, and
    with CUDA they are (pytorch/pytorch#181723)."""
    made = _made(callables, *args, **how)
    for each in callables if isinstance(callables, tuple) else (callables,):
        for parameter in each.parameters() if isinstance(each, torch.nn.Module) else ():
            if parameter.requires_grad:
                parameter.register_hook(torch.clone)
    return made


def _refuse_numbers_of_the_host(optimizer: Any, *_: Any) -> None:
    """Called before each step of an optimizer."""
    if CAPTURED.draws is not None and not all(group.get("capturable", True) for group in optimizer.param_groups):
        raise RuntimeError(
            f"torch.cuda.CUDAGraph: a step of {type(optimizer).__name__} with capturable=False is captured, and each "
            "replay would have the same numbers of this step: make the optimizer with capturable=True"
        )


def graph_pool_handle() -> tuple[int, int]:
    """``torch.cuda.graph_pool_handle``."""
    return 0, 1
