"""A kind of report takes a row here and there, and no other change: one that counts the invocations of a launch."""

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.abi import report_buffer
from triton.backends.spirv.lowering import entry_point
from triton.backends.spirv.lowering.lowering import Lowering
from triton.backends.spirv.lowering.report_kinds import KINDS, ReportKind
from triton.backends.spirv.runtime.reports.kinds import READERS
from triton.backends.spirv.runtime.reports.reader import Reader
from triton.backends.spirv.ttgir.ir import UNKNOWN, Function

_NUMBER = 1000


@triton.jit
def number_kernel(x_ptr, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(x_ptr + at, tl.flip(at))
    tl.device_print("at", tl.program_id(0))


def _begin(ctx: Lowering, kernel: Function) -> None:
    ctx.reports.message("invocations", UNKNOWN, first=_NUMBER)
    ctx.reports.count(ctx, ctx.reports.place("invocations"), ctx.module.uint(1))


class Counted(RuntimeError):
    """How many there were."""


class Invocations(Reader):
    """Reads one word, which is a number before the launch."""

    def pack(self, launch: Any) -> bytes:
        return _NUMBER.to_bytes(4, "little")

    def read(self, buffer: bytes, launch: Any) -> None:
        raise Counted(f"{self._kernel}: {int.from_bytes(buffer[self._at : self._at + 4], 'little') - _NUMBER}")


@pytest.fixture
def own_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_point, "KINDS", (*KINDS, ReportKind(lambda planned: True, _begin)))
    monkeypatch.setitem(report_buffer.PARTS, "invocations", lambda _: 4)  # type: ignore[arg-type]
    monkeypatch.setitem(READERS, "invocations", Invocations)  # type: ignore[arg-type]


@pytest.mark.usefixtures("own_kind")
@pytest.mark.parametrize("options", [{}, {"check_bounds": True}, {"check_races": True, "check_bounds": True}])
def test_a_kind_of_its_own(options: dict[str, bool], capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.zeros(3 * 64, dtype=torch.int32)
    kernel = number_kernel.warmup(x, SIZE=64, grid=(3,), **options)
    with pytest.raises(Counted, match=f"^number_kernel: {3 * kernel.metadata.workgroup_size}$"):
        number_kernel[(3,)](x, SIZE=64, **options)
    assert (x.view(3, 64) == torch.arange(192, dtype=torch.int32).view(3, 64).flip(1)).all()
    printed = capfd.readouterr().out.splitlines()
    assert sorted(printed) == [f"pid ({number}, 0, 0) idx () at: {number}" for number in range(3)]
    if "check_bounds" in options:
        with pytest.raises(Counted) as caught:
            number_kernel[(3,)](x[:100], SIZE=64, **options)
        (outside,) = caught.value.__notes__
        assert "argument 'x_ptr' at index " in outside
