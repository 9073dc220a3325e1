"""TTGIR as typed Python objects: types, encodings, operations, and the reader of MLIR text.

This package knows MLIR syntax and the Triton dialects. It knows nothing of SPIR-V or of devices.
"""

from . import operations as operations  # the rows of operations declare the attributes that ir.py reads
