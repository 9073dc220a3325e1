"""A plugin of pytest that wide_mesa.py names: kernels are compiled with the habits of a GPU's driver."""

from __future__ import annotations

import os

from tests.drivers.wide_mesa import HABITS_OF, adopt

adopt(os.environ[HABITS_OF])
