"""What one of Mesa's compilers says of modules, for a GPU that need not be there.

amd_shaders.py, intel_shaders.py and nvidia_shaders.py are tables of this. How the compilers are reached without a GPU
is in backend/inspection/offline.py; docs/internals/testing.md says what has to be built for it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Compiler:
    """``profile``: which modules are made for, whose driver is asked. ``figures``: name here → the driver's names, of
    which one is there. ``counts``: name here → a regular expression that each of the device's instructions that are
    counted has once."""

    profile: str
    figures: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, str] = field(default_factory=dict)


def check(modules: Sequence[Path]) -> None:
    """Raises ValueError on a damaged module."""
    from triton.backends.spirv.runtime.modules.module_info import read_module

    for module in modules:
        try:
            read_module(module.read_bytes())
        except ValueError as error:
            raise ValueError(f"{module}: {error}") from None


def shaders(modules: Sequence[Path], compiler: Compiler) -> dict[str, Any]:
    """What the driver says of the device, and of each module: ``{"device": …, "shaders": [{"module": …, figures …}]}``.

    Raises NoMesa, ValueError on a damaged module, RuntimeError with the driver's own words where it refuses one.
    """
    from triton.backends.spirv.capabilities import PROFILES
    from triton.backends.spirv.driver_quirks import DRIVERS
    from triton.backends.spirv.inspection.compilers import compiled_offline
    from triton.backends.spirv.runtime.modules.module_info import read_module

    check(modules)
    target = PROFILES[compiler.profile]
    code = DRIVERS[target.driver].machine_code
    device, answers = compiled_offline(target.driver, modules, target.subgroup_size, seconds=None)
    rows = []
    for path, answer in zip(modules, answers, strict=True):
        (executable,) = answer.executables
        said = {one.name: one.value for one in executable.statistics}
        text = next((one.text for one in executable.representations if one.name == code), "")
        invocations = read_module(path.read_bytes()).invocations
        row = {
            "module": path.stem,
            "lanes": executable.subgroup_size,
            "subgroups": invocations // max(1, executable.subgroup_size),
        }
        for name, names in compiler.figures.items():
            row[name] = next((said[one] for one in names if one in said), None)
            if row[name] is None:
                raise RuntimeError(f"the driver says nothing of {' or '.join(names)}; it has {', '.join(said)}")
        for name, pattern in compiler.counts.items():
            row[name] = len(re.findall(pattern, text, re.MULTILINE))
        rows.append(row)
    return {"device": device, "shaders": rows}


def compiled_examples(folder: Path, compiler: Compiler) -> list[Path]:
    """The examples' kernels, compiled for the compiler's profile, as modules in ``folder``. They are without matrix
    units where its driver is of a version that has none. Raises NoMesa."""
    from triton.backends.spirv import cli

    from benchmarks.example_kernels import KERNELS

    modules = []
    with _matrix_units(bool(shaders([], compiler)["device"]["matrices"])):
        for number, (example, kernel, signature) in enumerate(KERNELS):
            module = folder / f"{number:02}-{kernel}.spv"
            source = f"{Path(__file__).parents[1] / 'examples' / example}.py:{kernel}"
            request = ["compile", source, "--signature", signature, "--target", compiler.profile, "-o", str(module)]
            with contextlib.redirect_stdout(io.StringIO()):
                status = cli.main(request)
            if status:
                raise SystemExit(status)
            modules.append(module)
    return modules


@contextlib.contextmanager
def _matrix_units(there: bool) -> Iterator[None]:
    """Within it kernels are compiled without matrix units, unless they are ``there``."""
    name = "TRITON_SPIRV_MATRIX_UNITS"
    before = os.environ.get(name)
    if not there:
        os.environ[name] = "0"
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


def main(description: str | None, compiler: Compiler) -> None:
    """Prints a line a module."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true", help="print all that is known")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        modules = [path.resolve() for path in options.modules] or compiled_examples(Path(folder), compiler)
        known = shaders(modules, compiler)
    if options.json:
        print(json.dumps(known, indent=1))
        return
    print(f"{known['device']['name']}, {known['device']['version']}")
    columns = ["lanes", "subgroups", *compiler.figures, *compiler.counts]
    print(f"{'module':32}" + "".join(f"{name:>{len(name) + 3}}" for name in columns))
    for one in known["shaders"]:
        print(f"{one['module']:32}" + "".join(f"{one[name]:>{len(name) + 3}}" for name in columns))
