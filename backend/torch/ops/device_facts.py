"""The device facts that tiles and grids depend on: whether it is a CPU, how wide it is, what its matrix units take."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import ref

import torch

from ... import runtime
from ...launching.device_utils import matrix_types

_facts: dict[int, tuple[ref[runtime.Context], DeviceFacts]] = {}
_COMPONENTS = {torch.float16: "f16", torch.bfloat16: "bf16"}


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """``cpu``: whether programs run on a CPU's threads. ``units``: compute units, or an estimate of them.
    ``small_tiles``: on matrix units, large tiles are slow (driver_quirks.py)."""

    cpu: bool
    units: int
    components: frozenset[str]
    small_tiles: bool = False

    def multiplies(self, dtype: torch.dtype) -> bool:
        """Whether matrix units take products of this type, which kernels that are compiled for the device use."""
        return _COMPONENTS.get(dtype) in self.components


def kind_of(device: int) -> DeviceFacts:
    """The facts of the device with this index."""
    opened = runtime.of_device(device)
    context, facts = _facts.get(device, (None, None))
    if context is None or facts is None or context() is not opened:
        info, traits = opened.device, opened.capabilities.traits
        facts = DeviceFacts(
            info.kind == "cpu", info.compute_units.count_or_estimate, matrix_types(info), traits.small_matrix_tiles
        )
        _facts[device] = ref(opened), facts
    return facts


def share_out(programs: int, units: int, longest: int, shortest: int, each: int = 2) -> int:
    """In how many parts programs that sum ``longest`` elements each are divided, so that there are ``each`` for a
    compute unit; no part is shorter than ``shortest``."""
    if programs >= units:
        return 1
    return max(1, min(-(-each * units // programs), longest // shortest))
