"""Every run of the tests compiles its kernels afresh."""

import gc
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from tests import each_value, kinds

#: The tests are of torch's device ``spirv``, also beside another accelerator of torch. It is made known when torch is
#: imported, which is when the first test module is.
os.environ.setdefault("TRITON_SPIRV_TORCH_DEVICE", "1")


#: Tests compare what programs write.
os.environ.setdefault("TRITON_SPIRV_QUIET", "1")


#: What a folder in memory has to have, in bytes: a run's cache takes less than half of it.
ROOM = 2 << 30


@pytest.fixture(scope="session", autouse=True)
def verified_rewrites() -> None:
    """TTGIR is verified behind each rewrite, in the processes that tests start, too."""
    os.environ.setdefault("TRITON_SPIRV_VERIFY", "1")


def _settings() -> dict[str, str]:
    # torch 2.11 sets this one where it compiles.
    names = [name for name in os.environ if name.startswith(("TRITON_", "VK_")) and name != "TRITON_PTXAS_PATH"]
    return {name: os.environ[name] for name in names}


@pytest.fixture(autouse=True)
def untouched_settings() -> Iterator[None]:
    """A test that leaves a setting behind fails, rather than the test that the setting reaches."""
    before = _settings()
    yield
    assert _settings() == before, "the test changed the environment: use monkeypatch"


@pytest.fixture(autouse=True)
def drawn_alike() -> None:
    """What a test draws does not depend on what ran before it in its process."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)
    if own := sys.modules.get("triton.backends.spirv.torch.device.random_state"):
        own.GENERATOR.reseed(0)


def pytest_configure(config: pytest.Config) -> None:
    """Property tests have no limit of time, as machines are busy, and those of each change draw the same values.

    A cache of this run's own, for its workers and the processes that tests start, so that nothing of an earlier run
    passes unseen; one that the environment names is kept. It is in memory, where there is room: a run writes very many
    small files, and a disk may take milliseconds for each."""
    settings.register_profile("here", deadline=None, derandomize=config.getoption("each_value"))
    settings.load_profile("here")
    if "TRITON_CACHE_DIR" in os.environ:
        return
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM
    cache = tempfile.mkdtemp(prefix="triton-spirv-tests-", dir=memory if has_room else None)
    os.environ["TRITON_CACHE_DIR"] = cache
    config.add_cleanup(partial(os.environ.pop, "TRITON_CACHE_DIR"))
    config.add_cleanup(partial(shutil.rmtree, cache, ignore_errors=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    """See kinds.py and each_value.py."""
    parser.addoption(
        "--vulkan-part", action="store_true", help="run the tests that have to pass on a Vulkan device, too"
    )
    parser.addoption(
        "--each-value", action="store_true", help="of large matrices, run cells that have each value of each parameter"
    )
    parser.addoption("--each-value-of-all", action="store_true", help="the same of all matrices")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that the Vulkan part has nothing of is not imported."""
    if config.getoption("vulkan_part") and not kinds.may_be_in_vulkan_part(collection_path):
        return True
    return None


def pytest_collection_finish() -> None:
    """What is there when tests begin stays, so that a garbage collection in a test looks at what the tests made alone:
    it takes milliseconds instead of a second."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Everything is collected again, for what looks at the end whether it was."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See kinds.py and each_value.py."""
    kinds.choose(config, items)
    each_value.choose(config, items)
