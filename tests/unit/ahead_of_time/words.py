"""What every example was compiled to, for every profile, when it was last meant to change.

``python -m tests.unit.ahead_of_time.words [PROFILE …]`` records the digests anew, and the disassembly of some of them
(``readable/``), so that a change can be read; say in the commit why they changed.
"""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"
RECORD = Path(__file__).with_name("words.json")
#: The disassembly of READABLE, for each of READABLE_PROFILES.
FOLDER = Path(__file__).with_name("readable")
READABLE = ("add_kernel", "descend_kernel", "error_kernel", "gelu_kernel", "softmax_kernel")
READABLE_PROFILES = ("amd-rdna3", "generic", "nvidia-hopper", "qualcomm-adreno7")

#: Recorded with fused multiply-adds, whatever Triton's default is.
FUSED = ("TRITON_DEFAULT_FP_FUSION", "1")


def key(example: str, kernel: str, signature: str, profile: str) -> str:
    """The name of one compilation in the record."""
    return f"{example}.{kernel} {hashlib.sha256(signature.encode()).hexdigest()[:8]} {profile}"


def digest(module: bytes) -> str:
    """What the record holds of a module."""
    return hashlib.sha256(module).hexdigest()[:16]


def readable(kernel: str, profile: str) -> Path | None:
    """Where the disassembly of a kernel is kept; None for most of them."""
    kept = kernel in READABLE and profile in READABLE_PROFILES
    return FOLDER / f"{kernel}-{profile}.spvasm" if kept else None


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
    from triton.backends.spirv.spirv.disassemble import disassemble

    from benchmarks.example_kernels import KERNELS

    os.environ.update([FUSED])
    words = recorded() if profiles else {}
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "kernel.spv"
        for profile in profiles or PROFILES:
            for kernel in KERNELS:
                if cli.main(arguments(*kernel, profile, module)):
                    raise SystemExit(f"{kernel} does not compile for {profile}")
                words[key(*kernel, profile)] = digest(module.read_bytes())
                file = readable(kernel[1], profile)
                if file is not None:
                    file.parent.mkdir(exist_ok=True)
                    file.write_text(disassemble(module.read_bytes()), encoding="utf-8")
    RECORD.write_text(json.dumps(words, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
