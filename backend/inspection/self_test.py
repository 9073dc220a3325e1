"""The child that runs the self-test of a device: ``python -m triton.backends.spirv.inspection.self_test GROUP …``.

For each group it prints "begin GROUP", and then "right GROUP" or "wrong GROUP: what". Where the driver ends the process
or never answers, the last line says in which group. runtime/measuring/trust.py reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..runtime import context
from ..runtime.measuring.trust import MATRICES
from .known_results import Case, Result, cases, times_of_products

#: Matrix units are left out where a product takes so many times as long as by multiply-adds.
SLOWER = 1.5


def faults_of(group: str, found: list[Case]) -> Iterator[str]:
    """What is wrong with a group's kernels."""
    capabilities = context.current().capabilities
    for case in found:
        if case.group != group or (case.needs and not capabilities.has(case.needs)):
            continue
        try:
            result: Result = case.run()
        except Exception as error:  # whatever a driver makes of it
            yield f"{case.name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        if not result.right:
            yield f"{case.name} is wrong by {result.error:.3g} times what is allowed"
    if group == MATRICES and capabilities.has("matrices"):
        units, multiply_adds = times_of_products()
        if units > SLOWER * multiply_adds:
            yield f"a product takes {units * 1e3:.3g} ms on matrix units and {multiply_adds * 1e3:.3g} ms without"


def main(groups: list[str]) -> None:
    """Runs them."""
    found = list(cases())
    for group in groups:
        print(f"begin {group}", flush=True)
        wrong = "; ".join(faults_of(group, found))
        print(f"wrong {group}: {wrong}" if wrong else f"right {group}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
