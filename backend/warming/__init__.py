"""Compiling the kernels of a program before it runs: ``triton-spirv warm``."""
