"""The file of TRITON_SPIRV_TUNED: which configuration autotuning has chosen for a kernel, a key and a device.

It is JSON with one choice a line, in a fixed order, so that it can be committed, and differs from an older one in the
lines of what changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..runtime.files import write_whole

FORMAT = 1


class TunedFileError(ValueError):
    """A file that has no choices that can be read. The message has its path, and what is wrong."""


class NotTuned(RuntimeError):
    """A kernel that the file has no choice for, where measuring is refused. The message says of what."""


@dataclass(frozen=True)
class TunedConfig:
    """Which configuration a kernel has. ``source``: a digest of its text. ``key``: what its choice depends on, by name:
    arguments that autotune's ``key`` lists, and the element types of tensors. ``config``: the configuration's constants
    and options. ``versions``: of what has measured it."""

    kernel: str
    source: str
    device: str
    key: Mapping[str, Any]
    config: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """What it is a choice for."""
        return self.kernel, self.device, json.dumps(self.key, sort_keys=True), self.source

    def line(self) -> str:
        """The choice as the file has it."""
        return json.dumps(asdict(self), sort_keys=True)

    def __str__(self) -> str:
        key, config = (", ".join(f"{name}={value}" for name, value in of.items()) for of in (self.key, self.config))
        return f"{self.kernel} ({key}) on {self.device}: {config}"


def read(path: Path) -> list[TunedConfig]:
    """The choices of a file; none of one that is not there. Raises TunedFileError and OSError."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise TunedFileError(f"{path} is not JSON: {error}") from None
    try:
        if told["format"] != FORMAT:
            raise TunedFileError(f"{path} has format {told['format']}, and this version reads format {FORMAT}")
        return [TunedConfig(**one) for one in told["choices"]]
    except (KeyError, TypeError) as error:
        raise TunedFileError(f"{path} is no file of TRITON_SPIRV_TUNED: {error}") from None


def write(path: Path, choices: Iterable[TunedConfig]) -> None:
    """Writes a whole file. Raises OSError."""
    lines = ",\n".join(one.line() for one in sorted(choices, key=lambda one: one.subject))
    write_whole(path, f'{{"format": {FORMAT}, "choices": [\n{lines}\n]}}\n'.encode())


def merged(*files: Iterable[TunedConfig]) -> list[TunedConfig]:
    """The choices of several files: of two for the same subject the last one."""
    return list({one.subject: one for choices in files for one in choices}.values())


def find(
    choices: Iterable[TunedConfig], kernel: str, source: str, device: str, values: Mapping[str, Any]
) -> TunedConfig | None:
    """The choice for a launch with these ``values``; None without one."""
    for one in choices:
        if (one.kernel, one.source, one.device) == (kernel, source, device):
            if all(name in values and values[name] == value for name, value in one.key.items()):
                return one
    return None
