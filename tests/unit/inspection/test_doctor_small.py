"""What doctor says of small devices, before a kernel does."""

from dataclasses import replace

from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection.doctor import small

_USUAL = frozenset(
    {"float16", "float32_atomic_add", "float64", "int8", "int16", "storage8", "storage16", "int64_atomics"}
)


def test_a_usual_device() -> None:
    assert (
        small(replace(PROFILES["generic"], features=_USUAL, shared_bytes=49152, max_workgroup_invocations=1024)) == ""
    )


def test_a_raspberry_pi() -> None:
    """16 KiB of shared memory, 256 invocations, no float64 (field_reports.py, 20)."""
    able = replace(
        PROFILES["generic"], features=_USUAL - {"float16", "float64"}, shared_bytes=16384, max_workgroup_invocations=256
    )
    said = small(able)
    emulated, refused = said.split("; refused: ")
    assert emulated == ("emulated: float16 is computed in float32, tiles beyond 16 KiB of shared memory go in pieces")
    assert refused == "kernels with float64, those that still need more (OutOfResources)"


def test_few_invocations() -> None:
    able = replace(PROFILES["generic"], features=_USUAL, shared_bytes=32768, max_workgroup_invocations=128)
    assert small(able) == "refused: programs of more than 128 invocations (num_warps)"
