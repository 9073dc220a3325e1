"""Finding a kernel in a Python file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ..runtime.files import given_path
from .errors import RequestError


def split_request(text: str) -> tuple[Path, str]:
    """``kernel.py:fn`` as path and name."""
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise RequestError(f"'{text}' is not of the form FILE:FUNCTION, such as kernel.py:add")
    return given_path(path), name


def load_module(path: Path) -> ModuleType:
    """Runs a Python file. One in a package (a folder with ``__init__.py``) is imported as a part of it, so that its
    relative imports and its siblings are found; any other with its folder on the path.
    """
    if not path.is_file():
        raise RequestError(f"there is no file {path}")
    path = path.resolve()
    names, folder = [] if path.name == "__init__.py" else [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    try:
        if folder != path.parent:
            return _import_from(".".join(names), path)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise RequestError(f"{path} is not a Python file: its name ends in '{path.suffix}', not '.py'")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        spec.loader.exec_module(module)
        return module
    except RequestError:
        raise
    except (Exception, SystemExit) as error:
        raise RequestError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(folder))


def _import_from(name: str, path: Path) -> ModuleType:
    """The module of that name, which is to be in ``path``."""
    module = importlib.import_module(name)
    found = getattr(module, "__file__", None)
    if found is None or not path.samefile(found):
        raise RequestError(
            f"{path} is the module {name} of a package, but Python finds that in {found}: another "
            "package has its name; rename the folder, or compile a copy of the file outside of it"
        )
    return module


@contextmanager
def warned_of_launches(path: Path, verb: str) -> Iterator[None]:
    """Warns on stderr before the first kernel that a file launches while it is imported; the launch is made."""
    from triton.runtime import JITFunction

    run = JITFunction.run

    def run_and_warn(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if JITFunction.run is not run_and_warn:
            return run(self, *arguments, **keywords)
        JITFunction.run = run
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename != str(path.resolve()):
            frame = frame.f_back
        inside = frame.f_code.co_filename == str(path.resolve())
        print(
            f"triton-spirv {verb}: warning: {path}{f', line {frame.f_lineno},' if inside else ''} launches "
            f"'{self.__name__}' while the file is imported, which runs it now: put launches under "
            '`if __name__ == "__main__":`',
            file=sys.stderr,
        )
        return run(self, *arguments, **keywords)

    JITFunction.run = run_and_warn
    try:
        yield
    finally:
        JITFunction.run = run


def find_kernel(path: Path, name: str, verb: str = "compile") -> Any:
    """The JITFunction of that name. Autotuned and heuristic kernels give the function inside: the signature and the
    options say what their configurations would. ``verb``: of `triton-spirv`, which warnings name."""
    from triton.runtime import JITFunction

    with warned_of_launches(path, verb):
        module = load_module(path)
    found = getattr(module, name, None)
    while found is not None and not isinstance(found, JITFunction) and hasattr(found, "fn"):
        found = found.fn
    if isinstance(found, JITFunction):
        return found
    there = sorted(
        key
        for key, value in vars(module).items()
        if isinstance(value, JITFunction) or isinstance(getattr(value, "fn", None), JITFunction)
    )
    kernels = f"its kernels are {', '.join(there)}" if there else "it has no @triton.jit function"
    if not hasattr(module, name):
        raise RequestError(f"{path} has no '{name}'; {kernels}")
    raise RequestError(
        f"'{name}' in {path} is not a @triton.jit function but a {type(getattr(module, name)).__name__}; {kernels}"
    )
