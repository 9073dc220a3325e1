"""Autotuning skips configurations that need too much shared memory, at little cost, and is told once."""

from dataclasses import replace
from pathlib import Path

import pytest
import triton
from triton import knobs
from triton.backends.spirv import passes, stages
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.target import target_of
from triton.runtime.errors import OutOfResources

from tests.unit.planning.test_shared_bytes import matmul

KIB = 1024

#: Blocks of M, N and K, and whether there is a way to multiply them: 16 steps along K of 256 rows take 16 KiB.
CONFIGURATIONS = [
    (32, 32, 16, True),
    (64, 32, 16, True),
    (64, 64, 16, True),
    (64, 64, 32, True),
    (256, 64, 16, False),
    (256, 64, 32, False),
    (256, 64, 64, False),
    (64, 256, 64, False),
    (256, 128, 16, False),
    (256, 128, 32, False),
]


def compile_matmul(m: int, n: int, k: int, profile: str) -> int:
    capabilities = replace(PROFILES[profile], shared_bytes=8 * KIB)
    target = target_of(capabilities)
    options = {"num_warps": 4, "num_stages": 1, "matrix_units": "0"}
    return int(triton.compile(matmul("fp32", m, n, k), target=target, options=options).metadata.shared)


@pytest.mark.parametrize("profile", ["lavapipe", "nvidia-hopper"])
def test_what_cannot_fit_is_neither_planned_nor_emitted(
    profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    calls = {"plan_arranged": 0, "run": 0}
    for owner, name in ((stages, "plan_arranged"), (passes, "run")):

        def counted(*arguments: object, name: str = name, function: object = getattr(owner, name)) -> object:
            calls[name] += 1
            return function(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(owner, name, counted)
    for m, n, k, fits in CONFIGURATIONS:
        calls["plan_arranged"] = 0
        if fits:
            assert compile_matmul(m, n, k, profile) <= 8 * KIB and calls["plan_arranged"]
            continue
        with pytest.raises(OutOfResources, match="shared memory, Required: \\d+, Hardware limit: 8192"):
            compile_matmul(m, n, k, profile)
        assert not calls["plan_arranged"]
        calls["run"] = 0
        with pytest.raises(OutOfResources, match="shared memory"):
            compile_matmul(m, n, k, profile)
        assert calls["run"] == 1  # TTIR is made again, layouts are not
