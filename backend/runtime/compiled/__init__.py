"""Kernels that were compiled to files: reading them, and launching them without Triton."""
