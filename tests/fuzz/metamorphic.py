"""One kernel compiled in many ways computes the same bits: no reference is needed.

Ways: each optional pass, rewrite and analysis left out, or all of them (reference.py), long code in strips from 64
instructions on, less shared memory, one warp and four. Subgroups of other sizes are another device's:
`TRITON_SPIRV_DEVICE=emulate:qualcomm-adreno7` before the command runs all sorts on them.
"""

import contextlib
import dataclasses
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.spirv import reference
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.driver import SPIRVDriver
from triton.backends.spirv.settings import CHECK_VALUES, REFERENCE, WITHOUT, Setting

from tests.fuzz import steps, tile_runs, tiles
from tests.fuzz.families import FAMILIES
from tests.fuzz.running import Found
from tests.fuzz.steps import Family
from tests.fuzz.tiles import Tile

#: Families of integers, whose sums may be added up in any order.
_SORTS = ("combining", "shapes", "dots", "overwriting", "aliasing", "rounds", "integers", "bounds")
#: Errors of a way that has no room for a kernel, or no rule.
REFUSALS = ("OutOfResources", "OutOfSharedMemory", "TooManyWarps", "UnsupportedOperation")


@dataclass(frozen=True)
class Way:
    """How a kernel is compiled. ``warps`` and ``traits`` are others than its own; ``during``: what holds meanwhile."""

    name: str
    warps: int = 0
    traits: Mapping[str, Any] = field(default_factory=dict)
    during: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


@contextlib.contextmanager
def _set(setting: Setting[Any], value: str) -> Iterator[None]:
    """A setting has this value, and that of the caller afterwards."""
    before = os.environ.get(setting.name)
    os.environ[setting.name] = value
    try:
        yield
    finally:
        os.environ.pop(setting.name)
        if before is not None:
            os.environ[setting.name] = before


@contextlib.contextmanager
def _shared_memory(size: int) -> Iterator[None]:
    """Kernels are compiled for a device of so many bytes."""
    own = SPIRVDriver.get_current_target

    def target(driver: Any) -> GPUTarget:
        found = own(driver)
        capabilities = Capabilities.parse(str(found.arch))
        smaller = dataclasses.replace(capabilities, shared_bytes=min(size, capabilities.shared_bytes))
        return GPUTarget(found.backend, smaller.arch(), found.warp_size)

    SPIRVDriver.get_current_target = target  # type: ignore[method-assign]
    try:
        yield
    finally:
        SPIRVDriver.get_current_target = own  # type: ignore[method-assign]


def ways() -> list[Way]:
    """All of them but the usual one."""
    return [
        *(Way(f"without {name!r}", during=lambda name=name: _set(WITHOUT, name)) for name in reference.NAMES),  # type: ignore[misc]
        Way("reference", during=lambda: _set(REFERENCE, "1")),
        Way("strips of 64 instructions", traits={"unrolled_elementwise": 64}),
        *(
            Way(f"{size} bytes of shared memory", during=lambda size=size: _shared_memory(size))  # type: ignore[misc]
            for size in (4096, 8192, 16384)
        ),
        *(Way(f"{warps} warps", warps) for warps in (1, 4)),
    ]


@contextlib.contextmanager
def _compiled(way: Way, folder: Path) -> Iterator[Path]:
    """Kernels are compiled so, and do not come from the cache, whose keys know nothing of ways."""
    made = folder / "".join(letter if letter.isalnum() else "_" for letter in way.name)
    made.mkdir()
    with knobs.cache.scope(), way.during():
        knobs.cache.dir = str(made)
        yield made


def _large(tile: Tile, rng: random.Random) -> Tile:
    """Of up to 4,096 elements, where exchanges go in rounds and long code is cut."""
    by = rng.choice((1, 1, 2, 4))
    return replace(tile, rows=tile.rows * by, columns=tile.columns * by) if tile.rows * tile.columns <= 256 else tile


def _of_tiles(seed: int, rng: random.Random) -> tuple[str, Callable[[Way, Path], str]]:
    """The source of a kernel on tiles, and what is wrong with it in a way: other bits than in the first one."""
    tile, first = _large(tiles.generate(seed), rng), dict[str, torch.Tensor]()

    def fault(way: Way, folder: Path) -> str:
        traits = tuple({**dict(tile.traits), **way.traits}.items())
        found = tile_runs.run(replace(tile, warps=way.warps or tile.warps, traits=traits), folder)
        first.update({} if first else found)
        for name, values in found.items():
            differ = int((values.view(torch.uint8) != first[name].view(torch.uint8)).sum())
            if differ:
                return f"{name}: {differ} bytes differ"
        return ""

    return tiles.HEADER + tile.source, fault


def _of_steps(family: Family, seed: int) -> tuple[str, Callable[[Way, Path], str]]:
    """The same of a family's kernel, which has integers alone: other values than NumPy's."""
    kernel = steps.generate(family, seed)

    def fault(way: Way, folder: Path) -> str:
        changed = replace(kernel, warps=way.warps or kernel.warps, traits={**kernel.traits, **way.traits})
        return steps.fault(changed, folder)

    return steps.HEADER + kernel.functions + kernel.source, fault


def compared(seed: int, folder: Path) -> Found:
    """A random kernel, of any family or on tiles, whose launches are compared with the reference's: what is computed
    need not be known."""
    rng, start = random.Random(f"values {seed}"), time.process_time()
    family = rng.choice([None, None, *FAMILIES])
    source, fault = _of_tiles(seed, rng) if family is None else _of_steps(family, seed)
    way = Way("usual", during=lambda: _set(CHECK_VALUES, "1"))
    try:
        with _compiled(way, folder) as made:
            why = fault(way, made)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    return Found("" if why.startswith(REFUSALS) else why, source, time.process_time() - start)


def run(seed: int, folder: Path, most: int = 6) -> Found:
    """A random kernel in the usual way, and in so many others."""
    rng, start = random.Random(f"ways {seed}"), time.process_time()
    family = rng.choice([None, None, *(one for one in FAMILIES if one.name in _SORTS)])
    source, fault = _of_tiles(seed, rng) if family is None else _of_steps(family, seed)
    found = ""
    for way in (Way("usual"), *rng.sample(ways(), most)):
        try:
            with _compiled(way, folder) as made:
                why = fault(way, made)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if why and not why.startswith(REFUSALS):
            found = found or f"{way.name}: {why}"
        elif why and way.name == "usual":
            break
    return Found(found, source, time.process_time() - start)
