"""The words of kernels before and after a change: what is other is shown."""

from pathlib import Path

import torch
import triton
import triton.language as tl

from tests.fuzz.running import driver_traits
from tests.replay import CORPUS, differences, recorded


def sines(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.sin(tl.load(x_ptr + at)))


def _words(**traits: int) -> dict[str, str]:
    with recorded() as words, driver_traits(traits):
        triton.jit(sines)[(1,)](torch.zeros(256), BLOCK=256, num_warps=1)
    return dict(words)


def test_words_that_change_are_shown() -> None:
    first = _words()
    assert len(first) == 1 and first == _words() and not differences(first, _words())
    (line,) = differences(_words(unrolled_elementwise=1 << 20), _words(unrolled_elementwise=1))
    assert line.startswith("sines ") and " → " in line
    assert differences(first, {}) == ["1 kernels are compiled in one of the runs alone"]


def test_the_corpus_is_there() -> None:
    root = Path(__file__).parents[2]
    assert [one for one in CORPUS if not list(root.glob(one))] == []
