"""What torch's engine of backward passes asks of the device."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from ... import runtime
from .native_module import torch_native


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
    torch.autograd._engine_run_backward = run


def guard_without_python() -> bool:
    """Makes C++ code answer what torch asks a device's guard. False where it cannot.

    torch's guard for devices in Python calls Python between a hook's exception and the program that waits for it, in
    functions that must not raise, so that the process would end. The order of the guard's functions is that of the
    header that torch brings along.
    """
    header = Path(torch.__file__).parent / "include/c10/core/impl/DeviceGuardImplInterface.h"
    text = header.read_text("utf-8") if header.exists() else ""
    functions = re.findall(r"^ *virtual (?:[\w:]+\*? (\w+)\(|[^~])", text, re.MULTILINE)  # "" for one it cannot read
    return all(functions) and bool(torch_native().guard_without_python(functions))
