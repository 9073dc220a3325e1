"""Mesa's compilers, on a machine without their GPUs: each can do what its profile says, and takes every example.

RADV needs nothing for that. For another one, a variable of the environment names the library that plays its GPU;
docs/internals/testing.md says how to build it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.inspection import offline
from triton.backends.spirv.inspection.offline import NoMesa, processes

from benchmarks import amd_shaders, apple_shaders, intel_shaders, nvidia_shaders, qualcomm_shaders
from benchmarks.example_kernels import KERNELS
from benchmarks.mesa_shaders import Compiler, compiled_examples, shaders

_LIMITS = ("subgroup_size", "shared_bytes", "push_constant_bytes", "max_workgroup_invocations")
#: What is not spilled of a kernel.
_NONE = {"spilled": 0}


@dataclass(frozen=True)
class Driver:
    """``each``: what is true of every kernel that its ``compiler`` makes for a profile; ``made``: figures of some, by
    their names or modules; ``halves``: how many products of fragments dots of halves are there, if there are any.
    ``later``: features that only later versions of the driver have; ``least``: limits that are larger in others;
    ``plain``: limits that are others without matrices."""

    compiler: Compiler
    each: Callable[[dict[str, Any], Capabilities], bool]
    made: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    halves: Mapping[str, int] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    least: Sequence[str] = ()
    plain: Mapping[str, int] = field(default_factory=dict)

    @property
    def profile(self) -> Capabilities:
        return PROFILES[self.compiler.profile]


DRIVERS = {
    # Its later features are those since 22.3 on RDNA 3. The matmul of 64×64×32 has 4·4·2 products of fragments in four
    # subgroups; attention as many a product again.
    "radv": Driver(
        amd_shaders.COMPILER,
        lambda made, profile: made["shared"] <= profile.shared_bytes,
        {"add_kernel": {"accesses": 6, "wide": 6, "spilled": 0}, "matmul_kernel": {"spilled": 0, "scratch": 0}},
        {"19-matmul_kernel": 8, "07-forward_kernel": 32},
        frozenset({"float32_atomic_add", "matrices"}),
        plain={"subgroup_size": 64},
    ),
    # On DG2. It has 256 bytes of push constants since Mesa 24 and 128 before, and 48 KiB of shared memory in 26 and 64
    # before. The matmul spilled 4,099 before kernels got more subgroups where lanes have few registers, and 101 while
    # the next tiles were loaded ahead. It has 8·8·2 products in 16 subgroups; attention of 64×64, head 64, eight times
    # as many, in two loops.
    "anv": Driver(
        intel_shaders.COMPILER,
        lambda made, profile: made["lanes"] == profile.subgroup_size and (made["spilled"] < 60 or not _is_matmul(made)),
        halves={"19-matmul_kernel": 8, "07-forward_kernel": 64},
        later=frozenset({"matrices", "bfloat16_matrices"}),
        least=("push_constant_bytes", "shared_bytes"),
    ),
    # It has one size of subgroups, and lets no pipeline name it. The matmul has 4·8·2 products in four subgroups;
    # attention four times as many.
    "nvk": Driver(
        nvidia_shaders.COMPILER,
        lambda made, profile: made["registers"] <= 255,
        dict.fromkeys(("19-matmul_kernel", "07-forward_kernel"), _NONE),
        {"19-matmul_kernel": 16, "07-forward_kernel": 64},
    ),
    # Its subgroups have 128 lanes by default, and 64 where a pipeline says so.
    "turnip": Driver(
        qualcomm_shaders.COMPILER,
        lambda made, profile: made["lanes"] == 64 and made["registers"] <= 48,
        dict.fromkeys(("softmax_kernel", "layer_norm_kernel", "matmul_kernel", "persistent_kernel"), _NONE)
        | {"add_kernel": {"accesses": 3, "wide": 3, "spilled": 0}},
    ),
    # Kernels have as many subgroups as keep a lane's part small: with half as many, attention spills 226 registers.
    "honeykrisp": Driver(
        apple_shaders.COMPILER,
        lambda made, profile: made["registers"] <= 256 and made["spilled"] <= 40,
        dict.fromkeys(("add_kernel", "softmax_kernel", "layer_norm_kernel", "matmul_kernel"), _NONE),
    ),
}


def _is_matmul(made: dict[str, Any]) -> bool:
    return str(made["module"]).endswith("-matmul_kernel")


@pytest.fixture(scope="module", params=DRIVERS.values(), ids=DRIVERS)
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


@pytest.fixture(scope="module")
def known(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the compiler says of the device and of all examples' kernels; skips where it is not there."""
    folder = tmp_path_factory.mktemp("modules")
    try:
        next(processes(driver.profile.driver, folder))
    except NoMesa as error:
        pytest.skip(str(error))
    return shaders(compiled_examples(folder, driver.compiler), driver.compiler)


