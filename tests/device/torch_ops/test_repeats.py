"""Calls that are repeated give what they give anew, wherever their tensors are."""

import random

import pytest

from . import repeats
from .op_database import entries

#: How many samples of some; ``python -m tests.device.torch_ops.repeats`` runs all.
_SOME = {"vstack": 2, "add": 1, **dict.fromkeys(random.Random(1).sample(sorted(entries()), 6), 1)}


@pytest.mark.parametrize("compiled", [False, True], ids=["as it is", "compiled"])
@pytest.mark.parametrize(("name", "some"), _SOME.items())
def test_repeated_calls_are_like_new_ones(name: str, some: int, compiled: bool, request: pytest.FixtureRequest) -> None:
    if compiled:
        request.getfixturevalue("compiled")
    found = [one for family in ("float32", "int64") for one in repeats.problems(entries()[name], family, some)]
    assert not [one for one in found if one.startswith("repeated")]
