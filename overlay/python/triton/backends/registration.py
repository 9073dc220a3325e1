"""Backends that a program adds while it runs, beside those that are found when triton is imported.

`register_backend` checks a backend as far as its classes tell, so that a mistake is one error where the backend is
registered, and not another one in the middle of a launch. `triton.backends` offers both functions. The plugin-only
wheel has this file in its own package, for a triton without it.
"""
from __future__ import annotations

import inspect
from typing import Any

from triton.backends import Backend, backends
from triton.backends.compiler import BaseBackend
from triton.backends.driver import DriverBase

#: What is called of a compiler although `BaseBackend` does not declare it: when a kernel is compiled.
_CALLED_OF_COMPILERS = ("get_codegen_implementation", "pack_metadata")
#: Called on the class, before there is an object of it.
_CALLED_ON_CLASSES = {"compiler": "supports_target", "driver": "is_active"}


def register_backend(name: str, compiler: type[BaseBackend], driver: type[DriverBase]) -> Backend:
    """Add a backend under a name, which `TRITON_DEFAULT_BACKEND` may give, and return it.

    `compiler` and `driver` are concrete subclasses of `BaseBackend` and `DriverBase`. Kernels go to the backend once
    its driver is chosen: `triton.runtime.driver.set_active(driver())`, or when Triton chooses one for the first time
    and `driver.is_active()`.

    Raises TypeError if an argument is not of its type or a class lacks a method, and ValueError if the name is not a
    Python identifier, or is the name of another backend.
    """
    if not isinstance(name, str):
        raise TypeError(f"a backend's name is a str, not {_shown(name)}")
    if not name.isidentifier():
        raise ValueError(f"a backend's name is a Python identifier, as it names a package, not {name!r}")
    _check(name, "compiler", compiler, BaseBackend, _CALLED_OF_COMPILERS)
    _check(name, "driver", driver, DriverBase, ())
    if name in backends:
        there = backends[name].compiler
        raise ValueError(f"there is a backend {name!r} already, {there.__module__}.{there.__qualname__}: "
                         "choose another name")
    backends[name] = Backend(compiler, driver)
    return backends[name]


def get_backend(name: str) -> Backend:
    """The backend of that name: its classes `compiler` and `driver`. Raises KeyError, which names those there are."""
    if name not in backends:
        raise KeyError(f"there is no backend {name!r}; there are: {', '.join(sorted(backends)) or 'none'}")
    return backends[name]


def _check(name: str, role: str, given: Any, base: type, called: tuple[str, ...]) -> None:
    """That a class can be a backend's compiler or driver."""
    if not isinstance(given, type) or not issubclass(given, base):
        hint = f": pass the class {type(given).__name__}, not an object of it" if isinstance(given, base) else ""
        raise TypeError(f"backend {name!r}: its {role} must be a subclass of {base.__module__}.{base.__name__}, "
                        f"not {_shown(given)}{hint}")
    lacking = sorted(given.__abstractmethods__) + [one for one in called if not hasattr(given, one)]
    if lacking:
        names = ", ".join(f"{one}()" for one in lacking)
        raise TypeError(f"backend {name!r}: its {role} {given.__name__} lacks {names}")
    asked = _CALLED_ON_CLASSES[role]
    if not isinstance(inspect.getattr_static(given, asked), (classmethod, staticmethod)):
        raise TypeError(f"backend {name!r}: {given.__name__}.{asked}() must be a class method or a static method: it "
                        "is called before there is an object")


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of {type(value).__name__}"
