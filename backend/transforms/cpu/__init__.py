"""Rewrites for a device that computes whole tiles, and whose lanes are elements of vectors: the CPU device.

None is of use to a GPU, and nothing here knows of ``transforms/gpu/``. What they make is a nest of loops over arrays of
an invocation (``ttgir/operations/register_arrays.py``).
"""
