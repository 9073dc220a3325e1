"""Runs generated kernels here and in upstream's interpreter, and compares what they compute."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from triton.backends.spirv import driver_quirks

from tests.fuzz.programs import FOOTER, HEADER, Program
from tests.lacking import lacked
from tests.written import imported


class Generated(Protocol):
    """A dataclass of a generated kernel. ``body``: its statements; ``stores``: those that store results, behind it."""

    @property
    def number(self) -> int: ...
    @property
    def body(self) -> tuple[str, ...]: ...
    @property
    def stores(self) -> tuple[str, ...]: ...
    @property
    def source(self) -> str: ...


#: A sort of generated kernels.
G = TypeVar("G", bound=Generated)


@dataclass(frozen=True)
class Found:
    """What became of a kernel of this ``source``: ``fault`` is empty if nothing was wrong. ``seconds``: of processor
    time."""

    fault: str
    source: str
    seconds: float


@dataclass(frozen=True)
class Outcome(Generic[G]):
    """What became of a program: ``fault`` is empty if it computed what was expected. ``refused``: the fault is an
    error that was raised here, not a wrong value. ``seconds``: of processor time, to compile and run it
    here."""

    program: G
    fault: str
    refused: bool
    seconds: float


@contextlib.contextmanager
def driver_traits(traits: Mapping[str, Any]) -> Iterator[None]:
    """Kernels that are compiled in the block are for compilers with these traits (backend/driver_quirks.py)."""
    kept = dict(driver_quirks.DRIVERS)
    driver_quirks.DRIVERS.update({name: replace(driver, **traits) for name, driver in kept.items()})
    try:
        yield
    finally:
        driver_quirks.DRIVERS.update(kept)


def write_module(programs: Sequence[Program], folder: Path) -> Path:
    """A file with all the programs' kernels."""
    path = folder / "programs.py"
    path.write_text(HEADER + "".join(program.source for program in programs) + FOOTER, encoding="utf-8")
    return path


def interpreted(path: Path) -> dict[str, np.ndarray]:
    """What upstream's interpreter computes, as FOOTER names it."""
    results = path.with_suffix(".npz")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(path), str(results)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the interpreter failed: {done.stderr[-3000:]}")
    return dict(np.load(results))


def load(path: Path) -> ModuleType:
    """The module, to be run on the device."""
    return imported(path, f"generated_{path.parent.name.replace('-', '_')}")


def fault_of(error: Exception) -> str:
    """What is wrong where a launch raises an error: nothing if the device lacks what the kernel needs."""
    return "" if lacked(error) else f"{type(error).__name__}: {error}"


def compare(programs: Sequence[Program], folder: Path) -> list[Outcome[Program]]:
    """The outcome of each program that the interpreter can run."""
    path = write_module(programs, folder)
    expected, module = interpreted(path), load(path)
    outcomes = []
    for program in programs:
        if f"{program.number}_error" in expected:
            continue
        start = time.process_time()
        fault, refused = "", False
        try:
            for index, output in enumerate(module.run(program.number)):
                wanted = expected[f"{program.number}_{index}"]
                wrong = int((output != wanted).sum())
                if wrong:
                    fault = fault or f"output {index}: {wrong} of {wanted.size} values are wrong"
        except Exception as error:
            fault, refused = fault_of(error), True
        outcomes.append(Outcome(program, fault, refused, time.process_time() - start))
    return outcomes
