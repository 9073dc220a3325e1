"""Launches that are repeated by the shorter way: the kernel of Triton's own way, and that way where in doubt."""

import gc
import random
import weakref
from typing import Any

import numpy
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.runtime import from_numpy
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from tests.device.threads import together

if not hasattr(JITFunction, "relaunch"):
    pytest.skip("this triton lacks the patch 'relaunch'", allow_module_level=True)

_SIZE = 64


def _kernel(out_ptr, x_ptr, n, factor, BLOCK: tl.constexpr, MODE: tl.constexpr = "plus"):  # type: ignore[no-untyped-def]
    """out[i] = x[i] factor + n, or - n in any other mode, for i < BLOCK, of each program's BLOCK."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets).to(tl.float32)
    if MODE == "plus":
        tl.store(out_ptr + offsets, x * factor + n)
    else:
        tl.store(out_ptr + offsets, x * factor - n)


@pytest.fixture
def function() -> JITFunction[Any]:
    """The kernel, not launched yet."""
    return triton.jit(_kernel)


@pytest.fixture(scope="module")
def x() -> Any:
    return from_numpy(numpy.arange(4 * _SIZE, dtype=numpy.float32))


@pytest.fixture
def out() -> Any:
    return from_numpy(numpy.zeros(4 * _SIZE, numpy.float32))


def short(function: Any, *args: Any, grid: Any = (1,), **keywords: Any) -> Any:
    """The kernel of a launch by the shorter way; None if it is not taken, and nothing is launched."""
    return function.relaunch(function, grid, args, keywords)


def test_a_second_launch_takes_the_arguments_it_is_given(function: Any, x: Any, out: Any) -> None:
    assert function.relaunch is None
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    assert short(function, out, x, 7, 3.0, BLOCK=_SIZE) is kernel
    expected = numpy.zeros(4 * _SIZE, numpy.float32)
    expected[:_SIZE] = numpy.arange(_SIZE) * 3.0 + 7
    numpy.testing.assert_array_equal(out.to_numpy(), expected)
    other = from_numpy(numpy.zeros(2 * _SIZE, numpy.float32))
    assert function[(2,)](other, x, 9, 1.0, BLOCK=_SIZE) is kernel
    numpy.testing.assert_array_equal(other.to_numpy(), numpy.arange(2 * _SIZE) + 9)


#: A launch (out, x, 5, 2.0, BLOCK=64) with something else instead of an argument, or beside it.
_OTHER: dict[str, dict[str, Any]] = {
    "the constant one": {"n": 1},
    "a multiple of 16": {"n": 32},
    "a 64-bit integer": {"n": 1 << 40},
    "an unsigned integer": {"n": (1 << 64) - 1},
    "a float": {"n": 5.0},
    "a bool": {"n": True},
    "a size that equals another type's": {"factor": 2},
    "another constant": {"BLOCK": 32},
    "another default": {"MODE": "minus"},
    "the default, by name": {"MODE": "plus"},
    "an option": {"num_warps": 2},
    "debug": {"debug": True},
}


def _arguments(out: Any, x: Any, **changed: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    named = {"n": 5, "factor": 2.0, "BLOCK": _SIZE, **changed}
    return (out, x, named.pop("n"), named.pop("factor")), named


@pytest.mark.parametrize("changed", _OTHER.values(), ids=_OTHER.keys())
def test_what_is_specialised_otherwise_goes_tritons_way(
    function: Any, x: Any, out: Any, changed: dict[str, Any]
) -> None:
    args, keywords = _arguments(out, x)
    first = function[(1,)](*args, **keywords)
    args, keywords = _arguments(out, x, **changed)
    assert short(function, *args, **keywords) is None
    kernel = function[(1,)](*args, **keywords)
    assert (kernel is first) == ("MODE" in changed and changed["MODE"] == "plus")
    assert function[(1,)](*args, **keywords) is kernel


@pytest.mark.parametrize("part", [slice(1, None), slice(4, None)])
def test_alignment_is_looked_at(function: Any, x: Any, out: Any, part: slice) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    aligned = part.start % 4 == 0
    assert short(function, out, x[part], 5, 2.0, BLOCK=_SIZE) is (kernel if aligned else None)
    function[(1,)](out, x[part], 5, 2.0, BLOCK=_SIZE)
    numpy.testing.assert_array_equal(out.to_numpy()[:_SIZE], (numpy.arange(_SIZE) + part.start) * 2 + 5)


def test_element_types_are_looked_at(function: Any, x: Any, out: Any) -> None:
    function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    halves = from_numpy(numpy.arange(_SIZE).astype(numpy.float16))
    assert short(function, out, halves, 5, 2.0, BLOCK=_SIZE) is None
    for _ in range(2):
        function[(1,)](out, halves, 5, 2.0, BLOCK=_SIZE)
        numpy.testing.assert_array_equal(out.to_numpy()[:_SIZE], numpy.arange(_SIZE) * 2 + 5)


def test_equal_text_is_the_same_constant(function: Any, x: Any, out: Any) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE, MODE="minus")
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE, MODE="".join(["mi", "nus"])) is kernel
    assert short(function, out, x, 5, 2.0, MODE="minus", BLOCK=_SIZE) is None, "keywords in another order are not known"


@pytest.mark.parametrize(
    "grid", [(2,), [2], (2, 1), (2, 1, 1), (numpy.int64(2),), lambda meta: (2 * _SIZE // meta["BLOCK"],)]
)
def test_grids(function: Any, x: Any, out: Any, grid: Any) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    assert short(function, out, x, 6, 2.0, BLOCK=_SIZE, grid=grid) is kernel
    numpy.testing.assert_array_equal(
        out.to_numpy()[: 3 * _SIZE], [*(numpy.arange(2 * _SIZE) * 2 + 6), *numpy.zeros(_SIZE)]
    )


def test_a_grid_function_gets_all_arguments_in_their_order(function: Any, x: Any, out: Any) -> None:
    asked: list[dict[str, Any]] = []
    function[(1,)](out, x, 5, factor=2.0, BLOCK=_SIZE)

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        asked.append(meta)
        return (1,)

    for relaunch in (function.relaunch, None):
        function.relaunch = relaunch
        function[grid](out, x, 5, factor=2.0, BLOCK=_SIZE)
    assert list(asked[0].items()) == list(asked[1].items())
    assert list(asked[0]) == ["out_ptr", "x_ptr", "n", "factor", "BLOCK", "MODE"] and asked[0]["MODE"] == "plus"


def test_errors_are_those_of_tritons_way(function: Any, x: Any, out: Any) -> None:
    function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    limit = 1 << 33
    for grid, args in [
        ((limit,), (out, x, 5, 2.0)),
        ((-1,), (out, x, 5, 2.0)),
        ((), (out, x, 5, 2.0)),
        (lambda meta: (meta["BLOK"],), (out, x, 5, 2.0)),
        (lambda meta: ({}["mine"],), (out, x, 5, 2.0)),
        ((1,), (out, object(), 5, 2.0)),
        ((1,), (out, x, 1 << 70, 2.0)),
        ((1,), (out, x, numpy.int32(5), 2.0)),
    ]:
        told = []
        for relaunch in (function.relaunch, None):
            function.relaunch = relaunch
            with pytest.raises(Exception) as raised:  # compared below
                function[grid](*args, BLOCK=_SIZE)
            told.append((raised.type, str(raised.value)))
        assert told[0] == told[1]
        function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)


def test_an_empty_grid_is_no_launch(function: Any, x: Any, out: Any) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    assert short(function, out, x, 6, 2.0, BLOCK=_SIZE, grid=(0,)) is kernel
    numpy.testing.assert_array_equal(out.to_numpy()[:_SIZE], numpy.arange(_SIZE) * 2 + 5)


def test_hooks_are_called(function: Any, x: Any, out: Any) -> None:
    told: list[Any] = []

    def launch(name: str) -> None:
        function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
        told.append(name)

    launch("none")
    enter, leave = (lambda metadata: told.append("enter")), (lambda metadata: told.append("leave"))
    knobs.runtime.launch_enter_hook.add(enter)
    launch("enter")
    knobs.runtime.launch_exit_hook.add(leave)
    knobs.runtime.launch_enter_hook.remove(enter)
    launch("leave")
    knobs.runtime.launch_exit_hook.remove(leave)
    function.add_pre_run_hook(lambda *args, **keywords: told.append("before"))
    launch("before")
    assert told == ["none", "enter", "enter", "leave", "leave", "before", "before"]


def test_knobs_are_looked_at(function: Any, x: Any, out: Any) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    with knobs.runtime.scope():
        knobs.runtime.debug = not knobs.runtime.debug
        assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is None
        debugged = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    assert debugged is not kernel
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is kernel
    function.debug = True
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is debugged
    with knobs.runtime.scope():
        knobs.runtime.add_stages_inspection_hook = lambda *stages: ("key", "hash")
        assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is None


_shift = tl.constexpr(3)


@triton.jit
def _shifted(out_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK) + _shift)


def test_a_changed_global_is_an_error(out: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _shifted[(1,)](out, BLOCK=_SIZE)
    assert short(_shifted, out, BLOCK=_SIZE) is kernel
    monkeypatch.setitem(globals(), "_shift", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="Global variable _shift has changed"):
        _shifted[(1,)](out, BLOCK=_SIZE)


def test_a_kernel_that_left_the_cache_is_compiled_again(function: Any, x: Any, out: Any) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    function.device_caches.clear()
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is None
    again = function[(1,)](out, x, 6, 2.0, BLOCK=_SIZE)
    assert again is not kernel and short(function, out, x, 6, 2.0, BLOCK=_SIZE) is again


class _Other:
    """Another driver, which cannot even be asked for its device."""


def test_another_active_driver_gets_no_launch(function: Any, x: Any, out: Any) -> None:
    kernel = function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    active = driver.active
    driver.set_active(_Other())  # type: ignore[arg-type]
    try:
        assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is None
    finally:
        driver.set_active(active)
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is kernel


@triton.jit
def _tuples(out_ptr, pair, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK) * pair[0] + pair[1])


@triton.jit
def _any_number(out_ptr, BLOCK: tl.constexpr, *numbers):  # type: ignore[no-untyped-def]
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK) + numbers[0])


def test_what_is_not_compared_is_not_remembered(out: Any) -> None:
    for numbers in [(2, 3), (2, 1), (5, 3), (1, 3)]:
        for _ in range(2):
            _tuples[(1,)](out, numbers, BLOCK=_SIZE)
            numpy.testing.assert_array_equal(out.to_numpy()[:_SIZE], numpy.arange(_SIZE) * numbers[0] + numbers[1])
            _any_number[(1,)](out, _SIZE, numbers[1])
            numpy.testing.assert_array_equal(out.to_numpy()[:_SIZE], numpy.arange(_SIZE) + numbers[1])
    assert short(_tuples, out, (2, 3), BLOCK=_SIZE) is None
    assert short(_any_number, out, _SIZE, 3) is None


def test_random_calls_get_the_kernels_of_tritons_way(x: Any, out: Any) -> None:
    """Two functions of one source: one may take the shorter way, one never does."""
    choose = random.Random(0)
    quick, plain = triton.jit(_kernel), triton.jit(_kernel)
    inputs = [
        x,
        x[1:],
        x[16:],
        from_numpy(numpy.arange(_SIZE, dtype=numpy.int32)),
        from_numpy(numpy.arange(_SIZE, dtype=numpy.float16)),
    ]
    taken = 0
    for _ in range(400):
        given = choose.choice(inputs)
        args, keywords = _arguments(
            out, given, n=choose.choice([0, 1, 2, 17, -16, 1 << 33]), factor=choose.choice([2.0, 0.5]), BLOCK=_SIZE
        )
        if choose.random() < 0.3:
            keywords["MODE"] = choose.choice(["plus", "minus"])
        if choose.random() < 0.2:
            keywords["num_warps"] = choose.choice([1, 2])
        if choose.random() < 0.3:
            args, keywords = args[:3], {"factor": args[3], **keywords}
        results = []
        for function in (quick, plain):
            plain.relaunch = None
            out.fill(0)
            before = function.relaunch is not None and short(function, *args, **keywords)
            taken += bool(before)
            kernel = function[(1,)](*args, **keywords)
            assert before in (False, None, kernel)
            results.append((kernel.hash, out.to_numpy().tolist()))
        assert results[0] == results[1], (args, keywords)
    assert taken > 50


def test_many_threads(x: Any) -> None:
    function = triton.jit(_kernel)

    def work(number: int) -> None:
        mine = from_numpy(numpy.zeros(_SIZE, numpy.float32))
        for turn in range(100):
            n = (number * 7 + turn) % 40
            function[(1,)](mine, x, n, 2.0, BLOCK=_SIZE)
            assert (mine.to_numpy() == numpy.arange(_SIZE) * 2 + n).all(), (number, turn)

    together(work, range(4))


def test_functions_are_collected(x: Any, out: Any) -> None:
    function: Any = triton.jit(_kernel)
    kernel = weakref.ref(function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE))
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is kernel()
    # Triton itself keeps each function by its name, for constants of other kernels.
    from triton.runtime import jit

    jit._triton_jit_function_registry.pop(f"{__name__}:_kernel")
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None and kernel() is None


def test_remembering_ends_where_calls_never_repeat(function: Any, x: Any, out: Any) -> None:
    function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    relaunch = function.relaunch
    while not relaunch.gave_up:
        relaunch.add(device=0, key="another", positions=0, keywords=(), sources=[], parameters=[], options=[], knobs=())
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is None, "only the latest are kept"
    function[(1,)](out, x, 5, 2.0, BLOCK=_SIZE)
    assert short(function, out, x, 5, 2.0, BLOCK=_SIZE) is None
    numpy.testing.assert_array_equal(out.to_numpy()[:_SIZE], numpy.arange(_SIZE) * 2 + 5)
