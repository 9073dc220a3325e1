"""The ladder with a batch of any size: each model compiled on the device, forward and backward, against the CPU."""

import pytest

torch = pytest.importorskip("torch")

from tests.device.torch_compile.ladder import RUNGS, Rung, compare  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


#: Small ones are run for each change, and the others with static shapes (test_ladder.py).
_WEEKLY = pytest.mark.weekly("test_ladder.py::test_static")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rung", [pytest.param(rung, id=rung.name, marks=[_WEEKLY] * (not rung.quick)) for rung in RUNGS]
)
def test_dynamic(rung: Rung) -> None:
    compare(rung, "spirv", dynamic=True)
