"""Kernels whose text is generated."""

from __future__ import annotations

import hashlib
import linecache
import threading
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.jit import JITFunction

from . import draws, functions, special_functions

#: What the text of a kernel may name.
_NAMES: dict[str, Any] = {"tl": tl, "libdevice": libdevice, "fn": functions, "sp": special_functions, "triton": triton}
_NAMES["draw"] = draws
# How another process makes a kernel again (launching/kernel_records.py).
_NAMES["__kernel_maker__"] = f"{__name__}:kernel_of"
_made: dict[str, JITFunction] = {}
_lock = threading.Lock()


def kernel_of(name: str, text: str) -> JITFunction:
    """The kernel that ``text`` defines as the function ``name``: one for equal texts.

    Its text stays in linecache, from where Triton and error messages read it.
    """
    with _lock:
        function = _made.get(text)
        if function is None:
            file = f"<torch operation {name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            namespace: dict[str, Any] = {**_NAMES, "__name__": __name__, "__file__": file}
            exec(compile(text, file, "exec"), namespace)
            function = _made[text] = triton.jit(namespace[name])
        return function
