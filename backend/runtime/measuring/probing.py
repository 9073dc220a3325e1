"""How kernels that measure a device are run, and where their results are kept.

What was measured is in files next to the pipeline caches, by the device and its driver's version.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ...spirv import opcodes as op
from ...spirv.function import FunctionBuilder
from ...spirv.module import ModuleBuilder
from ...spirv.opcodes import BuiltIn, Capability_, StorageClass
from ..arrays import array
from ..context import Context
from ..device_kind import DeviceInfo
from ..files import kept_folder, write_whole
from ..kernel import Kernel
from ..launches.launch import make_launcher

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

#: What a driver may make of a probe: a call fails, the module is rejected, or validation reports it (RuntimeErrors).
#: Anything else is a mistake in the probe.
DRIVER_FAULTS = (RuntimeError, OSError)


def read_inputs(module: ModuleBuilder, f: FunctionBuilder) -> tuple[int, int]:
    """The ids of the address that is the kernel's argument, and of the lane."""
    module.capability(Capability_.GroupNonUniform)
    block = module.struct([module.array(module.u32, 2, 4)], [0])
    variable = module.variable(StorageClass.PushConstant, block, "arguments")
    pointer = module.pointer(StorageClass.PushConstant, module.u32)
    halves = [f.load(module.u32, f.access(pointer, variable, module.uint(0), module.uint(half))) for half in (0, 1)]
    pair = f.emit(op.CompositeConstruct, module.vector(module.u32, 2), *halves)
    lane = f.load(module.u32, module.built_in(BuiltIn.SubgroupLocalInvocationId, module.u32, "lane"))
    return f.bitcast(pair, module.int(64)), lane


def run(context: Context, module: bytes, data: Any) -> None:
    """Runs a kernel named ``probe``, of one subgroup, whose argument is the address of the NumPy array ``data``. Raises
    what a launch does. It has a thread of its own: what this one launches may be captured (launches/graph.py)."""
    with ThreadPoolExecutor(1) as own:
        own.submit(_run, context, module, data).result()


def _run(context: Context, module: bytes, data: Any) -> None:
    kernel = Kernel(context, "probe", module)
    try:
        launch = make_launcher(context, "probe", [((0,), "data", "*i8")], False, {"data"})
        launch(1, 1, 1, 0, kernel.handle, None, None, None, None, array(data.view("int8")))
    finally:
        kernel.unload()


class Record:
    """The file with what was measured of ``subject``. ``key``: what the result depends on, besides the device, its
    driver's version and its subgroups."""

    def __init__(self, device: DeviceInfo, subject: str, key: object) -> None:
        assert device.capabilities is not None
        parts = (key, device.driver_version, device.capabilities.subgroup_size)
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        self._path = kept_folder() / f"{device.driver}-{device.uuid}-{digest}.{subject}.json"

    def read(self, parse: Callable[[list[str]], _T]) -> _T | None:
        """What ``parse`` makes of the texts that were written; None if there are none, or they are damaged."""
        try:
            return parse(json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            _log.info("what was measured, in %s, is ignored: %s", self._path, error)
            return None

    def write(self, texts: list[str]) -> None:
        """Replaces the file as a whole, so that many processes can share it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(texts).encode(), private=True)
        except OSError as error:
            _log.info("what was measured was not saved in %s: %s", self._path, error)
