"""The driver where no device is needed: signatures, compile-only mode, the benchmark interface."""

import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv import availability
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.driver import SPIRVDriver
from triton.backends.spirv.launching.compile_only import CompileOnlyLauncher
from triton.backends.spirv.launching.signatures import flat_signature
from triton.backends.spirv.runtime import device_choice
from triton.backends.spirv.runtime.buffer import DeviceBuffer


def test_flat_signature() -> None:
    signature = {
        "x": "*fp32",
        "pair": ("i32", ("constexpr", "*fp16")),
        "BLOCK": "constexpr",
        "desc": "tensordesc<fp16[16, 16]>",
        "n": "i64",
    }
    leaves = flat_signature(list(signature), list(signature.values()), None)
    assert leaves[:5] == [
        ((0,), "x", "*fp32"),
        ((1, 0), "pair[0]", "i32"),
        ((1, 1, 0), "pair[1][0]", "constexpr"),
        ((1, 1, 1), "pair[1][1]", "*fp16"),
        ((2,), "BLOCK", "constexpr"),
    ]
    descriptor = leaves[5:-1]
    assert [type_ for _, _, type_ in descriptor] == ["*fp16", *["i64"] * 4, "i1", "i1", "i32", "i32", "i64", "i64"]
    assert [path for path, _, _ in descriptor] == [(3 + index,) for index in range(11)]
    assert leaves[-1] == ((14,), "n", "i64")


@pytest.fixture
def compile_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_COMPILE_ONLY", "1")
    monkeypatch.setattr(CompileOnlyLauncher, "said", False)


@pytest.mark.usefixtures("compile_only")
def test_compile_only(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(device_choice, "selected", lambda: pytest.fail("a device was looked for"))
    driver = SPIRVDriver()
    assert driver.get_current_target().arch == PROFILES["generic"].arch()
    monkeypatch.setenv("TRITON_SPIRV_TARGET", "nvidia-hopper")
    target = driver.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("spirv", PROFILES["nvidia-hopper"].arch(), 32)
    assert driver.utils.get_device_properties(driver.get_current_device())["max_shared_mem"] == 49152
    module, function, *_, most = driver.utils.load_binary("add", b"module", 0, 0)
    assert module is not None and most == 1024
    with caplog.at_level(logging.WARNING):
        for name in ("add", "mul"):
            launch = driver.launcher_cls(SimpleNamespace(signature={}), SimpleNamespace(name=name))
            assert launch(1, 1, 1, 0, function, None, None, None, None) is None
    assert [record.getMessage() for record in caplog.records] == [
        "kernel 'add' was compiled but not run: TRITON_SPIRV_COMPILE_ONLY is set; further launches are skipped without "
        "a message"
    ]
    driver.utils.unload_module(module)
    benchmark = driver.get_benchmarker()
    assert benchmark(lambda: None) == 0 and benchmark(lambda: None, return_mode="all") == [0]
    with pytest.raises(ValueError, match="return_mode is one of min, max, mean, median, all, not 'nope'"):
        benchmark(lambda: None, return_mode="nope")


@pytest.mark.usefixtures("compile_only")
def test_unknown_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_TARGET", "voodoo2")
    with pytest.raises(ValueError, match="'voodoo2' is neither a device profile"):
        SPIRVDriver().get_current_target()


@pytest.mark.usefixtures("compile_only")
@pytest.mark.parametrize(
    ("variable", "value", "active"),
    [
        (None, "", False),
        ("TRITON_SPIRV_BACKEND", "1", True),
        ("TRITON_DEFAULT_BACKEND", "spirv", True),
        ("TRITON_SPIRV_BACKEND", "true", True),
        ("TRITON_SPIRV_BACKEND", "0", False),
        ("TRITON_SPIRV_BACKEND", "false", False),
        ("TRITON_SPIRV_BACKEND", " OFF ", False),
    ],
)
def test_a_gpu_vendors_driver_goes_first(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, value: str, active: bool
) -> None:
    monkeypatch.setattr(availability, "_gpu_driver_active", lambda: True)
    for name in ("TRITON_SPIRV_BACKEND", "TRITON_DEFAULT_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, value)
    assert SPIRVDriver.is_active() is active


def test_metadata_that_contradicts_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_SPIRV_COMPILE_ONLY", raising=False)
    source = SimpleNamespace(signature={"x": "*fp32"})
    with pytest.raises(ValueError, match="kernel 'k': its metadata passes arguments that its signature does not have"):
        SPIRVDriver().launcher_cls(source, SimpleNamespace(name="k", arguments=[[1, "i32"]]))


def test_events() -> None:
    interface: Any = SPIRVDriver().get_device_interface()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="two recorded events"):
        start.elapsed_time(end)
    began = time.perf_counter()
    start.record()
    start.synchronize()  # the device takes its time when it comes to the event, not when the host records it
    time.sleep(0.01)
    end.record()
    interface.synchronize()
    assert 9 < start.elapsed_time(end) < 1e3 * (time.perf_counter() - began) + 1
    assert end.query()


def test_empty_cache() -> None:
    driver = SPIRVDriver()
    cache = driver.get_empty_cache_for_benchmark()
    if isinstance(cache, DeviceBuffer):
        cache.fill(1)
        driver.clear_cache(cache)
        assert not cache.to_numpy().any()
    else:
        cache[0] = cache[-1] = b"\1"
        driver.clear_cache(cache)
        assert cache[0] == cache[-1] == b"\0"


@pytest.mark.parametrize(("type_", "expected"), [("*fp32", "uint64_t"), ("i32", "int32_t"), ("bf16", "uint16_t")])
def test_cpp_types(type_: str, expected: str) -> None:
    assert SPIRVDriver().map_python_to_cpp_type(type_) == expected
    with pytest.raises(ValueError, match="i7 is not an argument type"):
        SPIRVDriver().map_python_to_cpp_type("i7")
