"""The search for an item that changes a value, on kernels that are wrong by a rule."""

from collections.abc import Callable, Collection

import pytest
from triton.backends.spirv.launching.values.bisection import Found, find

ITEMS = [f"item {number}" for number in range(61)]


class Kernel:
    """Wrong where ``wrong`` says so of the items that are on; refused where ``refused`` does."""

    def __init__(self, wrong: Callable[[set[str]], bool], refused: Callable[[set[str]], bool] = lambda on: False):
        self.wrong, self.refused, self.compiled = wrong, refused, 0

    def __call__(self, without: Collection[str]) -> bool | None:
        self.compiled += 1
        on = set(ITEMS) - set(without)
        return None if self.refused(on) else not self.wrong(on)


@pytest.mark.parametrize("number", range(61))
def test_one_item(number: int) -> None:
    kernel = Kernel(lambda on: ITEMS[number] in on)
    assert find(ITEMS, kernel) == Found(((ITEMS[number],),), True)
    assert kernel.compiled <= 7


def test_an_item_that_needs_another_before_it() -> None:
    kernel = Kernel(lambda on: {"item 5", "item 40"} <= on)
    assert find(ITEMS, kernel) == Found((("item 40",),), True)


def test_two_items_of_which_each_is_enough() -> None:
    kernel = Kernel(lambda on: bool({"item 12", "item 50"} & on))
    assert find(ITEMS, kernel).names == ("item 12", "item 50")
    assert find(ITEMS, kernel).right


def test_an_item_that_another_repairs_in_between() -> None:
    kernel = Kernel(lambda on: "item 3" in on and not ("item 20" in on and "item 50" not in on))
    found = find(ITEMS, kernel)
    assert found.right and found.names in (("item 3",), ("item 50",))


def test_what_stays_wrong_without_many_items() -> None:
    kernel = Kernel(lambda on: len(on) > 10)
    found = find(ITEMS, kernel)
    assert len(found.items) == 3 and found.right is False


def test_variants_that_cannot_be_compiled() -> None:
    some = Kernel(lambda on: "item 30" in on, lambda on: len(on) in (30, 31))
    assert find(ITEMS, some) == Found((("item 29", "item 30", "item 31"),), True)
    never = Kernel(lambda on: "item 30" in on, lambda on: 0 < len(on) < 61)
    assert find(ITEMS, never) == Found((tuple(ITEMS),), True)
    alone = Kernel(lambda on: "item 30" in on, lambda on: len(on) == 60 and "item 30" not in on)
    assert find(ITEMS, alone) == Found((("item 30",),), None)
