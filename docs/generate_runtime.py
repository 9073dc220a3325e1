"""Writes docs/runtime.md: what ``triton.backends.spirv.runtime`` has for users, from the docstrings.

``python -m docs.generate_runtime``; with ``--check`` nothing is written.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triton.backends.spirv import runtime

from . import pages

PAGE = Path(__file__).parent / "runtime.md"


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


#: A part of the page → its names.
PARTS = {
    "Tensors": "from_numpy empty zeros full array DeviceBuffer Array TensorDescriptor",
    "Devices": "devices current_device set_current_device on_device",
    "Recorded launches": "Graph",
    "Compiled files": "load LoadedKernel load_bundle Bundle",
    "Errors": " ".join(name for name in runtime._MODULES if _is_error(getattr(runtime, name))),
}

_HEADER = """# The runtime

`from triton.backends.spirv import runtime` gives tensors, devices and compiled kernels without torch. Nothing of it
needs Triton. [running.md](running.md) explains devices, memory and launches; [ahead-of-time.md](ahead-of-time.md)
explains compiled files. `python -m docs.generate_runtime` writes this page from the docstrings.
"""


def _text(thing: Any) -> str:
    """The docstring as Markdown. Raises ValueError where there is none."""
    text = inspect.getdoc(thing)
    if not text:
        raise ValueError(f"{thing!r} has no docstring")
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _signature(name: str, function: Any) -> str:
    """A call as it is written, without types and ``self``."""
    parameters = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in inspect.signature(function).parameters.values()
        if one.name not in ("self", "cls")
    ]
    text = inspect.Signature(parameters).__str__().replace("=<class 'numpy.", "=<numpy.")
    return name + text


def _members(class_: type) -> Iterator[str]:
    """The public methods and properties that the class itself defines, a line each."""
    for name, member in vars(class_).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            if member.__doc__:
                yield f"- `{name}`: {_line(member)}"
            continue
        function = getattr(class_, name)
        if inspect.isroutine(function) and inspect.getdoc(function):
            yield f"- `{_signature(name, function)}`: {_line(function)}"


def _line(thing: Any) -> str:
    """The docstring in one line, for a list."""
    return " ".join(_text(thing).split())


def entry(name: str) -> str:
    """What the page says of a name."""
    thing = getattr(runtime, name)
    if inspect.isclass(thing):
        return "\n".join([f"### `{name}`", "", _text(thing), "", *_members(thing)]).rstrip() + "\n"
    title = _signature(name, thing) if inspect.isroutine(thing) else f"{name}()"
    return f"### `{title}`\n\n{_text(thing)}\n"


def page() -> str:
    """The text of the page."""
    parts = [_HEADER]
    for title, names in PARTS.items():
        parts.append(f"## {title}\n")
        parts += [entry(name) for name in names.split()]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, page))
