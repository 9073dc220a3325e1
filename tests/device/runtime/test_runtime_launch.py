"""Launches of hand-written kernels, each with every way for host memory."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy
import pytest
import torch
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.vulkan.loader import Chain, vulkan


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1003, 100_003])
def test_add_numpy(add: Any, make_padded: Callable[..., Any], view: Any, n: int) -> None:
    random = numpy.random.default_rng(n)
    x, y = random.standard_normal(n, numpy.float32), random.standard_normal(n, numpy.float32)
    whole, z = make_padded(numpy.zeros(n, numpy.float32), before=8)
    add((-(-n // 64),), view(x), view(y), view(z), n)
    numpy.testing.assert_array_equal(z, x + y)
    assert (whole[:8] == -7).all() and (whole[8 + n :] == -7).all()


@pytest.mark.parametrize("offset", [1, 3, 5])
def test_misaligned_pointers(add: Any, offset: int) -> None:
    base = torch.full((3, 300), -7.0)
    x, y, z = (row[offset : offset + 201] for row in base)
    x.copy_(torch.rand(201))
    y.copy_(torch.rand(201))
    before = base.clone()
    add((4,), x, y, z, 201)
    torch.testing.assert_close(z, x + y, rtol=0, atol=0)
    before[2, offset : offset + 201] = z
    torch.testing.assert_close(base, before, rtol=0, atol=0)


def test_aliasing_arguments_share_memory(add: Any, view: Any) -> None:
    """z overlaps x: the kernel must see one memory, not two copies of which the last wins."""
    memory = numpy.arange(256, dtype=numpy.float32)
    ones = numpy.ones(64, numpy.float32)
    add((1,), view(memory[:64]), view(ones), view(memory[:64]), 64)
    numpy.testing.assert_array_equal(memory[:64], numpy.arange(64) + 1)
    numpy.testing.assert_array_equal(memory[64:], numpy.arange(64, 256))


def test_negative_strides_and_read_only_arrays(add: Any, view: Any) -> None:
    memory = numpy.arange(64, dtype=numpy.float32)
    backwards = memory[::-1]
    constant = numpy.full(64, 2, numpy.float32)
    constant.flags.writeable = False
    z = numpy.zeros(65, numpy.float32)
    # A pointer to the last element of `memory`: the kernel reads it and, masked, nothing past it.
    add((1,), view(backwards), view(constant), view(z), 1)
    assert z[0] == 63 + 2
    assert (constant == 2).all()


def test_empty_tensors_and_zero_grid(add: Any, view: Any) -> None:
    empty = numpy.zeros(0, numpy.float32)
    add((1,), view(empty), torch.zeros(0), view(empty), 0)
    z = numpy.zeros(64, numpy.float32)
    one = numpy.ones(64, numpy.float32)
    calls: list[str] = []
    for grid in [(0, 1, 1), (1, 0, 1), (1, 1, 0)]:
        hooks = (lambda _: calls.append("enter"), lambda _: calls.append("exit"))
        add(grid, view(one), view(one), view(z), 64, hooks=hooks)
    assert (z == 0).all()
    assert calls == ["enter", "exit"] * 3


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("past", ["by one", "32 bits", "64 bits"])
def test_grid_past_the_limit_is_refused(add: Any, context: Any, view: Any, axis: int, past: str) -> None:
    """One error, which names the kernel, the axis, its size and the device's limit; nothing runs, no hook is called."""
    limits = _grid_limits(context)
    size = {"by one": limits[axis] + 1, "32 bits": 2**32, "64 bits": 2**80}[past]
    grid = [1, 2, 3]
    grid[axis] = size
    one = numpy.ones(64, numpy.float32)
    calls: list[str] = []
    with pytest.raises(ValueError) as raised:
        add(grid, view(one), view(one), view(one), 64, hooks=(calls.append, calls.append))
    message = str(raised.value)
    assert message.startswith(
        f"kernel 'test': the grid size of axis {axis}, {size}, is past the device's limit of {limits[axis]}"
    )
    assert (one == 1).all() and not calls


def test_grid_with_the_largest_size_of_an_axis(add: Any, context: Any, view: Any) -> None:
    """The limit itself is accepted: with another axis of size 0, nothing has to run."""
    one = numpy.ones(64, numpy.float32)
    for axis, limit in enumerate(_grid_limits(context)):
        grid = [0, 0, 0]
        grid[axis] = limit
        add(grid, view(one), view(one), view(one), 64)
    assert (one == 1).all()


