"""Imports every family of rules, so that the registry is full."""
from . import arith, atomics, casts, control_flow, convert_layout, dot, math, memory, program, reduce, scan, shared, tensor

__all__ = ["arith", "atomics", "casts", "control_flow", "convert_layout", "dot", "math", "memory", "program", "reduce", "scan", "shared",
           "tensor"]
