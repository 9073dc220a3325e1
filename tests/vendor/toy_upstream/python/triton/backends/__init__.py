"""Finds the backends: one concrete compiler class and one concrete driver class behind each entry point."""

import inspect
from importlib import import_module
from importlib.metadata import entry_points

from .compiler import BaseBackend
from .driver import DriverBase


def _only_subclass(module, base):
    found = [
        value
        for _, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, base) and not inspect.isabstract(value)
    ]
    if len(found) != 1:
        raise RuntimeError(f"Found {len(found)} concrete subclasses of {base.__name__} in {module.__name__}")
    return found[0]


backends = {
    point.name: (
        _only_subclass(import_module(f"{point.value}.compiler"), BaseBackend),
        _only_subclass(import_module(f"{point.value}.driver"), DriverBase),
    )
    for point in entry_points(group="triton.backends")
}
