"""TRITON_SPIRV_VALIDATE=1 checks modules that are loaded, not only those that are compiled."""

import array

import pytest
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.modules import validate

from tests.device.validation import needs_layer
from tests.lowering.harness import compile_body


def invalid_module() -> bytes:
    """A kernel's module whose header bounds its ids by 2 (SPIR-V specification, 2.3, word 3)."""
    words = array.array("I", compile_body("", ""))
    words[3] = 2
    return words.tobytes()


@needs_layer
def test_a_module_of_the_cache_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_VALIDATE", "1")
    with pytest.raises(validate.InvalidModule, match="spirv-val rejects the module of kernel 'cached'"):
        Kernel(current(), "cached", invalid_module())


@needs_layer
def test_a_module_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_VALIDATE", "1")
    spirv, runs = compile_body("", ""), []
    run = validate.subprocess.run
    monkeypatch.setattr(validate, "_passed", set())
    monkeypatch.setattr(validate.subprocess, "run", lambda *args, **options: runs.append(args) or run(*args, **options))
    for _ in range(2):
        validate.validate_module(spirv, "kernel")
    assert len(runs) == 1
