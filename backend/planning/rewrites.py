"""Which rewrites of TTGIR run (transforms/table.py): on what device, with which compile options, in which attempt."""

from __future__ import annotations

from ..capabilities import Capabilities
from ..transforms.table import Settings
from .ladder import Attempt
from .options import Options


def rewrites(capabilities: Capabilities, options: Options, attempt: Attempt) -> Settings:
    """The settings of all stages of ``attempt``."""
    driver = capabilities.traits
    return Settings(
        moved_loads=attempt.moved_loads,
        reload=attempt.moved_loads and driver.reloads_operands,
        unrolled_dots=driver.dots_unroll if attempt.moved_loads else 0,
        prefetch=driver.prefetch,
        stages=options.stages,
        behind=driver.prefetch_behind_barrier,
        shared_banks=driver.shared_banks,
        matrix_loads=attempt.padded,
        pieces=attempt.pieces,
        tight=attempt.tight,
        sliced=capabilities.shared_bytes // attempt.share if attempt.share else 0,
        strips=driver.unrolled_elementwise,
        rows=driver.faults.coroutines,
        matrices=options.matrices if attempt.matrices else (),
        lanes=capabilities.subgroup_size,
        registers=driver.lane_registers,
    )
