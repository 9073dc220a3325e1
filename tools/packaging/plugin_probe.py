"""Run as a script by plugin_check.py: import one plugin in a patched triton, and print what is wrong with it.

Usage: plugin_probe.py NAME FOLDER; the folder holds the plugin's package under its name. Prints one line of JSON:
{"fault": "…"}, {"missing": "package"} or {}.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import traceback
from pathlib import Path


def syntax_fault(folder: Path) -> str:
    """The first Python file that cannot be compiled."""
    for path in sorted(folder.rglob("*.py")):
        try:
            compile(path.read_bytes(), str(path), "exec")
        except (SyntaxError, ValueError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            return f"{path.relative_to(folder).as_posix()}{line}: {error.args[0]}"
    return ""


def probe(name: str, folder: Path) -> dict[str, str]:
    """Import compiler.py and driver.py as triton would, and count their concrete classes."""
    import triton.backends as backends
    from triton.backends.compiler import BaseBackend
    from triton.backends.driver import DriverBase

    package = folder / name
    if fault := syntax_fault(package):
        return {"fault": f"backend/{fault}"}
    backends.__path__.append(str(folder))
    for part, base in (("compiler", BaseBackend), ("driver", DriverBase)):
        try:
            module = importlib.import_module(f"triton.backends.{name}.{part}")
        except ModuleNotFoundError as error:
            missing = (error.name or "").split(".")[0]
            if missing and missing != "triton":
                return {"missing": missing}
            return {"fault": f"backend/{part}.py cannot be imported: {place(error, package)}{error}"}
        except BaseException as error:
            kind = type(error).__name__
            return {"fault": f"backend/{part}.py cannot be imported: {place(error, package)}{kind}: {error}"}
        classes = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
        concrete = sorted({one.__name__ for one in classes if not inspect.isabstract(one)})
        if len(concrete) > 1:
            names = ", ".join(concrete)
            return {
                "fault": f"backend/{part}.py has {len(concrete)} concrete subclasses of {base.__name__} ({names}), "
                "and must have exactly one; import other backends' classes as modules"
            }
        if not concrete:
            abstract = {one.__name__: sorted(getattr(one, "__abstractmethods__", ())) for one in classes if one != base}
            lacks = "; ".join(f"{one} lacks {', '.join(methods)}" for one, methods in abstract.items() if methods)
            return {
                "fault": f"backend/{part}.py has no concrete subclass of {base.__name__}{': ' if lacks else ''}{lacks}"
            }
    return {}


def place(error: BaseException, package: Path) -> str:
    """`file, line n: ` of the innermost frame in the plugin."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(package):
            return f"{Path(frame.filename).relative_to(package).as_posix()}, line {frame.lineno}: "
    return ""


if __name__ == "__main__":
    print("\n" + json.dumps(probe(sys.argv[1], Path(sys.argv[2]))))
