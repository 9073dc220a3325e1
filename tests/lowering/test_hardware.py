"""tl.extra.cuda's reads of the hardware: the instructions, and the refusals where the device lacks them."""

from dataclasses import replace

import pytest
from triton.backends.spirv.ahead_of_time.features import required_features
from triton.backends.spirv.lowering.errors import UnsupportedOperation

from tests.lowering.harness import LAVAPIPE, compile_body, disassemble

READ = """
    %t = tt.extern_elementwise {{libname = "", libpath = "", pure = false, symbol = "{}"}} : () -> {}
    tt.store %p, %t : !tt.ptr<{}>"""


def _read(symbol: str, type_: str, feature: str | None) -> bytes:
    capabilities = replace(LAVAPIPE, features=LAVAPIPE.features | ({feature} if feature else set()))
    return compile_body(READ.format(symbol, type_, type_), f"%p: !tt.ptr<{type_}>", capabilities=capabilities)


def test_device_clock() -> None:
    spirv = _read("__spirv_device_clock", "i64", "device_clock")
    text = disassemble(spirv)
    assert "OpCapability ShaderClockKHR" in text and 'OpExtension "SPV_KHR_shader_clock"' in text
    assert "OpReadClockKHR" in text and "device_clock" in required_features(spirv)


def test_multiprocessor() -> None:
    spirv = _read("__spirv_multiprocessor", "i32", "multiprocessor_built_ins")
    text = disassemble(spirv)
    assert "OpCapability ShaderSMBuiltinsNV" in text and "BuiltIn SMIDNV" in text
    assert "multiprocessor_built_ins" in required_features(spirv)


@pytest.mark.parametrize(
    ("symbol", "type_", "feature"),
    [
        ("__spirv_device_clock", "i64", "shaderDeviceClock"),
        ("__spirv_multiprocessor", "i32", "VK_NV_shader_sm_builtins"),
    ],
)
def test_refused_without_the_feature(symbol: str, type_: str, feature: str) -> None:
    with pytest.raises(UnsupportedOperation, match=feature):
        _read(symbol, type_, None)
