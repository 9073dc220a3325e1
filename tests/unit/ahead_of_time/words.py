"""What every example was compiled to, for every profile, when it was last meant to change.

``python -m tests.unit.ahead_of_time.words [PROFILE …]`` records the digests anew; say in the commit why they changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"
RECORD = Path(__file__).with_name("words.json")


def key(example: str, kernel: str, signature: str, profile: str) -> str:
    """The name of one compilation in the record."""
    return f"{example}.{kernel} {hashlib.sha256(signature.encode()).hexdigest()[:8]} {profile}"


def digest(module: bytes) -> str:
    """What the record holds of a module."""
    return hashlib.sha256(module).hexdigest()[:16]


def arguments(example: str, kernel: str, signature: str, profile: str, module: Path) -> list[str]:
    """The arguments of ``triton-spirv`` for one compilation."""
    source = f"{EXAMPLES / example}.py:{kernel}"
    return ["compile", source, "--signature", signature, "--target", profile, "-o", str(module)]


def recorded() -> dict[str, str]:
    """The record."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8")))


def main(profiles: list[str]) -> None:
    """Record, for some profiles or for all."""
    from triton.backends.spirv import cli
    from triton.backends.spirv.capabilities import PROFILES

    from benchmarks.example_kernels import KERNELS

    words = recorded() if profiles else {}
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "kernel.spv"
        for profile in profiles or PROFILES:
            for kernel in KERNELS:
                if cli.main(arguments(*kernel, profile, module)):
                    raise SystemExit(f"{kernel} does not compile for {profile}")
                words[key(*kernel, profile)] = digest(module.read_bytes())
    RECORD.write_text(json.dumps(words, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
