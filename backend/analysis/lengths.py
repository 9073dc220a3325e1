"""How long the code of one element is, where it is long."""

from __future__ import annotations

#: Instructions of one element's code, roughly.
MEDIUM, LONG = 100, 500

#: Operation → instructions of one element, where they may be many; functions by name: lowering/externs.py.
LENGTHS = {
    "arith.remf": MEDIUM,
    "math.acosh": MEDIUM,
    "math.asinh": MEDIUM,
    "math.atan2": MEDIUM,
    "math.atanh": MEDIUM,
    "math.cbrt": MEDIUM,
    "math.cos": MEDIUM,
    "math.erf": MEDIUM,
    "math.erfc": LONG,
    "math.fma": MEDIUM,
    "math.fpowi": LONG,
    "math.ipowi": MEDIUM,
    "math.powf": LONG,
    "math.sin": MEDIUM,
    "math.tan": MEDIUM,
    "tt.precise_divf": MEDIUM,
    "tt.precise_sqrt": MEDIUM,
}
