"""Which launches wait for each other's copies."""

import threading

import pytest
from triton.backends.spirv.runtime.memory.host_memory import Claims, HostRange


def _passes(claims: Claims, *spans: HostRange) -> bool:
    """Whether another thread gets the ranges at once."""
    passed = threading.Event()

    def claim() -> None:
        with claims.claim(spans):
            passed.set()

    thread = threading.Thread(target=claim, daemon=True)
    thread.start()
    at_once = passed.wait(0.2)
    return at_once


@pytest.mark.parametrize(
    ("held", "wanted", "passes"),
    [
        (HostRange(0, 10, True), HostRange(9, 20, False), False),
        (HostRange(0, 10, False), HostRange(0, 10, True), False),
        (HostRange(5, 10, True), HostRange(0, 20, True), False),
        (HostRange(0, 10, True), HostRange(10, 20, True), True),
        (HostRange(10, 20, True), HostRange(0, 10, True), True),
        (HostRange(0, 10, False), HostRange(0, 10, False), True),
    ],
)
def test_written_ranges_are_one_threads(held: HostRange, wanted: HostRange, passes: bool) -> None:
    claims = Claims()
    with claims.claim([held]):
        assert _passes(claims, wanted) == passes
        with claims.claim([wanted]):  # of the same thread: a handler
            pass
    assert _passes(claims, wanted)


def test_ranges_are_given_back_after_an_error() -> None:
    claims = Claims()
    with pytest.raises(ValueError, match="wrong"), claims.claim([HostRange(0, 10, True)]):
        raise ValueError("wrong")
    assert _passes(claims, HostRange(0, 10, True))


def test_all_ranges_or_none() -> None:
    """Two launches that want each other's ranges do not wait for ever."""
    claims = Claims()
    spans = [HostRange(0, 10, True), HostRange(20, 30, True)]
    done = threading.Barrier(3)

    def work(order: list[HostRange]) -> None:
        for _ in range(200):
            with claims.claim(order):
                pass
        done.wait(20)

    for order in (spans, spans[::-1]):
        threading.Thread(target=work, args=(order,), daemon=True).start()
    done.wait(20)
