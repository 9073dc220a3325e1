"""The plan of a kernel as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.lowering.module import plan_module
from triton.backends.spirv.planning.options import Options
from triton.backends.spirv.planning.show import plan_text
from triton.backends.spirv.transforms.kernel import kernel_of
from triton.backends.spirv.ttgir.parser import parse_module

MATMUL = Path(__file__).parents[1] / "ttgir" / "fixtures" / "matmul.ttgir"
LAVAPIPE = PROFILES["lavapipe"]


def shown(capabilities: Capabilities) -> list[str]:
    planned = plan_module(parse_module(MATMUL.read_text()), capabilities, Options())
    return plan_text(kernel_of(planned.source), planned.plan).splitlines()


def line(lines: list[str], name: str) -> str:
    return next(one for one in lines if f" {name} " in one)


def test_each_operation_has_its_place_its_plan_and_the_reason() -> None:
    lines = shown(LAVAPIPE)
    assert lines[0] == (
        "shared memory: 4096 of 32768 bytes; 2048 allocated by upstream; seen as 64-bit words, but for 2 buffers"
    )
    assert all(one.startswith("kernels.py:") for one in lines[1:])
    assert line(lines, "tt.load").endswith("1 element of 16 bits an access, because the layout gives a lane runs of 1")
    assert line(lines, "tt.dot").endswith("multiply-adds, 16 steps unrolled, operands in its buffer and in its buffer")


def test_what_does_not_fit_is_said() -> None:
    lines = shown(replace(LAVAPIPE, shared_bytes=1024))
    assert "2048 of 1024 bytes: more than the device has; 2048 allocated by upstream; seen as an array" in lines[0]
