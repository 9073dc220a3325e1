"""Failed assertions, and loops that Mesa's CPU driver of 2022 ends, are reported: by the launch where the host may read
at once, else later."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.spirv.runtime.context import current  # noqa: E402
from triton.backends.spirv.runtime.reports import launchers  # noqa: E402
from triton.backends.spirv.runtime.reports.failures import KernelAssertionError, LoopLimitExceeded  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


@triton.jit
def counted(out, rounds):
    count = 0
    for _ in range(rounds):
        count += 1
    tl.store(out, count)


@torch.compile
def count_to(x: Any, rounds: int) -> Any:
    out = torch.zeros_like(x)
    counted[(1,)](out, rounds)
    return out


@torch.compile
def counted_on_the_host(x: Any, rounds: int) -> Any:
    out = torch.zeros_like(x)
    counted[(1,)](out, rounds)
    return out.cpu() + 1


@torch.compile
def rows_of(x: Any, index: Any) -> Any:
    return x[index] * 2


def test_copies_to_the_host_in_a_compiled_function_say_so() -> None:
    x = torch.zeros(1, dtype=torch.int32, device="spirv")
    assert counted_on_the_host(x, 1000).item() == 1001
    try:
        assert counted_on_the_host(x, 70000).item() == 70001
    except LoopLimitExceeded as error:
        assert current().capabilities.driver == "mesa_llvmpipe" and "'counted'" in str(error)
    torch.spirv.synchronize()


@pytest.mark.parametrize("device", ["spirv", "cpu"])
def test_a_loop_that_the_driver_ends_in_a_compiled_function(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    launch = launchers.ReportingLauncher.__call__
    monkeypatch.setattr(
        launchers.ReportingLauncher, "__call__", lambda self, *args: (waited.append(self), launch(self, *args))[1]
    )
    x = torch.zeros(1, dtype=torch.int32, device=device)
    assert count_to(x, 1000).item() == 1000
    assert not waited or device == "cpu"
    try:
        out = count_to(x, 70000)
        if device == "spirv":
            out = out.cpu()
        assert out.item() == 70000
    except LoopLimitExceeded as error:
        assert current().capabilities.driver == "mesa_llvmpipe" and "'counted'" in str(error)
        assert "out" in locals() if device == "spirv" else "out" not in locals()
    torch.spirv.synchronize()  # said once


def test_an_index_out_of_bounds_is_told_when_results_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor asserts that indices are in bounds. The launch does not wait to learn of it."""
    waited: list[Any] = []
    launch = launchers.ReportingLauncher.__call__
    monkeypatch.setattr(
        launchers.ReportingLauncher, "__call__", lambda self, *args: (waited.append(self), launch(self, *args))[1]
    )
    x, index = torch.arange(100.0, device="spirv"), torch.tensor([3, 99, -1], device="spirv")
    assert rows_of(x, index).tolist() == [6, 198, 198]
    outside = index + 97
    for read in (lambda _: torch.spirv.synchronize(), torch.Tensor.tolist, lambda result: result[0].item()):
        result = rows_of(x, outside)
        with pytest.raises(KernelAssertionError, match="index out of bounds"):
            read(result)
    assert rows_of(x, index).tolist() == [6, 198, 198]
    assert not waited
