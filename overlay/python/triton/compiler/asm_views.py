"""Other forms of a kernel's code that its backend can make: ``kernel.asm["…"]`` for what no stage left behind."""

from __future__ import annotations

from typing import Any

from ..backends import backends


def asm_view(asm: Any, key: str) -> str | None:
    """The form ``key`` of a kernel's code, from the backend whose binary is in ``asm``; None where it has no such form.

    A backend has a dict ``asm_views``: name of the form → function of the binary (bytes) to text.
    """
    for backend in backends.values():
        view = getattr(backend.compiler, "asm_views", {}).get(key)
        binary = asm.get(getattr(backend.compiler, "binary_ext", None))
        if view is not None and binary is not None:
            return view(binary)
    return None
