"""The version of what the Python code and the native module agree on: the ABI's data and the module's own functions.

Python refuses a native module of another version (runtime/native_module.py). Raise VERSION whenever either side would
misunderstand the other; a test notices where ``native/abi.h`` or ``native/module.cpp`` changed without it.
"""

from __future__ import annotations

VERSION = 25

#: Of a module that was built before modules said it.
UNSAID = 1
