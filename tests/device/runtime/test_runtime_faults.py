"""What goes wrong outside a launch: refused modules, a missing driver, forks, closed contexts, validation."""

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
from triton.backends.spirv.runtime import KernelRejected
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.launches.launch import make_launcher
from triton.backends.spirv.runtime.vulkan import pipeline_cache
from triton.backends.spirv.runtime.vulkan.pipeline_cache import PipelineCache
from triton.backends.spirv.runtime.vulkan.presence import gpu_may_be_there

from tests.device.processes import run_script
from tests.device.validation import needs_layer

_RUN = """
values = numpy.ones(64, numpy.float32)
def run():
    load()((1, 1, 1), array(values), array(values), array(values), 64)
"""


@pytest.mark.parametrize(
    "damage",
    [
        lambda module: b"",
        lambda module: b"garbage!" * 9,
        lambda module: module[:-8],
        lambda module: module[:200],
        lambda module: module[:-1],
    ],
)
def test_damaged_module_is_saved_and_named(add_module: bytes, damage: Any) -> None:
    damaged = damage(add_module)
    with pytest.raises(KernelRejected, match=r"kernel 'a/kernel': .*saved as .*\.spv") as raised:
        Kernel(current(), "a/kernel", damaged)
    saved = Path(raised.value.path)
    assert saved.read_bytes() == damaged
    saved.unlink()


#: Says what is used, and runs a kernel on it.
_USED = (
    """
from triton.backends.spirv.driver import SPIRVDriver
print(SPIRVDriver.is_active(), SPIRVDriver.unavailable_reason())
"""
    + _RUN
    + """
run()
print(current().device.api, values[0], "vulkan" in sys.modules)
"""
)


def test_missing_driver(add_file: Path) -> None:
    """Kernels run on the processor, and a Vulkan device that is asked for is refused."""
    none = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    done = run_script(_USED, add_file, TRITON_SPIRV_DEVICE="", TRITON_SPIRV_VALIDATE="0", **none)
    assert done.stdout.startswith("True None\nCPU 2.0"), done.stderr
    done = run_script(_USED, add_file, TRITON_SPIRV_DEVICE="llvmpipe", TRITON_SPIRV_VALIDATE="0", **none)
    assert done.returncode != 0
    # What to do depends on whether there are drivers that the variable hides.
    advice = (
        "(apt-get install mesa-vulkan-drivers|VK_DRIVER_FILES=/nonexistent hides the installed drivers? .*: unset it)"
    )
    refused = r"TRITON_SPIRV_DEVICE='llvmpipe' matches no device; the devices are 0: CPU .*; "
    assert re.match(rf"False {refused}no Vulkan (driver|device) was found; .*{advice}", done.stdout), done.stdout
    assert "DeviceUnavailable: TRITON_SPIRV_DEVICE='llvmpipe' matches no device" in done.stderr


def test_missing_loader(tmp_path: Path, add_file: Path) -> None:
    """A file that is not a library, found first, hides the loader. The processor needs none, and none is looked for."""
    (tmp_path / "libvulkan.so.1").write_bytes(b"")
    hidden = {"LD_LIBRARY_PATH": str(tmp_path), "TRITON_SPIRV_VALIDATE": "0"}
    done = run_script(_USED, add_file, TRITON_SPIRV_DEVICE="cpu", **hidden)
    assert done.stdout == "True None\nCPU 2.0 False\n", done.stderr
    done = run_script(_USED, add_file, TRITON_SPIRV_DEVICE="", **hidden)
    assert done.stdout.startswith("True None\nCPU 2.0 "), done.stderr
    assert done.stdout.endswith(" False\n") or gpu_may_be_there(), "the loader was looked for without a GPU"
    done = run_script(_USED, add_file, TRITON_SPIRV_DEVICE="llvmpipe", **hidden)
    assert "; the Vulkan loader (libvulkan.so.1) is missing" in done.stdout, done.stderr


def test_unknown_device_is_refused() -> None:
    script = "from triton.backends.spirv.runtime.context import current\ncurrent()"
    done = run_script(script, TRITON_SPIRV_DEVICE="no such")
    assert "DeviceUnavailable: TRITON_SPIRV_DEVICE='no such' matches no device; the devices are 0: " in done.stderr


def test_fork_before_the_first_launch(add_file: Path) -> None:
    """It works, or the driver opens no device in the child, as NVIDIA's: then one error says what does."""
    script = """
from triton.backends.spirv.runtime.device_choice import selected
selected()
pid = os.fork()
try:
    run()
    said = values[0]
except RuntimeError as error:
    said = error
os.write(1, f"{'child' if pid == 0 else 'parent'} {said}\\n".encode())  # a line of each in one piece
if pid == 0:
    os._exit(0)  # as multiprocessing ends its children: some drivers' own handlers at exit wait for ever in one
sys.exit(os.waitpid(pid, 0)[1])
"""
    done = run_script(_RUN + script, add_file)
    assert done.returncode == 0, done.stderr
    child, parent = sorted(done.stdout.splitlines())
    assert parent == "parent 2.0"
    assert child == "child 2.0" or child.endswith("or fork before the first use of the device"), child


@pytest.mark.only_on("Vulkan", "Khronos' layer validates calls of Vulkan")
@needs_layer
def test_validation_layer_is_clean(add_file: Path) -> None:
    script = _RUN + 'run()\nassert current().validates\nprint("ran", values[0])'
    for way in ("", "staged", *(["imported"] if current().device.host_import_alignment else [])):
        done = run_script(script, add_file, TRITON_SPIRV_VALIDATE="1", TRITON_SPIRV_HOST_MEMORY=way)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("ran 2.0\n")
        assert "VUID" not in done.stdout + done.stderr


