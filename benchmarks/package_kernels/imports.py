"""Imports single modules of packages whose dependencies are not installed.

Packages of the folders are found without running their ``__init__``; what is found nowhere is a stand-in, each of whose
attributes can be called, used as a decorator and indexed. ``triton`` and ``torch`` are the real ones.
"""

from __future__ import annotations
import __future__

import ast
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import sympy  # noqa: F401  torch imports it late: stand-ins of what it looks for would mislead it
import torch._dynamo
import torch.distributed  # noqa: F401
import triton
import triton.language as tl
from triton.runtime.jit import KernelInterface

#: Imported for real, or not at all: a stand-in of a part of them would hide that it is missing.
REAL = ("triton", "torch", "numpy", "sympy", "mpmath")

#: What packages hand on by names of their own: ``from package.utilities import tl, triton``.
TRITON = {"triton": triton, "tl": tl}


def _decorated(*arguments: Any, **options: Any) -> Any:
    """What a call of a stand-in gives: the function or kernel that it decorates, or a stand-in that may decorate."""
    if len(arguments) == 1 and not options and (callable(arguments[0]) or isinstance(arguments[0], KernelInterface)):
        return arguments[0]
    return MagicMock(side_effect=_decorated)


class StandIn(types.ModuleType):
    """A module that is not there."""

    __path__: Sequence[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__"):
            raise AttributeError(name)
        value = TRITON.get(name) or MagicMock(side_effect=_decorated)
        setattr(self, name, value)
        return value

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _decorated(*arguments, **options)


class Package(types.ModuleType):
    """A folder of modules, or a module, with stand-ins for the names that it lacks."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__"):
            raise AttributeError(name)
        if name in TRITON:
            return TRITON[name]
        try:
            return import_module(f"{self.__name__}.{name}")
        except Exception:  # the module is broken, or the name is defined by what was not run
            return getattr(StandIn(self.__name__), name)


class _Empty(Loader):
    """Makes packages and stand-ins."""

    def __init__(self, kind: type[types.ModuleType]) -> None:
        self.kind = kind

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self.kind(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is run."""


class _Source(SourceFileLoader):
    """Runs a module statement by statement, past those that fail; ``__failed__`` is the first error."""

    def exec_module(self, module: types.ModuleType) -> None:
        names = module.__dict__
        try:
            tree = ast.parse(self.get_data(self.path), self.path)
        except SyntaxError as error:
            names["__failed__"], tree = error, ast.Module([], [])
        futures = [node.names for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        flags = 0
        for alias in (alias for aliases in futures for alias in aliases):
            flags |= getattr(__future__, alias.name).compiler_flag
        for node in tree.body:
            try:
                exec(compile(ast.Module([node], []), self.path, "exec", flags, True), names)
            except Exception as error:
                names.setdefault("__failed__", error)
        module.__class__ = Package


class _Inside(MetaPathFinder):
    """Modules of the folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        parts = name.split(".")
        for folder in self.folders:
            place = folder.joinpath(*parts)
            if place.with_suffix(".py").is_file():
                source = str(place.with_suffix(".py"))
                return importlib.util.spec_from_file_location(name, source, loader=_Source(name, source))
            if place.is_dir():
                spec = ModuleSpec(name, _Empty(Package), is_package=True)
                spec.submodule_search_locations = [str(place)]
                return spec
        if any((folder / parts[0]).is_dir() for folder in self.folders):
            return ModuleSpec(name, _Empty(StandIn), is_package=True)
        return None


class _Nowhere(MetaPathFinder):
    """Everything else, except for parts of packages that are installed: these know how to do without them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top = name.split(".")[0]
        if top in REAL or not isinstance(sys.modules.get(top, StandIn("")), (StandIn, Package)):
            return None
        return ModuleSpec(name, _Empty(StandIn), is_package=True)


def install(folders: Sequence[Path]) -> None:
    """From now on modules of ``folders`` can be imported, and so can modules that do not exist."""
    sys.meta_path.insert(0, _Inside(folders))
    sys.meta_path.append(_Nowhere())


def module_name(file: Path, folders: Sequence[Path]) -> str:
    """The name that a file of one of the folders is imported by."""
    folder = next(folder for folder in folders if file.is_relative_to(folder))
    return ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(f"{os.extsep}__init__")
