"""What programs written for CUDA ask of the driver: properties, registers, streams, a language module of its own."""

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime import context as vulkan_context
from triton.backends.spirv.runtime.vulkan.statistics import FEATURE, executables, registers_and_spills
from triton.language.extra.spirv import libdevice

driver = triton.runtime.driver.active


@triton.jit
def cube_roots(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, libdevice.cbrt(tl.load(x + i)))


@triton.jit
def softmax_of_rows(x, out, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * columns + i, powers / tl.sum(powers, axis=0), mask=i < columns)


def test_the_current_devices_properties_need_no_index() -> None:
    properties = driver.utils.get_device_properties(None)
    assert properties == driver.utils.get_device_properties(driver.get_current_device())
    assert {"max_shared_mem", "warpSize", "max_threads_per_block"} <= set(properties)
    assert properties["multiprocessor_count"] >= 1 and properties["name"] == vulkan_context.current().device.name


def test_figures_of_a_cpu_suffice_for_an_occupancy() -> None:
    """As many programs as are resident, computed as in upstream's second tutorial, share the rows."""
    x = np.random.default_rng(0).standard_normal((37, 70), dtype=np.float32)
    out = np.zeros_like(x)
    rows, columns = x.shape
    kernel = softmax_of_rows.warmup(array(x), array(out), rows, columns, BLOCK=128, num_warps=8, grid=(1,))
    kernel._init_handles()
    assert kernel.n_spills is None, "TRITON_SPIRV_STATISTICS asks for it"
    properties = driver.utils.get_device_properties(None)
    if "max_num_regs" not in properties or kernel.n_regs is None:
        pytest.skip("a GPU whose driver does not tell registers, or is not asked for a kernel's")
    occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * kernel.metadata.num_warps)
    occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
    programs = min(properties["multiprocessor_count"] * occupancy, rows)
    assert programs >= 1
    softmax_of_rows[(programs, 1, 1)](array(x), array(out), rows, columns, BLOCK=128, num_warps=8)
    expected = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, expected / expected.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.only_on("Vulkan", "Vulkan's drivers have such figures")
def test_registers_and_spills_are_the_drivers_where_it_has_such_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's driver has none."""
    monkeypatch.setenv("TRITON_SPIRV_STATISTICS", "1")
    binary = cube_roots.warmup(array(np.ones(16, "f4")), array(np.ones(16, "f4")), BLOCK=16, grid=(1,)).asm["spv"]
    module, _, registers, spills, _ = driver.utils.load_binary("cube_roots", binary, 0, driver.get_current_device())
    kinds = vulkan_context.current().device
    if FEATURE in kinds.vulkan_features:
        figures = executables(
            vulkan_context.current().opened.handle,
            vulkan_context.current().opened.pipeline_layout,
            binary,
            kinds.capabilities.subgroup_size,
        )
        assert (registers, spills) == registers_and_spills(kinds.driver, figures)
        assert figures[0].statistics
    else:
        assert spills is None
    driver.utils.unload_module(module)


def test_libdevice_by_its_own_name() -> None:
    x = np.arange(16, dtype=np.float32)
    out = np.zeros_like(x)
    cube_roots[(1,)](array(x), array(out), BLOCK=16)
    np.testing.assert_allclose(out, np.cbrt(x), rtol=1e-6)
    assert "cbrt" in dir(libdevice)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        libdevice.nothing  # noqa: B018


def test_setting_a_stream_makes_its_device_the_current_one() -> None:
    interface = driver.get_device_interface()
    interface.set_stream(interface.current_stream())
    assert interface.current_device() == driver.get_current_device()
