"""A launch that is waited for, or a copy to the host, that is like an earlier one has the commands of that one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime import buffer as buffers
from triton.backends.spirv.runtime.context import Context

from tests.device.processes import run_script

_TELLING = """
native = current().native
x = [buffers.zeros(64, "float32") for _ in range(3)]
one = buffers.full(64, 1, "float32")
add = load()
def waited(*args):
    add(*args)
    native.synchronize()
native.synchronize()
time.sleep(0.01)
waited((3, 1, 1), x[0], one, x[0], 0)  # behind which the next command buffer is begun
os.environ["FAULTY_TELL"] = "2"
def heading(text):
    print(text, flush=True)
"""


def _begun(script: str, module: Path, layer: dict[str, str]) -> list[tuple[str, int]]:
    """What the script prints, and how many command buffers were begun behind each line of it."""
    script = _TELLING + script + '\nheading("end")\nos.environ["FAULTY_TELL"] = "0"\n'
    done = run_script(script, module, TRITON_SPIRV_VALIDATE="0", FAULTY_TELL="0", **layer)
    assert done.returncode == 0, done.stderr
    told: list[tuple[str, int]] = []
    for line in done.stdout.splitlines():
        if line != "begun":
            told.append((line, 0))
        elif told:
            told[-1] = (told[-1][0], told[-1][1] + 1)
    return told[:-1]


def test_it_is_not_recorded_again(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
heading("first")
for target in x:
    waited((1, 1, 1), target, one, target, 64)
heading("again")
for _ in range(50):
    for target in x:
        waited((1, 1, 1), target, one, target, 64)
heading("another grid")
waited((2, 1, 1), x[0], one, x[0], 64)
heading("another number")
waited((1, 1, 1), x[0], one, x[0], 63)
heading("results")
os.environ["FAULTY_TELL"] = "0"
print([sorted(set(target.to_numpy().tolist())) for target in x])
"""
    assert _begun(script, add_file, faulty_layer) == [
        ("first", 3),
        ("again", 0),
        ("another grid", 1),
        ("another number", 1),
        ("results", 0),
        ("[[52.0, 53.0], [51.0], [51.0]]", 0),
    ]


def test_the_next_command_buffer_is_begun_in_the_wait(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """Where the launch had to be recorded, so that the next one may have to be, too."""
    script = """
for turn in range(3):
    heading("launch")
    add((1, 1, 1), x[turn], one, x[turn], 64)
    heading("wait")
    native.synchronize()
heading("two launches and a copy")
add((1, 1, 1), x[0], one, x[1], 64)
add((1, 1, 1), x[1], one, x[2], 64)
x[0].copy_from(x[2])
os.environ["FAULTY_TELL"] = "0"
print([set(values.to_numpy().tolist()) for values in x])
"""
    told = _begun(script, add_file, faulty_layer)
    assert told[:6] == [("launch", 0), ("wait", 1)] * 3
    assert told[-1] == ("[{3.0}, {2.0}, {3.0}]", 0)


def test_launches_in_a_row_are_recorded(add_file: Path, faulty_layer: dict[str, str]) -> None:
    """A command buffer that took another launch before it was handed over does not belong to a single launch."""
    script = """
for _ in range(40):
    for _ in range(5):
        add((1, 1, 1), x[0], one, x[0], 64)
    native.synchronize()
for _ in range(3):
    waited((1, 1, 1), x[0], one, x[0], 64)
os.environ["FAULTY_TELL"] = "0"
print(set(x[0].to_numpy().tolist()))
"""
    assert _begun(script, add_file, faulty_layer)[-1] == ("{203.0}", 0)


def test_a_pipeline_that_is_gone_is_forgotten(add_file: Path) -> None:
    """Its handle becomes another kernel's, which it does as often as memory that was freed is given out again."""
    script = """
add_opcode, multiply_opcode = (bytes([opcode, 0, 5, 0]) for opcode in (129, 133))
assert module.count(add_opcode) == 1
codes = {7: module, 10: module.replace(add_opcode, multiply_opcode)}
two, five, z = (buffers.full(64, value, "float32") for value in (2, 5, 0))
launch = make_launcher(current(), "test", ADD, indirect=False)
owners, again, wrong = {}, 0, []
for turn in range(1000):
    result = (7, 10)[turn % 3 == 0]
    kernel = Kernel(current(), "test", codes[result])
    again += owners.get(kernel.handle, result) != result
    owners[kernel.handle] = result
    for _ in range(2):
        launch(1, 1, 1, 0, kernel.handle, None, None, None, None, two, five, z, 64)
        current().native.synchronize()
    if set(z.to_numpy().tolist()) != {result}:
        wrong.append(turn)
    kernel.unload()
    if again == 5:
        break
print(again, wrong)
"""
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0")
    assert (done.stdout, done.stderr) == ("5 []\n", "")


def test_forgetting_a_pipeline(add_file: Path, faulty_layer: dict[str, str]) -> None:
    script = """
kernel = Kernel(current(), "test", module)
launch = make_launcher(current(), "test", ADD, indirect=False)
def waited(pipeline=kernel.handle):
    launch(1, 1, 1, 0, pipeline, None, None, None, None, x[0], one, x[0], 64)
    native.synchronize()
heading("first")
waited()
heading("again")
waited()
heading("forgotten")
native.forget(kernel.handle)
waited()
"""
    first, *others = _begun(script, add_file, faulty_layer)
    assert first in (("first", 1), ("first", 2))  # one more where the driver compiled at a launch of nothing before it
    assert others == [("again", 0), ("forgotten", 1)]


@pytest.mark.parametrize("indirect", [False, True])
def test_each_has_its_own_arguments(
    launchable: Callable[..., Any], word_module: Callable[[int, bool], bytes], context: Context, indirect: bool
) -> None:
    """An indirect launch has the commands of an earlier one, and its arguments in the buffer that those name."""
    entries = [((0,), "out", "*u32"), *(((1 + index,), f"a{index}", "i32") for index in range(6))]
    kernel = launchable(word_module(8, indirect), entries, indirect=indirect)
    out = [buffers.zeros(8, "uint32", context) for _ in range(2)]
    for turn in range(300):
        values = [turn % 7 + index for index in range(6)]
        kernel((8,), out[turn % 2], *values)
        context.native.synchronize()
        assert out[turn % 2].to_numpy()[2:].tolist() == values
    kernel.kernel.unload()


def test_many_threads_that_wait(add_file: Path) -> None:
    """Other threads' launches join the launches of one thread between recording and hand-over."""
    script = """
from tests.device.threads import together
add = load()
one = buffers.full(64, 1, "float32")
totals = [buffers.zeros(64, "float32") for _ in range(6)]
def work(total):
    for turn in range(400):
        add((1, 1, 1), total, one, total, 64)
        current().native.synchronize()
        if turn % 40 == 0:
            assert (total.to_numpy() == turn + 1).all()
together(work, totals)
print({value for total in totals for value in total.to_numpy().tolist()})
"""
    done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="0")
    assert (done.stdout, done.stderr) == ("{400.0}\n", "")


def test_one_that_another_array_follows(add: Any, context: Context) -> None:
    """Memory that was freed and given to another array: the addresses are the same, and so are the commands."""
    for turn in range(60):
        x, y = (buffers.from_numpy(numpy.full(64, turn + index, numpy.float32), context) for index in range(2))
        z = buffers.zeros(64, "float32", context)
        add((1,), x, y, z, 64)
        assert (z.to_numpy() == 2 * turn + 1).all()
        del x, y, z
