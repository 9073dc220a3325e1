"""Autotuning by the file of TRITON_SPIRV_TUNED: what the file has is not measured, and what was measured goes into it.

Triton asks its driver's before it measures (triton/runtime/autotune_store.py).
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import settings
from ..availability import chosen
from ..runtime import context
from . import tuned_file
from .tuned_file import NotTuned, TunedConfig

_log = logging.getLogger(__name__)


def source_of(function: Any) -> str:
    """A digest of a JITFunction's text, without its name, decorators and place: torch.compile's copy has the same."""
    text = re.sub(r"^def\s+\w+", "def", function.src.strip())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def key_of(args: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """What a choice depends on: the arguments of these names, and the element type of each tensor."""
    key = {name: _plain(args[name]) for name in names if name in args}
    return key | {f"{name}.dtype": str(value.dtype) for name, value in args.items() if hasattr(value, "dtype")}


def config_of(config: Any) -> dict[str, Any]:
    """What a triton.Config sets, as the file has it: all but options that are as they always are."""
    return {name: _plain(value) for name, value in config.all_kwargs().items()}


class Choices:
    """The file's choices, as Triton's autotuner asks for them."""

    def __init__(self) -> None:
        self._read: tuple[Path, tuple[int, int], list[TunedConfig]] | None = None

    def find(self, autotuner: Any, args: Mapping[str, Any], configs: list[Any]) -> Any:
        """The one of ``configs`` that the file has; None where it is to be measured. Raises NotTuned where that is
        refused, and TunedFileError."""
        path = self.path()
        if path is None:
            return None
        return self.of_configs(path, function_of(autotuner), args, autotuner.keys, configs)

    def keep(self, autotuner: Any, args: Mapping[str, Any], config: Any) -> None:
        """Writes a choice into the file."""
        path = self.path()
        if path is not None:
            self.write(path, function_of(autotuner), args, autotuner.keys, config)

    @staticmethod
    def code(kernel: Any) -> Any:
        """What a compiled kernel runs: two of one module take as long, with the same arguments."""
        return getattr(kernel.metadata, "sha256", None)

    def path(self) -> Path | None:
        """The file; None where there is none, or kernels do not go to this backend."""
        name = settings.TUNED.get()
        return Path(name) if name and chosen() else None

    def of_configs(
        self, path: Path, function: Any, args: Mapping[str, Any], names: Iterable[str], configs: list[Any]
    ) -> Any:
        """What find() gives, for a JITFunction; ``names``: of all arguments that a choice may depend on."""
        name, device, values = function.__name__, context.current().device.name, key_of(args, names)
        found = tuned_file.find(self._choices(path), name, source_of(function), device, values)
        for config in configs if found is not None else ():
            if config_of(config) == found.config:  # type: ignore[union-attr]
                return config
        if settings.TUNED_MISSING.get() == settings.REFUSE:
            shown = ", ".join(f"{key}={value}" for key, value in values.items())
            why = "is no longer among its configurations" if found else "is not there"
            raise NotTuned(
                f"kernel '{name}' ({shown}) has no choice for {device}: what {path} has for it {why}. "
                f"Run once with {settings.TUNED_MISSING.name}={settings.MEASURE}, which writes it into the file"
            )
        return None

    def write(self, path: Path, function: Any, args: Mapping[str, Any], names: Iterable[str], config: Any) -> None:
        """Puts a choice into the file; a line in the log where that cannot be done."""
        key = key_of(args, names)
        device = context.current().device
        versions = {"triton": version("triton"), "driver": f"{device.driver} {device.driver_version}".strip()}
        choice = TunedConfig(function.__name__, source_of(function), device.name, key, config_of(config), versions)
        try:
            tuned_file.write(path, tuned_file.merged(tuned_file.read(path), [choice]))
        except OSError as error:
            _log.warning("%s: the choice for %s is not kept: %s", settings.TUNED.name, choice.kernel, error)

    @staticmethod
    def are_of_one(autotuner: Any, function: Any) -> bool:
        """Whether an autotuner's kernel has the text of a JITFunction."""
        return source_of(function_of(autotuner)) == source_of(function)

    def _choices(self, path: Path) -> list[TunedConfig]:
        try:
            about = path.stat()
        except OSError:
            return []
        stamp = about.st_mtime_ns, about.st_size
        if self._read is None or self._read[:2] != (path, stamp):
            self._read = path, stamp, tuned_file.read(path)
        return self._read[2]


CHOICES = Choices()


def function_of(autotuner: Any) -> Any:
    """The JITFunction inside an autotuner, below other decorators."""
    from triton.runtime.jit import JITFunction

    function = autotuner.fn
    while not isinstance(function, JITFunction):
        function = function.fn
    return function


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
