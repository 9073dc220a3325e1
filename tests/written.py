"""Modules of Python that tests write: Triton reads the text of a kernel from the file that it is in."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def written(path: Path, source: str, name: str = "") -> ModuleType:
    """The module of the source, in the file."""
    path.write_text(source, encoding="utf-8")
    return imported(path, name)


def imported(path: Path, name: str = "") -> ModuleType:
    """The module in a file, imported anew; its name is the file's, or ``name``."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if name:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
