"""Errors in requests to ``triton-spirv compile``, and errors of the front end in one line."""

from __future__ import annotations

import re

#: How an error of the front end begins with the patch 'front-end-errors'.
_PLACE = re.compile(r".+:\d+: ")


class RequestError(Exception):
    """A request that cannot be carried out; the message says what, where, and what to do."""


def in_one_line(error: BaseException) -> str:
    """What an error says, in one line. Of the kernel's lines that upstream's compiler shows, the wrong one is kept."""
    text, cause, said = str(error), error.__cause__, str(error).splitlines()
    if getattr(error, "node", None) is not None and len(said) > 1 and _PLACE.match(said[0]):
        return f"{said[0]}, in '{said[1].strip()}'"
    while error is not None:
        number, source = getattr(getattr(error, "node", None), "lineno", 0), getattr(error, "src", None)
        message = getattr(error, "error_message", None)
        if number and source and message:
            text = f"{message.strip()}, in '{source.splitlines()[number - 1].strip()}'"
        if cause is None:
            break
        error, cause = cause, cause.__cause__
    return " ".join(text.split())
