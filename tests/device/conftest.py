"""Kernels of the device tests are compiled afresh, and every module is validated."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from triton import knobs


@pytest.fixture(scope="session", autouse=True)
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this session's own, so that no module of an earlier one passes unseen; one that the environment names
    is kept. Dots of f32 have full precision where a kernel does not say: tests compare with bounds of f32."""
    os.environ.setdefault("TRITON_F32_DEFAULT", "ieee")
    os.environ.setdefault("TRITON_SPIRV_VALIDATE", "1")
    if "TRITON_CACHE_DIR" in os.environ:
        yield
        return
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path_factory.mktemp("triton-cache"))
        yield
