"""The words of all kernels that a program compiles, before and after a change that should change none.

    python -m tests.replay record words.json
    python -m tests.replay compare words.json
    python -m tests.replay compare words.json -m pytest -n0 tests/device/test_reduce.py

Without a program it is pytest on CORPUS: each operation of Triton's language and of TTGIR, reductions, scans and dots.
The program runs in this process, and compiles each kernel anew. A kernel is known by its TTIR, without the places in
its source, and its options. `compare` shows the kernels whose words differ. Its exit status is 1 if there are any,
otherwise the program's.
"""

import argparse
import contextlib
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.kernel_times import run_program

#: pytest's arguments for a change that should change no kernel: 50 s of the processor.
CORPUS = ("tests/surface", "tests/device/test_reduce.py", "tests/device/test_scan.py", "tests/device/test_dot.py")


def _digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, str]]:
    """Kernel → the digest of its words, of those that are compiled in the block; nothing comes from Triton's cache."""
    from triton import knobs
    from triton.backends.spirv.compiler import SPIRVBackend

    words: dict[str, str] = {}
    make_ttgir, make_spirv = SPIRVBackend.make_ttgir, SPIRVBackend.make_spirv
    keys: dict[int, str] = {}

    def observed_ttgir(backend: Any, module: Any, metadata: dict[str, Any], options: Any, *more: Any) -> Any:
        keys[id(backend)] = _digest(f"{module.str_nodebug()}\n{options}\n{backend.capabilities.arch()}")
        return make_ttgir(backend, module, metadata, options, *more)

    def observed_spirv(backend: Any, module: Any, metadata: dict[str, Any], options: Any, *more: Any) -> bytes:
        spirv = make_spirv(backend, module, metadata, options, *more)
        if key := keys.pop(id(backend), ""):
            words[f"{metadata['name']} {key}"] = _digest(spirv)
        return spirv

    SPIRVBackend.make_ttgir, SPIRVBackend.make_spirv = observed_ttgir, observed_spirv  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
            knobs.cache.dir = folder
            yield words
    finally:
        SPIRVBackend.make_ttgir, SPIRVBackend.make_spirv = make_ttgir, make_spirv  # type: ignore[method-assign]


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """A line for each kernel whose words are others, and one for those that are there once alone."""
    lines = [f"{one}: {before[one]} → {after[one]}" for one in before if after.get(one, before[one]) != before[one]]
    alone = len(before.keys() ^ after.keys())
    return [*lines, *([f"{alone} kernels are compiled in one of the runs alone"] if alone else [])]


def main(arguments: list[str]) -> int:
    """Records, or compares."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    program = options.program or ["-m", "pytest", "-q", "-n0", "--each-value-of-all", *CORPUS]
    with recorded() as words:
        is_module = program[:1] == ["-m"]
        status = run_program(program[is_module:], is_module)
    if options.what == "record":
        options.file.write_text(json.dumps(words, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{len(words)} kernels in {options.file}")
        return status
    lines = differences(json.loads(options.file.read_text(encoding="utf-8")), words)
    print("\n".join(lines) or f"{len(words)} kernels have the same words")
    return status or int(any(" → " in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
