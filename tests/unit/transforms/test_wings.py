"""A rewrite of ``transforms/gpu/`` runs for GPUs alone, and one of ``transforms/cpu/`` for the CPU device alone."""

from collections.abc import Iterator
from types import CodeType, FunctionType

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.matrix_unit_choice import matrix_units
from triton.backends.spirv.transforms import table
from triton.backends.spirv.transforms.schedule import Options, Schedule


def _rewrites(function: FunctionType) -> Iterator[str]:
    """The modules of the rewrites that a row's function calls, by way of functions of the table too."""
    if function.__module__ != table.__name__:
        yield function.__module__
        return
    for cell in function.__closure__ or ():
        yield from _rewrites(cell.cell_contents)
    codes: list[CodeType] = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for name in code.co_names:
            if isinstance(called := function.__globals__.get(name), FunctionType):
                yield from _rewrites(called)


def _wings(row: table.Transform) -> set[str]:
    assert isinstance(row.run, FunctionType)
    return {wing for module in _rewrites(row.run) for wing in ("gpu", "cpu") if f".transforms.{wing}." in module}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_wing_runs_for_its_devices_alone(profile: str) -> None:
    device = PROFILES[profile]
    units = matrix_units("1", device)
    # All that a schedule can ask for. Buffers are padded for matrix units.
    schedule = Schedule(matrices=bool(units), padded=bool(units), held=True, pieces=2, in_rounds=True)
    options = Options(matrices=units, schedule=schedule)
    wings = {wing for stage in table.Stage for row in table.wanted(stage, device, options) for wing in _wings(row)}
    assert wings <= ({"cpu"} if device.tile_products else {"gpu"})


def test_both_wings_have_rows_of_the_table() -> None:
    wings = [_wings(row) for row in table.TRANSFORMS]
    assert wings.count({"cpu"}) >= 9 and wings.count({"gpu"}) >= 12 and wings.count(set()) >= 10