def test_grid_that_is_no_grid_is_refused(add: Any, view: Any) -> None:
    one = numpy.ones(64, numpy.float32)
    arguments = view(one), view(one), view(one), 64
    for axis in range(3):
        grid: list[Any] = [1, 1, 1]
        grid[axis] = -1
        with pytest.raises(ValueError, match=f"kernel 'test': the grid size of axis {axis} is negative"):
            add(grid, *arguments)
        grid[axis] = 1.5
        with pytest.raises(TypeError):
            add(grid, *arguments)
    assert (one == 1).all()


def _grid_limits(context: Any) -> list[int]:
    """The most programs on each axis of the device's: Vulkan calls them maxComputeWorkGroupCount."""
    if context.device.api == "CPU":
        return [2**31 - 1] * 3
    properties = Chain(("VkPhysicalDeviceProperties2",))
    vulkan().lib.vkGetPhysicalDeviceProperties2(context.device.handle, properties.head)
    return list(properties["VkPhysicalDeviceProperties2"].properties.limits.maxComputeWorkGroupCount)


def test_launch_metadata_tells_the_way(add: Any, context: Any, view: Any) -> None:
    one = numpy.ones(64, numpy.float32)
    metadata = SimpleNamespace(data={})
    add((1,), view(one), view(one), view(one), 64, launch_metadata=metadata, hooks=(lambda metadata: None, None))
    assert metadata.data["transfers"] == dict.fromkeys("xyz", context.host_memory)
    assert add.launcher.transfers == dict.fromkeys("xyz", context.host_memory)


class _Asked:
    """An argument that counts how often it is asked for its value."""

    def __init__(self, told: Any) -> None:
        self.told, self.times = told, 0

    def data_ptr(self) -> int:
        self.times += 1
        return int(self.told.data_ptr())

    def storage(self) -> Any:
        return self.told.storage()

    def __index__(self) -> int:
        self.times += 1
        return int(self.told)


def test_arguments_are_packed_once(add: Any, view: Any) -> None:
    one, z = numpy.ones(64, numpy.float32), numpy.zeros(64, numpy.float32)
    arguments = [_Asked(told) for told in (view(one), view(one), view(z), 64)]
    add((1,), *arguments)
    assert (z == 2).all() and [argument.times for argument in arguments] == [1] * 4