@pytest.mark.only_on("Vulkan", "Khronos' layer validates calls of Vulkan")
@needs_layer
def test_validation_errors_are_raised(add_file: Path) -> None:
    """A push-constant block larger than the device's range is the layer's to find."""
    script = """
module = Path(sys.argv[1]).with_name("large.spv").read_bytes()
run()
"""
    text = subprocess.run(["spirv-dis", "--raw-id", str(add_file)], check=True, capture_output=True, text=True).stdout
    text, changed = re.subn(
        r"(OpMemberDecorate %\d+ 3 Offset) 24", rf"\1 {current().capabilities.push_constant_bytes}", text
    )
    assert changed == 1
    subprocess.run(
        ["spirv-as", "--target-env", "vulkan1.3", "-", "-o", str(add_file.with_name("large.spv"))],
        input=text,
        text=True,
        check=True,
    )
    done = run_script(_RUN + script, add_file, TRITON_SPIRV_VALIDATE="1")
    assert "the Vulkan validation layer reported" in done.stderr
    assert "KernelRejected: kernel 'test' was refused" in done.stderr


def test_a_wrong_time_limit_is_refused() -> None:
    done = run_script("current()", TRITON_SPIRV_TIMEOUT="soon")
    assert "SettingError: TRITON_SPIRV_TIMEOUT must be a number of seconds above 0, not 'soon'" in done.stderr


def test_closed_context_refuses(add_module: bytes) -> None:
    context = Context(current().device)
    kernel = Kernel(context, "add", add_module)
    launch = make_launcher(context, "add", [], indirect=False)
    context.close()
    context.close()
    kernel.unload()
    with pytest.raises(RuntimeError, match="the device is closed"):
        launch(1, 1, 1, 0, kernel.handle, None, None, None, None)
    with pytest.raises(RuntimeError, match="the device is closed"):
        Kernel(context, "add", add_module)


def test_unload_twice(add_module: bytes) -> None:
    kernel = Kernel(current(), "add", add_module)
    assert kernel.info.local_size == (64, 1, 1)
    assert kernel.max_invocations >= 128
    kernel.unload()
    kernel.unload()


def test_host_memory_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_HOST_MEMORY", "telepathy")
    with pytest.raises(ValueError, match="must be zero-copy, imported or staged, not 'telepathy'"):
        Context(current().device)


def test_two_contexts_at_once(add_module: bytes) -> None:
    first, second = current(), Context(current().device)
    assert first.native is not second.native
    results = []
    for context in (first, second):
        kernel = Kernel(context, "add", add_module)
        launch = make_launcher(
            context,
            "add",
            [((0,), "x", "*fp32"), ((1,), "y", "*fp32"), ((2,), "z", "*fp32"), ((3,), "n", "i32")],
            indirect=False,
        )
        from triton.backends.spirv.runtime import array

        one, z = numpy.ones(64, numpy.float32), numpy.zeros(64, numpy.float32)
        launch(1, 1, 1, 0, kernel.handle, None, None, None, None, array(one), array(one), array(z), 64)
        results.append(z.sum())
        kernel.unload()
    second.close()
    assert results == [128, 128]


@pytest.mark.only_on("Vulkan", "pipelines are Vulkan's")
def test_a_pipeline_cache_that_is_no_file_is_ignored(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be read for ever."""
    os.mkfifo(tmp_path / "pipe.bin")
    (tmp_path / "folder.bin").mkdir()
    for name in ("pipe.bin", "folder.bin", "missing.bin"):
        cache = PipelineCache(current().opened.handle, tmp_path / name)
        assert cache.handle
        cache.destroy()


@pytest.mark.only_on("Vulkan", "pipelines are Vulkan's")
def test_each_module_keeps_what_its_driver_compiled(
    add_module: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a file of its own, written once and read by the next context: drivers for CPUs keep nothing of a kernel, so
    here every driver seems to have added something to an empty cache."""
    saved: list[str] = []
    save = PipelineCache.save

    def saved_if_empty(self: PipelineCache) -> None:
        assert self.path is not None
        if not self.path.exists():
            self._saved_bytes = -1
        before = self._saved_bytes
        save(self)
        if self._saved_bytes != before:
            saved.append(self.path.name)

    monkeypatch.setattr(PipelineCache, "save", saved_if_empty)
    monkeypatch.setattr(current().opened, "kept_pipelines", tmp_path / "kept")
    for _ in range(2):
        Kernel(current(), "test", add_module).unload()
    (path,) = (tmp_path / "kept").iterdir()
    assert saved == [path.name] == [f"{hashlib.sha256(add_module).hexdigest()}.bin"]
    assert pipeline_cache.unpack(path.read_bytes())


def test_host_memory_that_is_imported_twice_is_given_back_twice() -> None:
    """At one address, where host addresses are device addresses; whichever goes first."""
    alignment = current().device.host_import_alignment
    if not alignment:
        pytest.skip("the device lacks VK_EXT_external_memory_host")
    memory = numpy.zeros(3 * alignment, numpy.uint8)
    start = -(-memory.ctypes.data // alignment) * alignment
    for first, second in ((0, 1), (1, 0)):
        context = Context(current().device)
        buffers = [context.native.import_host(start, alignment) for _ in range(2)]
        place = buffers[second].address
        buffers[first].free()
        assert context.native.owns(place, alignment)
        buffers[second].free()
        assert not context.native.owns(place, alignment)
        context.close()
        context.raise_validation_errors()  # what was not given back is still there when the device is destroyed
    current().raise_validation_errors()
