"""The ladder with a batch of any size: each model compiled on the device, forward and backward, against the CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.device.torch_compile.ladder import RUNGS, Rung, compare  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


@pytest.mark.slow
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_dynamic(rung: Rung) -> None:
    compare(rung, "spirv", dynamic=True)