def test_only_written_arguments_are_copied_back(launchable: Any, context: Any, add_module: bytes, view: Any) -> None:
    """`written` names a wrong argument here, so that it shows: nothing comes back where copies are made."""
    entries = [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")]
    add = launchable(add_module, entries, written=["x"])
    one, z = numpy.ones(64, numpy.float32), numpy.zeros(64, numpy.float32)
    add((1,), view(one), view(one), view(z), 64)
    assert (z == (0 if context.host_memory == "staged" else 2)).all()


_BAD = [
    (2, None, TypeError, r"argument 'z' \(\*fp32\): a tensor is needed, not None"),
    (0, "text", TypeError, r"argument 'x' \(\*fp32\): a tensor .* is needed, not str"),
    (0, numpy.zeros(4, numpy.float32), TypeError, r"argument 'x' .* not numpy.ndarray"),
    (1, torch.zeros(4, dtype=torch.float64), TypeError, r"argument 'y' .* elements of type fp32, not torch.float64"),
    (1, torch.zeros(4, device="meta"), ValueError, r"argument 'y' .* on device 'meta', where tensors have"),
    (3, 1.5, TypeError, r"argument 'n' \(i32\): an integer is needed, not float"),
    (3, 2**31, OverflowError, r"argument 'n' \(i32\): 2147483648 does not fit"),
    (3, -(2**70), OverflowError, r"argument 'n' \(i32\): -\d+ does not fit"),
    (3, None, TypeError, r"argument 'n' \(i32\): an integer is needed, not NoneType"),
]


@pytest.mark.parametrize(("position", "value", "error", "message"), _BAD)
def test_bad_argument_is_named(add: Any, position: int, value: Any, error: type[Exception], message: str) -> None:
    arguments: list[Any] = [torch.zeros(64), torch.zeros(64), torch.zeros(64), 64]
    arguments[position] = value
    with pytest.raises(error, match=message):
        add((1,), *arguments)


def test_missing_argument_is_named(add: Any) -> None:
    with pytest.raises(TypeError, match=r"argument 'n' \(i32\) was not passed"):
        add((1,), torch.zeros(64), torch.zeros(64), torch.zeros(64))


@pytest.mark.parametrize("indirect", [False, True])
def test_argument_block(launchable: Any, word_module: Any, view: Any, indirect: bool) -> None:
    """The block as a kernel sees it: every type, in declaration order, naturally aligned."""
    values = [
        ("i1", True, 1),
        ("i8", -2, 1),
        ("u8", 200, 1),
        ("i16", -300, 2),
        ("u16", 65535, 2),
        ("fp16", 1.5, 2),
        ("bf16", -2.5, 2),
        ("i32", -5, 4),
        ("u32", 2**32 - 1, 4),
        ("fp32", 0.1, 4),
        ("i64", -(2**63), 8),
        ("u64", 2**64 - 1, 8),
        ("fp64", 0.1, 8),
        ("u1", 0, 1),
    ]
    dtypes = {"i1": "u1", "u1": "u1", "fp16": "f2", "bf16": ml_dtypes.bfloat16, "fp32": "f4", "fp64": "f8"}
    block, expected_offsets = bytearray(8), []
    for type_, value, size in values:
        block.extend(b"\0" * (-len(block) % size))
        expected_offsets.append(len(block))
        block += numpy.array(value, dtypes.get(type_, type_[0] + str(size))).tobytes()
    block.extend(b"\0" * (-len(block) % 4))
    count = len(block) // 4
    entries = [((0,), "out", "*u32")]
    entries += [((index,), f"a{index}", type_) for index, (type_, _, _) in enumerate(values, start=1)]
    kernel = launchable(word_module(count, indirect), entries, indirect=indirect)
    out = numpy.zeros(count, numpy.uint32)
    kernel((count,), view(out), *(value for _, value, _ in values))
    assert out[2:].tobytes() == bytes(block[8:])


def test_indirect_arguments_past_the_push_constant_limit(
    launchable: Any, context: Any, word_module: Any, view: Any
) -> None:
    count = 100
    entries = [((0,), "out", "*u32")] + [((index + 1,), f"a{index}", "i32") for index in range(count - 2)]
    if context.capabilities.push_constant_bytes < 400:
        refused = "400 bytes of arguments, more than the device's .* compile it with indirect"
        with pytest.raises(ValueError, match=refused):
            launchable(word_module(count, True), entries, indirect=False)
    kernel = launchable(word_module(count, True), entries, indirect=True)
    for start in (0, 1000):
        out = numpy.zeros(count, numpy.uint32)
        kernel((count,), view(out), *range(start, start + count - 2))
        assert out[2:].tolist() == list(range(start, start + count - 2))


@pytest.mark.parametrize("words", [16, 48])
def test_each_invocation_has_its_own_part_of_what_a_pointer_points_to(
    launchable: Any, word_module: Any, view: Any, words: int
) -> None:
    entries = [((0,), "out", "*u32")] + [((index + 1,), f"a{index}", "i32") for index in range(words - 2)]
    kernel = launchable(word_module(words, True, 16), entries, indirect=True)
    out = numpy.zeros(words + 16, numpy.uint32)
    kernel((words // 16,), view(out), *range(7, words + 5))
    assert out[2:].tolist() == [*range(7, words + 5)] + [0] * 16


def test_nested_tuples(launchable: Any, add_module: bytes, view: Any) -> None:
    kernel = launchable(
        add_module,
        [((0, 0), "xy[0]", "*fp32"), ((0, 1, 0), "xy[1][0]", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")],
    )
    one, z = numpy.ones(64, numpy.float32), numpy.zeros(64, numpy.float32)
    kernel((1,), (view(one), (view(one),)), "a constexpr", view(z), 64)
    assert (z == 2).all()
    with pytest.raises(TypeError, match=r"argument 'xy\[1\]\[0\]' .* was not passed"):
        kernel((1,), (view(one), ()), "a constexpr", view(z), 64)


def test_cpu_device_is_zero_copy() -> None:
    context = current()
    assert context.host_memory == ("zero-copy" if context.device.kind == "cpu" else "staged")


def test_launches_leave_memory_where_it_was(add: Any, view: Any) -> None:
    one = view(numpy.ones(1 << 16, numpy.float32))

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(50):
        add((1,), one, one, one, 64)
    before = resident()
    for _ in range(500):
        add((1,), one, one, one, 64)
    assert resident() - before < 8 << 20
