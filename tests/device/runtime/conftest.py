"""Kernels written by hand in SPIR-V (assembly/), and what launches them, for tests of the runtime alone.

They follow the backend's ABI (docs/internals/abi.md): a push-constant block, physical storage addresses, no
descriptor sets.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime import array
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.launches.launch import make_launcher

from tests.spirv_val import validated

#: Seconds for a test of the runtime. The tests of other folders only compute; these may wait for what never comes.
_SECONDS = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that hangs ends the run, with the stacks of all threads: a thread that waits in a driver cannot be told
    to stop."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_SECONDS, method="thread"))


def assembled(name: str, local_size: int, count: int = 0) -> bytes:
    """The module of a file of assembly/, checked with spirv-val."""
    text = (Path(__file__).parent / "assembly" / f"{name}.spvasm").read_text("ascii")
    text = text.replace("LOCAL_SIZE", str(local_size)).replace("COUNT", str(count))
    if shutil.which("spirv-as") is None:
        pytest.fail("spirv-as is missing; install it with: apt-get install spirv-tools")
    module = subprocess.run(
        ["spirv-as", "--target-env", "vulkan1.3", "-", "-o", "-"], input=text.encode(), check=True, capture_output=True
    ).stdout
    return validated(module)


@pytest.fixture(scope="session")
def add_module() -> bytes:
    """z[i] = x[i] + y[i] for i < n; arguments (*fp32 x, *fp32 y, *fp32 z, i32 n); 64 elements a workgroup."""
    return assembled("add", 64)


@pytest.fixture(scope="session")
def word_module() -> Callable[..., bytes]:
    """(count, indirect, local_size=1) → a module that writes the ``count`` words of its argument block to its first
    argument (*u32), one an invocation: grid (count / local_size, 1, 1)."""
    return lambda count, indirect, local_size=1: assembled("words_indirect" if indirect else "words", local_size, count)


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """The module of a kernel that takes long, but ends, with a large grid: a GPU cannot be told to give one up. Its
    argument is a *u32 that points at 0."""
    path = tmp_path / "long.spv"
    path.write_bytes(assembled("long", 8))
    return path


@pytest.fixture
def add_file(add_module: bytes, tmp_path: Path) -> Path:
    """The module of the add kernel, for its own process."""
    path = tmp_path / "add.spv"
    path.write_bytes(add_module)
    return path


ADD_ENTRIES = [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")]


class Launchable:
    """A kernel of the current device, called as ``kernel(grid, *arguments)``."""

    def __init__(
        self,
        context: Context,
        spirv: bytes,
        entries: Sequence[Any],
        indirect: bool = False,
        written: Sequence[str] | None = None,
    ) -> None:
        self.context = context
        self.kernel = Kernel(context, "test", spirv)
        self.launcher: Any = make_launcher(context, "test", entries, indirect, written)

    def __call__(
        self, grid: tuple[int, ...], *arguments: Any, hooks: tuple[Any, Any] = (None, None), launch_metadata: Any = None
    ) -> None:
        grid = (*grid, 1, 1)[:3]
        self.launcher(*grid, 0, self.kernel.handle, None, launch_metadata, *hooks, *arguments)


@pytest.fixture(params=["default", "staged", "imported"])
def context(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """The device's own context, and one with each other way for host memory."""
    own = current()  # opened before the variable is set
    if request.param == "default":
        yield own
        return
    if request.param == "imported" and not own.device.host_import_alignment:
        pytest.skip("the device lacks VK_EXT_external_memory_host")
    monkeypatch.setenv("TRITON_SPIRV_HOST_MEMORY", request.param)
    other = Context(own.device)
    yield other
    other.close()


@pytest.fixture(params=["", "staged", "imported"])
def way(request: pytest.FixtureRequest) -> str:
    """TRITON_SPIRV_HOST_MEMORY, with each value that the device takes."""
    if request.param == "imported" and not current().device.host_import_alignment:
        pytest.skip("the device lacks VK_EXT_external_memory_host")
    return str(request.param)


@pytest.fixture(scope="session")
def faulty_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment that puts the layer of faulty_layer.cpp before the driver."""
    folder = tmp_path_factory.mktemp("layer")
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.fail("a C++ compiler is missing; install one with: apt-get install g++")
    source = Path(__file__).with_name("faulty_layer.cpp")
    subprocess.run(
        [compiler, "-shared", "-std=c++17", "-fPIC", "-O1", "-o", str(folder / "libfaulty.so"), str(source)], check=True
    )
    layer = {
        "name": "VK_LAYER_TEST_faulty",
        "type": "GLOBAL",
        "library_path": str(folder / "libfaulty.so"),
        "api_version": "1.3.0",
        "implementation_version": "1",
        "description": "makes calls fail",
    }
    (folder / "faulty.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": layer}))
    return {"VK_LAYER_PATH": str(folder), "VK_INSTANCE_LAYERS": "VK_LAYER_TEST_faulty"}


@pytest.fixture
def launchable(context: Context) -> Callable[..., Launchable]:
    """Makes a Launchable on the context."""
    return lambda *args, **kwargs: Launchable(context, *args, **kwargs)


@pytest.fixture
def add(launchable: Callable[..., Launchable], add_module: bytes) -> Iterator[Launchable]:
    """The add kernel, loaded."""
    loaded = launchable(add_module, ADD_ENTRIES)
    yield loaded
    loaded.kernel.unload()


def padded(values: Any, before: int = 0, after: int = 64) -> tuple[Any, Any]:
    """(whole, part): an array with ``values`` at ``before`` elements in, and its view of them; the rest is -7."""
    whole = numpy.full(before + len(values) + after, -7, values.dtype)
    whole[before : before + len(values)] = values
    return whole, whole[before : before + len(values)]


@pytest.fixture
def make_padded() -> Callable[..., tuple[Any, Any]]:
    """``padded``."""
    return padded


@pytest.fixture
def view() -> Callable[[Any], Any]:
    """NumPy array → kernel argument."""
    return array
