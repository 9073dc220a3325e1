"""Choices of autotuning that a driver keeps, such as in a file.

A driver may have an ``autotune_store`` with two methods. ``find(autotuner, args, configs)`` gives the one of ``configs`` to
use without a benchmark; None has one made. ``keep(autotuner, args, config)`` is told what a benchmark has chosen. ``args`` are
the names of a launch's arguments and their values.
"""
from __future__ import annotations

from typing import Any, Optional

from .. import knobs
from .driver import driver


def _store() -> Any:
    return None if knobs.runtime.interpret else getattr(driver.active, "autotune_store", None)


def find(autotuner: Any, args: dict[str, Any], configs: list[Any]) -> Optional[Any]:
    """What the driver has for a launch; None without a store."""
    store = _store()
    return None if store is None else store.find(autotuner, args, configs)


def keep(autotuner: Any, args: dict[str, Any], config: Any) -> None:
    """Gives the driver a choice, unless nothing could be timed."""
    store = _store()
    if store is not None and autotuner.configs_timings[config] != [float("inf")] * 3:
        store.keep(autotuner, args, config)
