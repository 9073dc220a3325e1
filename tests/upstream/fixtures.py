"""What upstream's conftest.py gives its tests, for a folder of them that was copied without it."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """torch's device, as upstream's tests are told it."""
    parser.addoption("--device", default="cuda")


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Any:
    """torch's device."""
    return request.config.getoption("--device")


@pytest.fixture
def fresh_triton_cache(tmp_path: Path) -> Iterator[str]:
    """A cache of the test's own."""
    from triton import knobs

    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield knobs.cache.dir


@pytest.fixture
def fresh_triton_cache_scope() -> Callable[[], Any]:
    """A context in which everything is compiled again."""
    from triton import knobs

    @contextlib.contextmanager
    def scope() -> Iterator[None]:
        with knobs.compilation.scope(), knobs.runtime.scope():
            knobs.compilation.always_compile = True
            yield

    return scope


@pytest.fixture
def fresh_knobs(request: pytest.FixtureRequest) -> Any:
    """Knobs as they are without a program's settings."""
    from triton import _internal_testing

    make, undo = _internal_testing._fresh_knobs_impl(skipped_attr={"build", "nvidia", "amd"})
    request.addfinalizer(undo)
    return make()


@pytest.fixture
def with_allocator(request: pytest.FixtureRequest) -> None:
    """An allocator of torch's memory."""
    import triton
    from triton import _internal_testing
    from triton.runtime import _allocation

    request.addfinalizer(lambda: triton.set_allocator(_allocation.NullAllocator()))
    triton.set_allocator(_internal_testing.default_alloc_fn)
