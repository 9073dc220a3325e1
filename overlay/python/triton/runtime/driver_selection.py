"""Which driver runs kernels when a SPIR-V backend is installed together with others.

Upstream asks for exactly one active driver, or for a name in ``TRITON_DEFAULT_BACKEND``. A Vulkan device is nearly
always there, so the SPIR-V driver would make a second active driver on every machine with a supported GPU. The rules,
first match wins:

1. ``TRITON_DEFAULT_BACKEND=<name>``: that backend, as upstream.
2. ``TRITON_SPIRV_BACKEND=1``: the SPIR-V backend, whose driver class says so: ``is_requested() -> bool``.
3. One active driver other than SPIR-V: that one. SPIR-V steps aside unasked (so no Vulkan driver is loaded into the
   process) and says so once in the log.
4. The SPIR-V driver, if it is active.

Without a SPIR-V backend the choice is left to upstream's own function. A driver class may offer
``unavailable_reason() -> str | None`` (a class or static method: what is missing); errors quote it. SPIR-V's may offer
``other_is_active(name, driver) -> bool``, which asks another backend's driver class only where asking is quick.

The module imports nothing of triton, so that it can be tested without it.
"""
from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

SPIRV = "spirv"
SELECT_VARIABLE = "TRITON_DEFAULT_BACKEND"
SPIRV_VARIABLE = "TRITON_SPIRV_BACKEND"

# What switches a flag on: the words of triton.knobs, and of the SPIR-V backend's own settings.
_ON = frozenset({"1", "true", "yes", "y", "on"})

# What drivers look for whose classes have no unavailable_reason().
_NEEDS = {
    "amd": "needs an AMD GPU and a torch built for ROCm",
    "nvidia": "needs an NVIDIA GPU with its driver (libcuda.so.1), and a torch built for CUDA where torch is imported",
    SPIRV: "needs a Vulkan driver; Mesa's runs on any CPU: apt-get install mesa-vulkan-drivers libvulkan1",
}

_COMPILE_ONLY = "TRITON_SPIRV_COMPILE_ONLY=1 compiles kernels without a device and skips their launches."

_log = logging.getLogger(__name__)
_stepped_aside = False


def spirv_requested(backends: Mapping[str, Any]) -> bool:
    """Whether ``TRITON_SPIRV_BACKEND`` asks for the SPIR-V backend.

    The backend owns the variable and is asked, where it is installed. It raises ValueError for a wrong value.
    """
    is_requested = getattr(getattr(backends.get(SPIRV), "driver", None), "is_requested", None)
    if is_requested is not None:
        return is_requested()
    return os.environ.get(SPIRV_VARIABLE, "").strip().lower() in _ON


def _missing(name: str, driver: Any) -> str:
    """What driver class `driver` of backend `name` misses; from the class itself where it can tell."""
    tell = getattr(driver, "unavailable_reason", None)
    reason = tell() if tell is not None else None
    return reason or _NEEDS.get(name, f"{driver.__name__}.is_active() is false")


def select_driver(backends: Mapping[str, Any], upstream: Callable[[], Any]) -> Any:
    """An instance of the driver class to use.

    `backends` maps a name to an object whose `driver` is a DriverBase subclass; `upstream` is upstream's own choice,
    taken where no SPIR-V backend is installed. Raises RuntimeError, saying what is missing, where there is no choice.
    """
    selected = os.environ.get(SELECT_VARIABLE)
    if spirv_requested(backends):
        if selected and selected != SPIRV:
            raise RuntimeError(f"{SPIRV_VARIABLE} asks for '{SPIRV}' and {SELECT_VARIABLE} for '{selected}': "
                               "unset one of them.")
        if SPIRV not in backends:
            raise RuntimeError(f"{SPIRV_VARIABLE}=1, but no backend named '{SPIRV}' is installed "
                               f"(installed: {', '.join(sorted(backends)) or 'none'}). "
                               "Install a triton wheel that contains it, or the triton-spirv plugin.")
        return _create_spirv(backends[SPIRV].driver)
    if SPIRV not in backends:
        return upstream()
    if selected:
        return _create_spirv(backends[SPIRV].driver) if selected == SPIRV else upstream()
    return _select_active(backends)


def _create_spirv(driver: Any) -> Any:
    if not driver.is_active():
        raise RuntimeError(f"Backend device '{SPIRV}' is not active. {_sentence(_missing(SPIRV, driver))}\n"
                           f"{_COMPILE_ONLY}")
    return driver()


def _select_active(backends: Mapping[str, Any]) -> Any:
    global _stepped_aside
    is_active = getattr(backends[SPIRV].driver, "other_is_active", lambda name, driver: driver.is_active())
    others = [
        backend.driver for name, backend in backends.items() if name != SPIRV and is_active(name, backend.driver)
    ]
    if len(others) == 1:
        if not _stepped_aside:
            _stepped_aside = True
            _log.info("the SPIR-V backend steps aside for %s; %s=1 selects it", others[0].__name__, SPIRV_VARIABLE)
        return others[0]()
    if not others and backends[SPIRV].driver.is_active():
        return backends[SPIRV].driver()
    # Upstream's sentence comes first: callers look for it.
    message = f"{len(others)} active drivers ({others}). There should only be one."
    if others:
        raise RuntimeError(message)
    missing = "\n".join(f"  {name}: {_missing(name, backends[name].driver)}" for name in sorted(backends))
    raise RuntimeError(f"{message} What each installed backend misses:\n{missing}\n{_COMPILE_ONLY}")


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!")) else ".")
