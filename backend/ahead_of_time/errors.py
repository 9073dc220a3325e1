"""What is wrong with what ``triton-spirv compile`` was asked for, and errors of the front end in one line."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be carried out; the message says what, where, and what to do."""


def in_one_line(error: BaseException) -> str:
    """What an error says, in one line. Of the kernel's lines that upstream's compiler shows, the wrong one is kept."""
    text, cause = str(error), error.__cause__
    while error is not None:
        number, source = getattr(getattr(error, "node", None), "lineno", 0), getattr(error, "src", None)
        message = getattr(error, "error_message", None)
        if number and source and message:
            text = f"{message.strip()}, in '{source.splitlines()[number - 1].strip()}'"
        if cause is None:
            break
        error, cause = cause, cause.__cause__
    return " ".join(text.split())
