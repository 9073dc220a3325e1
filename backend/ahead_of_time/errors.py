"""What is wrong with what ``triton-spirv compile`` was asked for."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be carried out; the message says what, where, and what to do."""
