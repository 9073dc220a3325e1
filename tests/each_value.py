"""Which tests of a matrix the test command runs: so many that each value of each parameter is run.

A test with several parameters is a matrix of tests. Where FILES lists it, ``--each-value`` leaves as few of its cells
as have every value of every parameter once, each with values that few others have. So an operation is run with one type
or two instead of with all, and a type with many operations. The other cells ask what the same lines of code were asked.
On a Vulkan device, with ``--vulkan-part``, and on emulated devices, with ``--each-value-of-all``, that is done with all
tests: their matrices are run on the CPU device.

Tests marked ``weekly``, with the test that asks the same of the same lines for each change, are left out, too.

``python3 -m tools test`` does so; ``python3 -m tools test --whole``, which a job of weekly.yml runs, and pytest itself
run all.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[1]
#: File, or folder of files → what makes its matrices large.
FILES: dict[str, str] = {
    "tests/device/math": "functions by types and ranges of arguments",
    "tests/device/test_casts.py": "pairs of types",
    "tests/device/test_dot.py": "types by shapes and numbers of warps",
    "tests/device/test_dot_scaled.py": "types of both operands by shapes",
    "tests/device/test_driver_folds.py": "operations by types and operands",
    "tests/device/test_fuzz_families.py": "families of random kernels by seeds",
    "tests/device/test_fuzz_floats.py": "types by seeds",
    "tests/device/test_fuzz_functions.py": "functions by seeds",
    "tests/device/test_gather.py": "types by axes and shapes",
    "tests/device/test_gluon_buffers.py": "layouts by types",
    "tests/device/test_integers.py": "operations by types",
    "tests/device/test_loop_bounds.py": "types and ends by steps",
    "tests/device/test_loop_reductions.py": "updates by types and first values",
    "tests/device/test_negative_indices.py": "types by operations, divisors, sizes and first numbers",
    "tests/device/test_narrowed_results.py": "operations by types",
    "tests/device/test_random.py": "distributions by types and sizes",
    "tests/device/test_reduce.py": "operations by types, axes and shapes",
    "tests/device/test_scan.py": "operations by types, axes and shapes",
    "tests/device/torch_ops": "operations of torch by types, shapes and options",
    "tests/device/test_tensor_ops.py": "operations by types, shapes and numbers of warps",
    "tests/unit/ahead_of_time/test_every_example.py": "kernels by device profiles",
    "tests/unit/cpu": "kernels by processors, types, shapes and orders",
    "tests/vendor/test_cpu_app.py": "kernels by machines, forms of the header and sizes",
    "tests/vendor/test_header_forms.py": "forms of the header by device profiles",
}

_T = TypeVar("_T")


def covering(cells: Sequence[tuple[_T, tuple[str, ...]]]) -> list[_T]:
    """Of the cells of a matrix, each with its values of the parameters, as few as have every value; in their order."""
    having: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for place, (_, values) in enumerate(cells):
        for value in enumerate(values):
            having[value].append(place)
    used: Counter[tuple[int, str]] = Counter()
    chosen: set[int] = set()
    for value in sorted(having, key=lambda one: len(having[one])):  # those of the longest axis first
        if used[value]:
            continue
        place = min(having[value], key=lambda at: sum(used[one] for one in enumerate(cells[at][1])))
        chosen.add(place)
        used.update(enumerate(cells[place][1]))
    return [cells[place][0] for place in sorted(chosen)]


def _listed(item: pytest.Item) -> bool:
    path = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    return path in FILES or any(path.startswith(f"{folder}/") for folder in FILES)


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves what ``--each-value`` or ``--each-value-of-all`` asks for."""
    every = config.getoption("each_value_of_all")
    if not every and not config.getoption("each_value"):
        return
    every = every or config.getoption("vulkan_part")
    matrices: defaultdict[tuple[str, str], list[tuple[pytest.Item, tuple[str, ...]]]] = defaultdict(list)
    for item in items:
        cell = getattr(item, "callspec", None)
        if cell is not None and (every or _listed(item)) and item.get_closest_marker("skip") is None:
            matrices[str(item.path), item.nodeid.split("[", 1)[0]].append((item, tuple(map(str, cell._idlist))))
    left = {id(item) for cells in matrices.values() for item, _ in cells}
    left -= {id(item) for cells in matrices.values() for item in covering(cells)}
    left |= {id(item) for item in items if item.get_closest_marker("weekly") is not None}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = [item for item in items if id(item) not in left]
