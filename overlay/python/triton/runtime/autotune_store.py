"""Choices of autotuning that a driver keeps, such as in a file.

A driver may have an ``autotune_store`` with two methods. ``find(autotuner, args, configs)`` gives the one of
``configs`` to use without a benchmark; None has one made. ``keep(autotuner, args, config)`` is told what a benchmark
has chosen. ``args`` are the names of a launch's arguments and their values. A third, ``code(kernel)``, may be missing:
compiled kernels for which it is equal run alike, so that of configurations with equal keywords that lead to them one is
measured.
"""

from __future__ import annotations

from typing import Any

from .. import knobs
from .driver import driver


def _store() -> Any:
    return None if knobs.runtime.interpret else getattr(driver.active, "autotune_store", None)


def find(autotuner: Any, args: dict[str, Any], configs: list[Any]) -> Any | None:
    """What the driver has for a launch; None without a store."""
    store = _store()
    return None if store is None else store.find(autotuner, args, configs)


def keep(autotuner: Any, args: dict[str, Any], config: Any) -> None:
    """Gives the driver a choice, unless nothing could be timed."""
    store = _store()
    if store is not None and autotuner.configs_timings[config] != [float("inf")] * 3:
        store.keep(autotuner, args, config)


def timings(autotuner: Any, args: tuple[Any, ...], keywords: dict[str, Any], configs: list[Any]) -> dict[Any, Any]:
    """The times of each of ``configs``, in a launch with these arguments and ``keywords``."""
    code = getattr(_store(), "code", None)
    found: dict[Any, Any] = {}
    codes: dict[Any, Any] = {}

    def code_of(config: Any) -> Any:
        if config not in codes:
            try:
                kernel = autotuner.fn.run(*args, **{**keywords, **config.all_kwargs(), "warmup": True})
                codes[config] = None if kernel is None else code(kernel)
            except Exception:  # told where it is measured
                codes[config] = None
        return codes[config]

    def alike(config: Any, other: Any) -> bool:
        if code is None or config.pre_hook or other.pre_hook or config.kwargs != other.kwargs:
            return False
        return code_of(config) is not None and code_of(config) == code_of(other)

    for config in configs:
        measured = next((other for other in found if alike(config, other)), None)
        found[config] = found[measured] if measured else autotuner._bench(*args, config=config, **keywords)
    return found
