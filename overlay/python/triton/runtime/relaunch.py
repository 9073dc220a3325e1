"""Launches like earlier ones, where the active driver remembers them.

JITFunction.run() asks ``function.relaunch(function, grid, args, keywords)`` first, which launches and returns the kernel,
or returns None and leaves the launch to run(). It is None until a driver sets it: a driver that has
``remember_launch(function, device, key, args, keywords)`` is called after every launch that run() made itself, with the key of
its kernel in ``function.device_caches[device]`` and the arguments and keywords as run() has them at its end.
"""
from __future__ import annotations

from typing import Any

from .driver import driver


def remember_launch(function: Any, device: int, key: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Tells the active driver, if it wants to know, of a launch that was just made."""
    remember = getattr(driver.active, "remember_launch", None)
    if remember is not None:
        remember(function, device, key, args, keywords)
