"""``torch.cuda.CUDAGraph`` and ``torch.cuda.graph`` in ``torch.spirv.as_cuda()``: launches of a thread, captured
once and replayed (runtime/launches/graph.py). A graph keeps its tensors itself, so that it needs no pool of memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from ...runtime import Graph
from .random_state import GENERATOR


class CUDAGraph:
    """``torch.cuda.CUDAGraph`` of this device."""

    _graph: Graph | None = None
    _capture: AbstractContextManager[Graph]
    _drawn = 0

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", **_: Any) -> None:
        """Captures what this thread launches from now on."""
        torch.cuda.synchronize()
        self._graph, self._drawn = Graph(), GENERATOR.drawn
        self._capture = self._graph.capture()
        self._capture.__enter__()

    def capture_end(self, *error: Any) -> None:
        """Ends that. Raises RuntimeError where random numbers were drawn, which would be the same in each replay."""
        self._capture.__exit__(*(error or (None, None, None)))
        if GENERATOR.drawn != self._drawn and not any(error):
            self._graph = None
            raise RuntimeError(
                "torch.cuda.CUDAGraph: random numbers were drawn in the capture, and each replay would have the same "
                "ones: draw them before it, into a tensor that the graph reads"
            )

    def replay(self) -> None:
        """Runs what was captured. Raises RuntimeError where nothing was."""
        if self._graph is None:
            raise RuntimeError("torch.cuda.CUDAGraph: nothing was captured that can be replayed")
        self._graph.replay()

    def reset(self) -> None:
        """Forgets what was captured."""
        self._graph = None

    def pool(self) -> tuple[int, int]:
        """What other graphs' captures are given."""
        return graph_pool_handle()


class graph:  # noqa: N801 (torch's name)
    """``torch.cuda.graph``: captures a block. Launches are captured by thread, whatever their stream."""

    def __init__(self, cuda_graph: CUDAGraph, *_: Any, **__: Any) -> None:
        self.cuda_graph = cuda_graph

    def __enter__(self) -> None:
        self.cuda_graph.capture_begin()

    def __exit__(self, *error: Any) -> None:
        self.cuda_graph.capture_end(*error)


def graph_pool_handle() -> tuple[int, int]:
    """``torch.cuda.graph_pool_handle``."""
    return 0, 1
