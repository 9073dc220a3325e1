"""The one exception that the tools raise for what a person can act on."""

from __future__ import annotations


class ToolError(Exception):
    """A failure with one clear message: what went wrong, where, and what to do. Shown without a traceback."""
