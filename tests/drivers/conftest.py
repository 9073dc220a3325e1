"""What Mesa's compilers say of GPUs that are not there, for the tests that look at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection.offline import NoMesa, processes

from benchmarks.mesa_shaders import Compiler, compiled_examples, shaders


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Compiler], dict[str, Any]]:
    """What a compiler says of the device and of all examples' kernels; skips where it is not there."""

    def ask(compiler: Compiler) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("modules")
        try:
            next(processes(PROFILES[compiler.profile].driver, folder))
        except NoMesa as error:
            pytest.skip(str(error))
        return shaders(compiled_examples(folder, compiler), compiler)

    return ask


@pytest.fixture(scope="module")
def known(request: pytest.FixtureRequest, examples: Callable[[Compiler], dict[str, Any]]) -> dict[str, Any]:
    """What the compiler that the test's module names, COMPILER, says of the device and of all examples' kernels."""
    return examples(request.module.COMPILER)
