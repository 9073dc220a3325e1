"""What is asked of every one of Mesa's compilers without its GPU, and of its CPU driver in other builds."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from triton.backends.spirv.capabilities import Capabilities

from benchmarks.example_kernels import KERNELS

#: What a profile says in numbers.
LIMITS = ("subgroup_size", "shared_bytes", "push_constant_bytes", "max_workgroup_invocations")


def assert_reported(
    device: dict[str, Any], profile: Capabilities, later: Sequence[str] = (), limits: Sequence[str] = LIMITS
) -> None:
    """The device has what its profile says, except for features that only ``later`` versions of the driver have."""
    for name in ("driver", *limits):
        assert device[name] == getattr(profile, name), name
    features = frozenset(device["features"])
    assert features <= profile.features and profile.features - features <= frozenset(later)


def assert_matrices_reported(device: dict[str, Any], profile: Capabilities) -> None:
    """The profile's matrices are among the device's."""
    reported = {(one["m"], one["n"], one["k"], *one["types"]) for one in device["matrices"]}
    assert {(one.m, one.n, one.k, *one.types) for one in profile.matrices} <= reported


def assert_all_taken(shaders: Sequence[dict[str, Any]]) -> None:
    """The compiler made something of every example's kernel."""
    assert [one["module"].partition("-")[2] for one in shaders] == [kernel for _, kernel, _ in KERNELS]
    for one in shaders:
        assert one["instructions"] > 0, one


def assert_tests_pass(program: str, environment: Mapping[str, str], *tests: str) -> None:
    """pytest, run by the Python ``program``, passes all ``tests`` (its arguments) and skips none."""
    done = subprocess.run(
        [program, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", *tests],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0 and "skipped" not in "".join(last), done.stdout[-4000:] + done.stderr[-2000:]
