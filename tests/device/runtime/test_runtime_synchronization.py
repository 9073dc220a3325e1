"""Copies, fills and launches wait for each other, also with timestamps between them: the validation layer's
synchronization validation finds no hazard.

It knows the buffers of copies and fills, not what a kernel reaches by address. The tests of values are for that.
"""

import os
import re
from pathlib import Path

import pytest

from tests.device.processes import run_script
from tests.device.validation import needs_layer

#: Under the setting names of layers of 2023 and of today's layers, which print that the old names are deprecated.
_SETTINGS = """
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,\
VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
khronos_validation.validate_sync = true
khronos_validation.syncval_submit_time_validation = true
"""

#: Each step reads or writes what the one before it wrote: in one command buffer, over several, and in a graph.
_WORK = """
from triton.backends.spirv.runtime import Graph
def work():
    values = numpy.arange(3 << 20, dtype=numpy.float32)  # more than a staging buffer
    x = buffers.from_numpy(values)
    x.copy_from(values)
    y, z = buffers.empty(x.shape, "float32"), buffers.zeros(x.shape, "float32")
    y.copy_from(x)
    y.fill(2)
    event = current().native_module.Event(current().native, current().native.has_timestamps)
    event.record()
    z.copy_from(y)
    event.record()
    event.record()
    y.fill(3)
    assert (z.to_numpy() == 2).all() and (y.to_numpy() == 3).all()
    y.fill(2)
    current().native.synchronize()
    z.copy_from(x)
    assert (z.to_numpy() == values).all()
    launch = load()
    launch((1, 1, 1), x, y, z, 64)
    graph = Graph()
    with graph.capture():
        launch((1, 1, 1), z, y, z, 64)
    graph.replay()
    graph.replay()
    result = z.to_numpy()
    values[:64] += 6
    assert (result == values).all()
    host = numpy.ones(64, numpy.float32)
    launch((1, 1, 1), array(host), x, array(host), 64)
    assert (host[1:] != 1).all()
try:
    work()
    current().raise_validation_errors()
    print("no hazard")
except Exception as error:
    print(error)
"""


def _told(module: Path, folder: Path, layer: dict[str, str], **environment: str) -> str:
    settings = folder / "vk_layer_settings.txt"
    settings.write_text(_SETTINGS)
    done = run_script(
        _WORK, module, TRITON_SPIRV_VALIDATE="1", VK_LAYER_SETTINGS_PATH=str(settings), **layer, **environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _beside_installed(layer: dict[str, str]) -> dict[str, str]:
    """The environment of a layer alone, made to find those that are installed, too."""
    if "VK_LAYER_PATH" in os.environ:
        return {**layer, "VK_LAYER_PATH": f"{layer['VK_LAYER_PATH']}:{os.environ['VK_LAYER_PATH']}"}
    return {"VK_ADD_LAYER_PATH" if name == "VK_LAYER_PATH" else name: value for name, value in layer.items()}


@needs_layer
@pytest.mark.parametrize("way", ["", "staged"])
def test_no_hazard(add_file: Path, tmp_path: Path, way: str) -> None:
    assert _told(add_file, tmp_path, {}, TRITON_SPIRV_HOST_MEMORY=way).endswith("no hazard\n")


@needs_layer
def test_hazards_are_told(add_file: Path, tmp_path: Path, faulty_layer: dict[str, str]) -> None:
    """Where no barrier reaches the validation layer, it finds some: the test above can fail."""
    layer = _beside_installed(faulty_layer)
    assert re.search("SYNC-HAZARD-|_AFTER_WRITE hazard", _told(add_file, tmp_path, layer, FAULTY_BARRIERS="1"))
    assert _told(add_file, tmp_path, layer).endswith("no hazard\n")
