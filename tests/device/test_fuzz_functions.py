"""The table of functions that kernels are held to: it has every public function, a kernel of each row computes what it
says for each of its types, and its judges find faults."""

import inspect
import random
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import triton.language as tl

from tests.fuzz.families import functions
from tests.fuzz.families.functions import ELSEWHERE, ROWS, judging
from tests.fuzz.families.functions.drawing import dtype_of
from tests.fuzz.families.functions.row import Row
from tests.fuzz.steps import Family, Writer, run

#: Of the table: values of an argument, which have rows of their own.
OPTIONS = {"PropagateNan"}


def _functions(module: ModuleType) -> set[str]:
    found: dict[str, Any] = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {
        name
        for name, value in found.items()
        if callable(value) and not inspect.isclass(value) and getattr(value, "__module__", "").startswith("triton")
    }


def test_every_public_function_is_in_the_table_or_has_its_definition_elsewhere() -> None:
    public = _functions(tl) | _functions(tl.math) | {"range", "static_range", "condition"}
    named = {name for row in ROWS for name in row.names.split()} - OPTIONS
    assert public - named - ELSEWHERE.keys() == set(), "functions that no row stands for"
    assert (named | ELSEWHERE.keys()) - public == set(), "names that triton.language does not have"
    assert named & ELSEWHERE.keys() == set()


def _written(row: Row, seed: int, type_: str) -> Writer:
    writer = Writer(random.Random(seed), np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        row.write(writer, dtype_of(type_))
    return writer


IDS = [f"{number}_{row.names or row.definition}".replace(" ", "_") for number, row in enumerate(ROWS)]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_calls_its_functions_and_finds_other_values(row: Row) -> None:
    refused = judged = 0
    for type_ in row.types:
        for seed in range(3):
            writer = _written(row, seed, type_)
            text = "\n".join(line.text for line in writer.lines)
            assert all(re.search(rf"\b{name}\b", text) for name in row.names.split()), text
            judges = [(value.judge, value.array) for value in writer.values if value.judge is not None]
            judges += [(judge, writer.expected[name]) for name, judge in writer.judges.items()]
            assert judges
            for judge, array in judges:
                size = array.size
                bits = np.random.default_rng(seed).integers(0, 256, size * max(1, array.dtype.itemsize), np.uint8)
                other = bits.view(np.int8) & 1 if array.dtype.kind == "b" else bits.view(array.dtype)
                judged += size
                refused += int(np.count_nonzero(judge(other)))
    assert refused > 0.2 * judged, (refused, judged)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_is_what_is_computed(row: Row, seed: int, tmp_path: Path) -> None:
    """In one kernel, with arguments of each of its types."""

    def write(writer: Writer) -> None:
        with np.errstate(all="ignore"):
            for type_ in row.types:
                row.write(writer, dtype_of(type_))

    family = Family(row.definition, write, write, functions.FAMILY.functions, most_steps=0)
    outcome = run(family, seed, tmp_path)
    assert not outcome.fault, f"{outcome.fault}\n{outcome.source}"


def test_numbers_beside_a_bound() -> None:
    wanted = np.array([1.0, 1.0, np.inf, np.nan, 3.4028234e38, 0.0], np.longdouble)
    judge = judging.close([wanted], np.dtype("float32"), 1.0)
    right = np.array([1 + 2.0**-23, 1 - 2.0**-24, np.inf, np.nan, np.inf, 1e-45], np.float32)
    assert not judge(right).any()
    wrong = np.array([1 + 2.0**-22, np.nan, 3.4e38, 0, -np.inf, 3e-45], np.float32)
    assert judge(wrong).all()


@pytest.mark.parametrize(
    ("number", "dtype", "towards_zero", "want"),
    [
        (1 + 2.0**-4, "float8_e4m3fn", False, 1.0),
        (1 + 2.0**-4 + 2.0**-40, "float8_e4m3fn", False, 1.125),
        (1.99, "float8_e4m3fn", True, 1.875),
        (1e6, "float8_e4m3fn", False, 448.0),
        (np.inf, "float8_e5m2", False, 57344.0),
        (np.inf, "float8_e5m2", True, np.inf),
        (65520.0, "float16", False, np.inf),
        (65520.0, "float16", True, 65504.0),
        (2.0**-25, "float16", False, 0.0),
        (3 * 2.0**-25, "float16", False, 2.0**-23),
    ],
)
def test_rounding_to_a_format(number: float, dtype: str, towards_zero: bool, want: float) -> None:
    found = judging.rounded(np.array([number], np.longdouble), dtype_of(dtype), towards_zero)
    assert float(found[0]) == want


def test_the_family_draws_from_the_whole_table() -> None:
    drawn = set[str]()
    for seed in range(40):
        writer = Writer(random.Random(seed), np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            for _ in range(20):
                functions.FAMILY.step(writer)
        drawn |= set(re.findall(r"tl\.(\w+)\(", "\n".join(line.text for line in writer.lines)))
    named = {name for row in ROWS for name in row.names.split()} - OPTIONS
    assert len(named - drawn) < 5
