"""Imports every family of rules, so that the registry is full."""
from . import arith, casts, control_flow, convert_layout, dot, math, memory, program, reduce, shared, tensor

__all__ = ["arith", "casts", "control_flow", "convert_layout", "dot", "math", "memory", "program", "reduce", "shared",
           "tensor"]
