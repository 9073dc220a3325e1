"""Where the result of a loop is stored behind it, as far as that is known before the loop."""

from __future__ import annotations

from ...analysis.places import elementwise
from ...ttgir.ir import Operation, Value
from ...ttgir.operations import definition_of


def store_of(result: Value) -> Operation | None:
    """The ``tt.store`` that all elements of a loop's tensor go to, each by itself; None if they go anywhere else, too,
    or if it is in another block than the loop, where more can be known."""
    reached, waiting, store = {result}, [result], None
    while waiting:
        value = waiting.pop()
        for use in value.uses:
            if use.name == "tt.store" and store in (None, use) and use["ptr"] not in reached:
                store = use
            elif _keeps_places(use):
                new = [one for one in use.results if one not in reached]
                reached.update(new)
                waiting += new
            else:
                return None
    if store is None or store["value"] not in reached or store.optional("mask") in reached:
        return None
    if not isinstance(result.owner, Operation) or store.block is not result.owner.block:
        return None
    return store if store["ptr"].tensor.shape == result.tensor.shape else None


def _keeps_places(operation: Operation) -> bool:
    """Whether each element is computed from those at its place, and nothing else is done."""
    if operation.regions or definition_of(operation).effects:
        return False
    return operation.name == "ttg.convert_layout" or elementwise(operation)