def test_the_profile_is_what_the_driver_reports(driver: Driver, known: dict[str, Any]) -> None:
    device, profile, plain = known["device"], driver.profile, {} if known["device"]["matrices"] else driver.plain
    for name in {"driver", *_LIMITS} - {*driver.least}:
        assert device[name] == plain.get(name, getattr(profile, name)), name
    for name in driver.least:
        assert device[name] >= getattr(profile, name), name
    features = frozenset(device["features"])
    assert features <= profile.features and profile.features - features <= driver.later


def test_the_profiles_matrices_are_among_the_drivers(driver: Driver, known: dict[str, Any]) -> None:
    if "matrices" in driver.later and not known["device"]["matrices"]:
        pytest.skip(f"{known['device']['version']} has no cooperative matrices")
    reported = {(one["m"], one["n"], one["k"], *one["types"]) for one in known["device"]["matrices"]}
    assert {(one.m, one.n, one.k, *one.types) for one in driver.profile.matrices} <= reported


def test_every_kernel_is_taken(driver: Driver, known: dict[str, Any]) -> None:
    assert [one["module"].partition("-")[2] for one in known["shaders"]] == [kernel for _, kernel, _ in KERNELS]
    for one in known["shaders"]:
        assert one["instructions"] > 0 and driver.each(one, driver.profile), one


def test_what_is_made_of_kernels(driver: Driver, known: dict[str, Any]) -> None:
    """Accesses are wide, and accumulators stay in registers."""
    for name, figures in driver.made.items():
        made = [one for one in known["shaders"] if name in (one["module"], one["module"].partition("-")[2])]
        assert made
        for one in made:
            assert figures.items() <= one.items(), one


def test_dots_of_halves_are_matrix_instructions(driver: Driver, known: dict[str, Any]) -> None:
    found = {one["module"]: one["matrix"] for one in known["shaders"] if one["module"] in driver.halves}
    assert found == (driver.halves if known["device"]["matrices"] else dict.fromkeys(driver.halves, 0))


def test_a_shim_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(offline.NEWER_MESA, raising=False)
    monkeypatch.setenv("INTEL_NOOP_DRM_SHIM", str(tmp_path / "no_shim.so"))
    monkeypatch.setattr(
        offline.manifests, "installed", lambda: [offline.manifests.Manifest(Path("intel_icd.json"), "")]
    )
    with pytest.raises(NoMesa, match="no_shim.so is not there; docs/internals/testing.md says how to build it"):
        next(processes(DRIVERS["anv"].profile.driver, tmp_path))


def test_a_damaged_module_is_an_error(tmp_path: Path) -> None:
    module = tmp_path / "damaged.spv"
    module.write_bytes(b"\3\2\43\7" + bytes(100))
    with pytest.raises(ValueError, match="damaged.spv: .*damaged at word 5"):
        shaders([module], DRIVERS["radv"].compiler)
