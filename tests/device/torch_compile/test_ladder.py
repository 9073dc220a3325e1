"""The ladder with sizes that are known: each model compiled on the device, forward and backward, against the CPU."""

import pytest

torch = pytest.importorskip("torch")

from tests.device.torch_compile.ladder import RUNGS, Rung, compare  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


@pytest.mark.parametrize(
    "rung", [pytest.param(rung, id=rung.name, marks=[pytest.mark.slow] * (not rung.quick)) for rung in RUNGS]
)
def test_static(rung: Rung) -> None:
    compare(rung, "spirv", dynamic=False)
