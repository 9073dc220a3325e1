"""Configurations of matrix units: their text, what they must cover, and what a kernel gets of them."""

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.matrices import ComponentMap, MatrixConfiguration
from triton.backends.spirv.planning.matrix_unit_choice import matrix_units

CONFIGURATIONS = [one for profile in PROFILES.values() for one in profile.matrices]


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_a_configuration_is_its_text(configuration: MatrixConfiguration) -> None:
    assert MatrixConfiguration.parse(str(configuration)) == configuration


def test_the_target_has_them() -> None:
    for capabilities in PROFILES.values():
        assert Capabilities.parse(capabilities.arch()) == capabilities
    assert len(PROFILES["nvidia-hopper"].matrices) == 5


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_a_mirror_image_has_the_transposes(configuration: MatrixConfiguration) -> None:
    turned = configuration.turned()
    if not turned.mirrored:
        assert turned == configuration
        return
    assert (turned.m, turned.n, turned.k, turned.types) == (
        *(configuration.n, configuration.m, configuration.k),
        configuration.types,
    )
    for use, unit in enumerate((1, 0, 2)):
        for lane in range(configuration.lanes):
            for component in range(1 << len(configuration.maps[unit].registers)):
                row, column = configuration.maps[unit].place(component, lane)
                assert turned.maps[use].place(component, lane) == (column, row)
    assert turned.turned() == turned


def test_lanes_hold_rows_where_a_mirror_image_gives_them() -> None:
    mirrored = {name: [one.turned().mirrored for one in profile.matrices] for name, profile in PROFILES.items()}
    assert not any(mirrored["nvidia-hopper"]) and not any(mirrored["nvk-ampere"])
    assert all(mirrored["amd-rdna3"]) and all(mirrored["intel-xe"]) and all(mirrored["lavapipe-26"])


@pytest.mark.parametrize(
    "text, message",
    [
        ("m8n8k8", "is not a matrix configuration"),
        ("m8n8k8:f16*f16*f32:0.1/1.0:0.1/1.0:0.1/1.0", "is not a matrix configuration"),
        ("m2n2k2:f16*f16*f32*f33:0.1/1.0:0.1/1.0:0.1/1.0", "unknown component types"),
        ("m2n2k2:f16*f16*f32*f32:0.1/1.0:0.1/1.0+0.1:0.1/1.0", "subgroups of different sizes"),
        ("m2n2k2:f16*f16*f32*f32:0.1/1.0:0.1/1.0:0.1/0.1", "does not cover 2×2"),
        ("m2n2k2:f16*f16*f32*f32:0.1:0.1/1.0:0.1/0.1", "is not a component map"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatrixConfiguration.parse(text)


def test_what_a_kernel_is_compiled_for() -> None:
    hopper, lavapipe = PROFILES["nvidia-hopper"], PROFILES["lavapipe-26"]
    assert matrix_units("auto", hopper) == hopper.matrices
    assert matrix_units("auto", lavapipe) == ()
    assert matrix_units("1", lavapipe) == tuple(one.turned() for one in lavapipe.matrices)
    assert matrix_units("0", hopper) == ()
    assert matrix_units("auto", replace(hopper, subgroup_size=64)) == ()
    with pytest.raises(ValueError, match="matrix_units='fast' must be 0, 1 or auto$"):
        matrix_units("fast", hopper)
    with pytest.raises(ValueError, match="TRITON_SPIRV_DEVICE=emulate:intel-xe emulates that device"):
        matrix_units("intel-xe", hopper)


def test_lanes_may_hold_copies() -> None:
    copied = ComponentMap.parse("0.1+0.2/1.0+2.0+0.0")
    assert copied.place(3, 7) == copied.place(3, 3) == (3, 3)
