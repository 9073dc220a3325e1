"""Whether Python files that the queue changes still compile."""

from __future__ import annotations

import warnings


def syntax_fault(path: str, before: bytes | None, after: bytes) -> str:
    """`path, line N: what is wrong` of a changed Python file, '' if it compiles.

    `before`: the file as it was, None if there was none. One that did not compile then is not the change's fault.
    """
    fault = _fault(after)
    return f"{path}, {fault}" if fault and (before is None or not _fault(before)) else ""


def _fault(source: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, "file", "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"line {error.lineno}: {error.msg}"
        except ValueError as error:  # null bytes
            return f"line 1: {error}"
    return ""
