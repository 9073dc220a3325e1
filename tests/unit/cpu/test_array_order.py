"""Transposes by way of arrays: the results, and how many values straight code keeps at a time."""

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.cpu.array_order import in_groups
from triton.backends.spirv.cpu.decoded_module import KernelModule, ModuleInstruction
from triton.backends.spirv.cpu.divergence import operands_of

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

RANDOM = np.random.default_rng(12)


@triton.jit
def transpose(x, out, m, n, TILE: tl.constexpr):
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(x + row[:, None] * n + column[None, :], mask=(row[:, None] < m) & (column[None, :] < n))
    place = out + column[:, None] * m + row[None, :]
    tl.store(place, tl.trans(value), mask=(column[:, None] < n) & (row[None, :] < m))


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize(("m", "n", "tile"), [(64, 96, 32), (33, 95, 32), (70, 130, 32), (5, 7, 16)])
def test_transposes(profile: str, dtype: str, m: int, n: int, tile: int) -> None:
    x = RANDOM.integers(-100, 100, m * n + 1).astype(dtype)[1:]
    out = np.full(m * n + 40, 99, dtype)
    run(profile, transpose, (-(-m // tile), -(-n // tile)), x, out, m, n, TILE=tile)
    assert np.array_equal(out[: m * n].reshape(n, m), x.reshape(m, n).T) and (out[m * n :] == 99).all()


def _most_kept(program: KernelModule, body: list[ModuleInstruction]) -> int:
    """The most floats of the block that are needed later, after any of its instructions."""
    last = {operand: number for number, item in enumerate(body) for operand in operands_of(item)}
    made = {
        item.result: number
        for number, item in enumerate(body)
        if item.result and program.type(item.result).kind == "float"
    }
    return max(sum(begin <= at < last.get(result, -1) for result, begin in made.items()) for at in range(len(body)))


@pytest.mark.parametrize("profile", PROFILES_HERE[-1:])
def test_few_values_are_kept_at_a_time(profile: str) -> None:
    kernel = compiled(profile, transpose, [*[np.zeros(4, np.float32)] * 2, 4, 4], {"TILE": 32})
    program = KernelModule(kernel.asm["spv"])
    body = max((block.body for block in program.blocks.values()), key=len)
    ordered = in_groups(program, body)
    assert sorted(item.result for item in ordered) == sorted(item.result for item in body)
    stores = [item for item in body if item.name == "OpStore"]
    assert len(stores) == sum(item.name == "OpStore" for item in ordered) == 64
    assert _most_kept(program, body) >= 64 and _most_kept(program, ordered) <= 32
