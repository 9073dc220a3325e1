"""A Triton backend that stops at TTIR: the smallest plugin. See docs/internals/writing-a-backend.md."""
