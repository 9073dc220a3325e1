"""Events that take the device's time, and the queries that they have."""

from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.runtime import buffer as buffers
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.streams import DeviceInterface

from tests.device.processes import run_script

_BLOCK = 64


def _launch(add: Any, context: Context, n: int = 1 << 20) -> None:
    x, z = buffers.full(n, 1, "float32", context), buffers.zeros(n, "float32", context)
    add((-(-n // _BLOCK),), x, z, z, n)


def test_an_event_that_is_recorded_again_moves(add: Any, context: Context) -> None:
    if context is not current():
        return  # events are the current context's
    start, end = (DeviceInterface().Event(enable_timing=True) for _ in range(2))
    start.record()
    _launch(add, context)
    end.record()
    assert start.elapsed_time(end) > 0
    _launch(add, context)
    start.record()
    assert end.elapsed_time(start) > 0
    _launch(add, context)
    end.record()
    assert start.elapsed_time(end) > 0


def test_more_events_than_a_pool_has(add: Any, context: Context) -> None:
    """Those that are held keep their times while others come and go."""
    if context is not current():
        return
    held = []
    for _ in range(300):
        event = DeviceInterface().Event(enable_timing=True)
        event.record()
        _launch(add, context, _BLOCK)
        held.append(event)
        DeviceInterface().Event(enable_timing=True).record()
    times = [before.elapsed_time(after) for before, after in zip(held, held[1:], strict=False)]
    assert min(times) > 0
    assert held[0].elapsed_time(held[-1]) == pytest.approx(sum(times))


def test_a_query_is_reset_once_it_was_written(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """While none of the work is seen to end, each event that comes and goes has another query."""
    script = """
native, module_ = current().native, current().native_module
def record(count):
    for _ in range(count):
        module_.Event(native, True).record()
native.synchronize()
os.environ["FAULTY_TELL"] = os.environ["FAULTY_PENDING"] = "1"
record(300)
os.environ["FAULTY_PENDING"] = "0"
native.synchronize()
for _ in range(6):
    record(100)
    native.synchronize()
os.environ["FAULTY_TELL"] = "0"
"""
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0", FAULTY_PENDING="0", **faulty_layer)
    told = [line for line in done.stdout.splitlines() if line.startswith("query ")]
    assert len(told) == 900, done.stderr
    assert len(set(told[:300])) == 300
    assert len(set(told)) == 512
