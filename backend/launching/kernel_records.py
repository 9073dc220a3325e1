"""What ``triton-spirv warm`` compiles again: a line of JSON for each kernel that a program loads.

Signature, constants, attributes and options are as upstream serialises them for ``JITFunction.preload``. With them is
where the function is found again: a module, a script, or the text of a generated one.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import os
import sys
import threading
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..options import SPIRVOptions
from ..settings import RECORD_KERNELS

#: Raised where older versions would read a line wrongly.
FORMAT = 1
#: Where functions whose text is generated have, among their globals, what makes one again of its name and text, as
#: ``pkgutil.resolve_name`` takes it.
MAKER = "__kernel_maker__"
#: Modules whose functions torch's compiler generates, and keeps in caches of its own.
_TORCH_COMPILER = "torch._inductor."

_noted: set[tuple[str, str]] = set()
_lock = threading.Lock()


class NotRecordable(Exception):
    """A kernel that another process cannot find again. The message says why."""


def compiler_key(target: Any) -> str:
    """A digest of this compiler and of a target: what a kernel's cache key has of them."""
    from triton.compiler.compiler import make_backend
    from triton.runtime.cache import triton_key

    return hashlib.sha256(f"{triton_key()}-{make_backend(target).hash()}".encode()).hexdigest()


def note(source: Any, metadata: Any) -> None:
    """Write the line of a kernel that is loaded, once per process, where TRITON_SPIRV_RECORD_KERNELS names a file.
    ``source``: its ASTSource; ``metadata``: the compiled kernel's. Raises OSError if the file cannot be written."""
    file = RECORD_KERNELS.get()
    function = getattr(source, "fn", None)
    if file is None or function is None or str(function.fn.__module__).startswith(_TORCH_COMPILER):
        return
    with _lock:
        if (file, metadata.hash) in _noted:
            return
        _noted.add((file, metadata.hash))
    line: dict[str, Any] = {"format": FORMAT, "kernel": function.fn.__name__, "key": metadata.hash}
    try:
        line |= _found_again(source, metadata)
    except NotRecordable as error:
        line["why_not"] = str(error)
    # One write behind the end: lines of several processes do not mix.
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
    finally:
        os.close(descriptor)


def _found_again(source: Any, metadata: Any) -> dict[str, Any]:
    from triton.runtime.jit import JITFunction, get_full_name, serialize_specialization_data

    passed = [value for value in source.constants.values() if isinstance(value, JITFunction)]
    options = SimpleNamespace(**{entry.name: getattr(metadata, entry.name) for entry in fields(SPIRVOptions)})
    try:
        data = serialize_specialization_data(
            get_full_name(source.fn.fn),
            dict(source.signature),
            source.constants,
            source.attrs,
            options,
            metadata.hash,
            metadata.target,
        )
    except (TypeError, ValueError) as error:
        raise NotRecordable(f"a constant cannot be written: {error}") from None
    return {
        "function": place_of(source.fn.fn),
        "passed": [place_of(function.fn) for function in passed],
        "parameters": list(source.fn.arg_names),
        "compiler": compiler_key(metadata.target),
        "data": data,
    }


def place_of(function: Any) -> dict[str, str]:
    """Where another process finds a Python function: its ``name`` with a ``module`` and the ``root`` from which that is
    imported, with a ``script``, or with its ``text`` and its ``maker``. Raises NotRecordable."""
    name, module, file = function.__qualname__, function.__module__, function.__code__.co_filename
    if "<locals>" in name:
        raise NotRecordable("it is defined within a function")
    if file.startswith("<"):
        text = "".join(linecache.getlines(file))
        maker = function.__globals__.get(MAKER)
        if not text or maker is None:
            raise NotRecordable("its source is not in a file")
        return {"name": name, "text": text, "maker": maker}
    if module == "__main__":
        spec = sys.modules["__main__"].__spec__
        if spec is None:
            return {"name": name, "script": os.path.abspath(file)}
        module = spec.name
    path = Path(file).resolve()
    return {"name": name, "module": module, "root": str(path.parents[module.count(".") + (path.stem == "__init__")])}
