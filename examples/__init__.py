"""Kernels in Triton, each file runnable alone: ``python -m examples.vector_add``."""
