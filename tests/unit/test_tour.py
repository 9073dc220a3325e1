"""docs/internals/tour.md shows what the compiler makes of its kernel now."""

from docs.generate_tour import PAGE, page, without_places


def test_the_tour_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.generate_tour"


def test_places_are_left_out() -> None:
    text = '#loc = loc("/a/b.py":1:2)\n%0 = arith.addf %a, %b : f32 loc(#loc1)\nreturn loc("x"("/a/b.py":3:4))\n'
    assert without_places(text) == "%0 = arith.addf %a, %b : f32\nreturn"
