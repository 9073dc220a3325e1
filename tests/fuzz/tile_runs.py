"""Runs generated kernels on tiles here, and the same source as Python with ``tl`` on torch (reference.py)."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tests.fuzz import reference
from tests.fuzz.running import Outcome, driver_traits, fault_of
from tests.fuzz.tiles import HEADER, TYPES, Tile
from tests.written import written


def _memory(tile: Tile, seed: int) -> dict[str, torch.Tensor]:
    """What the kernel reads and writes, and what lies behind it."""
    size = tile.rows * tile.columns
    numbers = torch.Generator().manual_seed(seed)
    found = {}
    for which, tiles in (("ptr", 12), ("tmp", 3), ("out", 7)):
        for kind, (_, dtype) in TYPES.items():
            low, high = (-50, 51) if kind != "i" else (-(2**31), 2**31)
            values = (
                torch.randint(low, high, (tiles * size + 64,), generator=numbers)
                if which == "ptr"
                else torch.zeros(tiles * size + 64)
            )
            found[f"{kind}_{which}"] = values.float().to(dtype) if dtype.is_floating_point else values.to(dtype)
    return found


def _expected(tile: Tile) -> dict[str, torch.Tensor]:
    """Memory after the programs ran as Python. Raises what they raise."""
    memory = _memory(tile, tile.number % 1000003)
    names: dict[str, Any] = {"tl": reference.tl, "triton": reference.triton}
    text = (HEADER + tile.source).replace("import triton\nimport triton.language as tl\n", "")
    exec(compile(text, f"tile {tile.number}", "exec"), names)
    for program in range(tile.programs):
        reference.PROGRAM[0] = program
        pointers = [reference.Pointer(values, tile.first) for values in memory.values()]
        names[f"kernel_{tile.number}"](*pointers, 3, tile.rows * tile.columns - 3)
    return memory


def _load(tile: Tile, folder: Path) -> Any:
    path = folder / f"tile_{tile.number}.py"
    module = written(path, HEADER + tile.source, f"{path.stem}_{folder.name.replace('-', '_')}")
    return getattr(module, f"kernel_{tile.number}")


def run(tile: Tile, folder: Path) -> dict[str, torch.Tensor]:
    """Memory after a launch with the tile's traits."""
    memory = _memory(tile, tile.number % 1000003)
    arguments = [values[tile.first :] for values in memory.values()]
    with driver_traits(dict(tile.traits)):
        _load(tile, folder)[(tile.programs,)](
            *arguments, 3, tile.rows * tile.columns - 3, num_warps=tile.warps, matrix_units=tile.units
        )
    return memory


def _fault(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> str:
    for name, values in found.items():
        if values.dtype.is_floating_point:
            one, other = values.double(), wanted[name].double()
            wrong = ~((one == other) | (one.isnan() & other.isnan()))
        else:
            wrong = values != wanted[name]
        if wrong.any():
            first = int(wrong.nonzero()[0])
            return (
                f"{name}: {int(wrong.sum())} of {values.numel()} values are wrong, the first at {first}: "
                f"{values[first]} instead of {wanted[name][first]}"
            )
    return ""


def compare(tiles: Sequence[Tile], folder: Path) -> list[Outcome[Tile]]:
    """The outcome of each kernel that runs as Python: what is made smaller may not."""
    outcomes = []
    for tile in tiles:
        try:
            wanted = _expected(tile)
        except Exception:
            continue
        start = time.process_time()
        fault, refused = "", False
        try:
            fault = _fault(run(tile, folder), wanted)
        except Exception as error:
            fault, refused = fault_of(error), True
        outcomes.append(Outcome(tile, fault, refused, time.process_time() - start))
    return outcomes
