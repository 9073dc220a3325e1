"""``backward()`` in a process with several devices."""

from __future__ import annotations

from typing import Any

import torch

from ... import runtime


def run_backward_in_this_thread() -> None:
    """Makes torch's engine run a backward pass in the calling thread once a second device of this process is in use.

    The engine has a thread for each device that torch counts. It counts one out-of-tree device, so nodes on ``spirv:1``
    would have no thread.
    """
    engine: Any = torch.autograd.graph._engine_run_backward

    def run(*args: Any, **kwargs: Any) -> Any:
        if not any(context.index for context in runtime.opened()):
            return engine(*args, **kwargs)
        before = torch._C._is_multithreading_enabled()
        torch._C._set_multithreading_enabled(False)
        try:
            return engine(*args, **kwargs)
        finally:
            torch._C._set_multithreading_enabled(before)

    torch.autograd.graph._engine_run_backward = run
    torch.autograd._engine_run_backward = run  # type: ignore[attr-defined]
