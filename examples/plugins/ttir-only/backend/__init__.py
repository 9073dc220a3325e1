"""A Triton backend that stops at TTIR: the smallest plugin. See docs/writing-a-backend.md."""
