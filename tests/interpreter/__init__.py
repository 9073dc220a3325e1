"""Triton's interpreter (TRITON_INTERPRET=1) with the queue's patches."""
