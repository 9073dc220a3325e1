"""Mathematical functions built from a device's own arithmetic, each with a stated error bound (docs/internals/math.md).

``numeric.py`` is the language they are written in: numbers whose operators emit instructions. Nothing here knows
Triton's operations.
"""
