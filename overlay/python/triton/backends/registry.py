"""Backends added while the program runs, in addition to those that entry points name.

A registered backend is an ordinary entry of ``triton.backends.backends``: the compiler finds it by its target and the
driver selection by its name. Register before the first kernel is compiled, or call
``triton.runtime.driver.set_active(get_backend(name).driver())``: the choice of a driver is made once.
"""
from __future__ import annotations

import inspect
import keyword
import threading

from . import Backend, backends
from .compiler import BaseBackend
from .driver import DriverBase

_lock = threading.Lock()
_registered: set[str] = set()


def register_backend(name: str, compiler: type[BaseBackend], driver: type[DriverBase]) -> Backend:
    """Adds backend `name` and returns its entry.

    `name` is a C identifier, as for an installed backend; `compiler` and `driver` are concrete subclasses of
    BaseBackend and DriverBase. Raises ValueError for a name that cannot be used or is taken, TypeError for a class
    that is not a backend. Nothing is added then.
    """
    if not isinstance(name, str) or not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        raise ValueError(f"backend name {name!r} is no C identifier (letters, digits, underscores; no digit first)")
    _check_concrete(name, "compiler", compiler, BaseBackend)
    _check_concrete(name, "driver", driver, DriverBase)
    with _lock:
        if name in backends:
            how = "unregister_backend it first" if name in _registered else "it is installed; choose another name"
            raise ValueError(f"backend name {name!r} is taken by {backends[name].compiler.__module__}: {how}")
        backends[name] = entry = Backend(compiler, driver)
        _registered.add(name)
    return entry


def unregister_backend(name: str) -> None:
    """Removes a backend that register_backend added. Raises ValueError for any other name."""
    with _lock:
        if name not in _registered:
            raise ValueError(f"backend {name!r} was not registered at run time{_installed()}")
        _registered.remove(name)
        del backends[name]


def get_backend(name: str) -> Backend:
    """The backend `name`, installed or registered. Raises ValueError for an unknown name, listing the known ones."""
    try:
        return backends[name]
    except KeyError:
        raise ValueError(f"no backend is named {name!r}{_installed()}") from None


def _installed() -> str:
    return f" (available: {', '.join(sorted(backends)) or 'none'})"


def _check_concrete(name: str, role: str, cls: type, base: type) -> None:
    where = f"backend {name!r}: {role}"
    if not isinstance(cls, type):
        raise TypeError(f"{where} must be a class, not an object of type {type(cls).__name__}")
    if not issubclass(cls, base):
        raise TypeError(f"{where} {cls.__qualname__} is not a subclass of {base.__module__}.{base.__name__}")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise TypeError(f"{where} {cls.__qualname__} is abstract; it must define {missing}")
