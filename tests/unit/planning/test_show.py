"""The plan of a kernel as text."""

from dataclasses import replace
from pathlib import Path

import pytest
from triton import knobs
from triton.backends.spirv.ahead_of_time.build import compiled_kernel
from triton.backends.spirv.ahead_of_time.kernel_source import find_kernel
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.inspection.plan import layout_lines, planned_again
from triton.backends.spirv.lowering.entry_point import emit
from triton.backends.spirv.planning.show import plan_text
from triton.backends.spirv.stages import plan_module
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.transforms.schedule import Options, Schedule
from triton.backends.spirv.ttgir.parser import parse_module

from benchmarks.example_kernels import KERNELS
from tests.lowering.harness import driven

ROOT = Path(__file__).parents[3]
MATMUL = Path(__file__).parents[1] / "ttgir" / "fixtures" / "matmul.ttgir"
LAVAPIPE = PROFILES["lavapipe"]


def shown(capabilities: Capabilities) -> list[str]:
    planned = plan_module(parse_module(MATMUL.read_text()), capabilities, Options())
    return plan_text(kernel_of(planned.source), planned.plan).splitlines()


def line(lines: list[str], name: str) -> str:
    return next(one for one in lines if f" {name} " in one)


def test_each_operation_has_its_place_its_plan_and_the_reason() -> None:
    lines = shown(LAVAPIPE)
    assert lines[0] == "shared memory: 2048 of 32768 bytes; seen as an array for each type"
    assert lines[1] == "pointers: 64-bit addresses from a, b, c"
    assert all(one.startswith("kernels.py:") for one in lines[2:])
    assert line(lines, "tt.load").endswith("1 element of 16 bits an access, because the layout gives a lane runs of 1")
    assert line(lines, "tt.dot").endswith("multiply-adds, 16 steps unrolled, operands both in shared memory")


def test_accumulators_that_are_too_many_for_one_loop_are_updated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = line(shown(driven(monkeypatch, LAVAPIPE, dot_unroll=8, dot_registers=4)), "tt.dot")
    assert "1 of 16 steps a loop body, 8 times for 4 accumulators each, operands" in text


def test_what_does_not_fit_is_said() -> None:
    lines = shown(replace(LAVAPIPE, shared_bytes=1024))
    assert "2048 of 1024 bytes: more than the device has; seen as an array" in lines[0]


@pytest.mark.parametrize(
    ("profile", "shared_bytes", "layout"),
    [
        ("nvidia-hopper", 0, "4 subgroups, matrix units with padded buffers"),
        ("nvidia-hopper", 8192, "4 subgroups, matrix units with padded buffers, dots in 2 pieces of K"),
        ("amd-rdna3", 8192, "4 subgroups, matrix units with plain buffers"),
        ("lavapipe", 0, "8 subgroups"),
        ("intel-xe", 6144, "16 subgroups, dots in 2 pieces of K"),
    ],
    ids=["matrix units", "cut on matrix units", "buffers not padded", "multiply-adds", "dots cut along K"],
)
def test_the_plan_made_again_is_what_was_emitted(
    profile: str, shared_bytes: int, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capabilities = PROFILES[profile]
    if shared_bytes:
        capabilities = replace(capabilities, shared_bytes=shared_bytes)
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    example, name, signature = next(entry for entry in KERNELS if entry[0] == "matmul" and "fp16" in entry[2])
    kernel = find_kernel(ROOT / "examples" / f"{example}.py", name)
    compiled, _ = compiled_kernel(kernel, signature, capabilities, {})
    again = planned_again(compiled.asm["ttgir"], capabilities, compiled.metadata._asdict())
    fits, words = again.plan.fits, emit(again).spirv
    assert fits and words == compiled.asm["spv"]
    assert Schedule(**compiled.metadata.layout).summary() == layout
    first, *others = layout_lines(compiled.metadata._asdict())
    assert first == f"layout: {layout}" and len(others) == len(compiled.metadata.tried)
    assert bool(others) == bool(shared_bytes)
    for line, one in zip(others, compiled.metadata.tried, strict=True):
        assert line.startswith(
            f"  did not fit, expected time {one['expected']:g}: {one['schedule']}: {one['shared']:,} "
        )
        assert one["shared"] > shared_bytes
