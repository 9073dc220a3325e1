"""Sessions on devices that libproton cannot measure: launches get their times from events of the active driver.

libproton keeps the scopes and the tree, and writes the files; hooks/launch_times.py adds what its own profilers learn from
a vendor's library.
"""
from __future__ import annotations

from typing import Any

from triton._C.libproton import proton as libproton
from triton.runtime.driver import driver

#: The open sessions of this kind, and their hooks.
_sessions: dict[int, Any] = {}


def select_backend(backend: str) -> str:
    """The profiler of a Triton backend: libproton's, or the backend's own name where libproton has none for it."""
    try:
        return libproton.select_profiler_from_triton_backend(backend)
    except ValueError:
        return backend


def check_backend(backend: str) -> None:
    """Raises ValueError for a profiler that does not know the device of the active driver, where libproton has none."""
    active = driver.active.get_current_target().backend
    if backend != active and select_backend(active) == active:
        raise ValueError(f"Proton's profiler '{backend}' does not measure the devices of the backend '{active}': leave out "
                         f"backend=, or pass backend='{active}'")


def start_session(name: str, context: str, data: str, backend: str, mode: str) -> int:
    """libproton.start(), for a profiler of libproton's or the name of the active backend.

    Raises ValueError for a mode with the latter, and RuntimeError where its driver has no events.
    """
    if backend in libproton.get_available_profilers() or backend != driver.active.get_current_target().backend:
        return libproton.start(name, context, data, backend, mode)
    if mode:
        raise ValueError(f"Proton has no mode '{mode}' for the backend '{backend}': leave out mode=")
    interface = getattr(driver.active, "get_device_interface", lambda: None)()
    if not hasattr(interface, "Event"):
        raise RuntimeError(f"Proton cannot measure the backend '{backend}': its driver has no events with times")
    from .hooks.hook import HookManager  # hooks/ imports metric.py, which imports this file
    from .hooks.launch_times import LaunchTimes

    for hook in _sessions.values():
        hook.deactivate()  # reads what is pending: a session that starts now does not know these launches
    # A profiler of libproton's that needs no library of a vendor's, and records nothing by itself.
    session = libproton.start(name, context, data, "instrumentation", "cuda")
    if session not in _sessions:
        _sessions[session] = LaunchTimes(interface.Event, name, is_trace=data == "trace")
    HookManager.register(_sessions[session], session)
    return session


def finish_sessions(session: int | None) -> None:
    """After libproton wrote its files: adds what it does not know."""
    for number in list(_sessions) if session is None else [session] * (session in _sessions):
        _sessions.pop(number).finish()


def is_measured_by_driver() -> bool:
    """Whether a session is open whose device libproton does not know, so that it cannot read that device's tensors."""
    return bool(_sessions)


def readable_metrics(metrics: dict[str, Any]) -> dict[str, Any]:
    """Metrics of a scope, with numbers instead of tensors where libproton cannot read the device's memory."""
    if not is_measured_by_driver():
        return metrics
    return {name: _numbers(value) if hasattr(value, "data_ptr") else value for name, value in metrics.items()}


def _numbers(tensor: Any) -> Any:
    return tensor.item() if tensor.numel() == 1 else tensor.flatten().tolist()
