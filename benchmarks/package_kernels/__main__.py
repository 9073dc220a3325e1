"""Compiles every kernel of public packages for devices that are not present, and says what is refused.

    pip download --no-deps -d wheels sglang fla-core …
    for wheel in wheels/*.whl; do python -m zipfile -e $wheel packages; done
    python -m benchmarks.package_kernels packages [--profile nvidia-hopper --profile lavapipe] [--output results.jsonl]

A kernel is compiled where upstream's own front end and its passes for CUDA, to LLVM IR, accept a guess at its
signature (signatures.py); of the others the script says nothing. What the packages import need not be installed
(imports.py). Each file is imported in its own process. With ``--resume`` a run that was ended goes on where it
was. The exit status is 1 if one fails: where its compilation ends in an error that is no refusal.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.runtime.jit import JITFunction

from benchmarks.outcomes import FAILED, NOT_ENDED, PASSED, REFUSED, TOO_LARGE, OutOfTime, of_error, raising_after

from .imports import install, module_name
from .signatures import ELEMENTS, guess, unwrapped

CUDA = GPUTarget("cuda", 90, 32)
#: Of processor time, for one compilation and for a file.
SECONDS, FILE_SECONDS = 60, 900
T = TypeVar("T")

#: What becomes of a kernel. It has passed where it compiles.
OUTCOMES = (PASSED, TOO_LARGE, NOT_ENDED, REFUSED, FAILED)


def timed(function: Callable[[], T]) -> T:
    """Calls it, for SECONDS at most."""
    with raising_after(SECONDS):
        return function()


def compile_upstream(source: ASTSource) -> None:
    """Through upstream's stages for CUDA, to LLVM IR."""
    backend = make_backend(CUDA)
    options = backend.parse_options({"num_warps": 4})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        CUDA, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    stages: dict[str, Callable[[Any, dict[str, Any]], Any]] = {}
    backend.add_stages(stages, options, source.language)
    metadata = {"target": CUDA, **options.__dict__}
    for stage in ("ttir", "ttgir", "llir"):
        module = stages[stage](module, metadata)


def accepted(kernel: JITFunction[Any]) -> ASTSource | None:
    """The first guess that upstream compiles."""
    for element in ELEMENTS:
        try:
            source = ASTSource(kernel, *guess(kernel, element), {})
            timed(lambda source=source: compile_upstream(source))  # type: ignore[misc]
        except OutOfTime:
            return None
        except Exception:  # a guess that is wrong may end in anything
            continue
        return source
    return None


def compiled(source: ASTSource, profile: str) -> tuple[str, str]:
    """One of OUTCOMES, and the message of what is not compiled."""
    capabilities = PROFILES[profile]
    target = target_of(capabilities)
    try:
        timed(lambda: triton.compile(source, target=target, options={"num_warps": 4}))
    except Exception as error:
        return of_error(error)
    return PASSED, ""


def _launched(file: Path) -> set[str]:
    """The names that a file launches: ``name[grid](…)``."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            value = node.func.value
            names.add(value.id if isinstance(value, ast.Name) else getattr(value, "attr", ""))
    return names


def kernels(file: Path, name: str) -> Iterator[tuple[str, JITFunction[Any]]]:
    """The kernels that a file defines: what it launches, and what is called one."""
    module = timed(lambda: __import__(name, fromlist=["*"]))
    launched = _launched(file)
    for place, value in list(vars(module).items()):
        kernel = unwrapped(value)
        if kernel is not None and kernel.__module__ == name and (place in launched or "kernel" in place.lower()):
            yield f"{name}:{place}", kernel


def examine(file: Path, folders: Sequence[Path], profiles: Sequence[str], output: Path) -> bool:
    """Appends a line to ``output`` for each kernel of a file; whether all statements of the file could be run."""
    name = module_name(file, folders)
    for place, kernel in kernels(file, name):
        source = accepted(kernel)
        row: dict[str, Any] = {"kernel": place, "guessed": source is not None, "profiles": {}}
        for profile in profiles if source is not None else ():
            start = time.process_time()
            outcome, message = compiled(source, profile)
            row["profiles"][profile] = [outcome, message, round(time.process_time() - start, 2)]
        _append(output, row)
    return "__failed__" not in vars(sys.modules[name])


def report(rows: Sequence[dict[str, Any]], profiles: Sequence[str]) -> bool:
    """Prints a table, what is refused and the slowest; whether nothing failed."""
    tables: dict[str, Counter[str]] = defaultdict(Counter)
    refusals: dict[str, list[str]] = defaultdict(list)
    slowest: list[tuple[float, str, str]] = []
    for row in rows:
        table = tables[row["kernel"].partition(".")[0]]
        table["kernels"] += 1
        table["guessed"] += row["guessed"]
        for profile, (outcome, message, seconds) in row["profiles"].items():
            table[f"{outcome} {profile}"] += 1
            slowest.append((seconds, profile, row["kernel"]))
            if outcome not in (PASSED, TOO_LARGE):
                refusals[f"{outcome}: {message}"].append(f"{profile} {row['kernel']}")
    kinds = [f"{outcome} {profile}" for profile in profiles for outcome in OUTCOMES]
    print("| package | kernels | guessed |", " | ".join(kinds), "|")
    for package, table in sorted(tables.items()):
        print(
            f"| {package} | {table['kernels']} | {table['guessed']} |",
            " | ".join(str(table[kind]) for kind in kinds),
            "|",
        )
    for message, places in sorted(refusals.items()):
        print(f"{len(places)} × {message}\n    {', '.join(places[:3])}")
    for seconds, profile, place in sorted(slowest, reverse=True)[:5]:
        print(f"{seconds:8.2f} s of processor time: {place} for {profile}")
    return not any(message.startswith(FAILED) for message in refusals)


def _rows(output: Path) -> list[dict[str, Any]]:
    """The lines of an output; one that is cut off is left out."""
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _append(output: Path, row: dict[str, Any]) -> None:
    with output.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def _in_process(file: Path, folders: Sequence[Path], profiles: Sequence[str], output: Path) -> None:
    """Examines a file in its own process. Its last line says whether all statements of the file could be run."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (FILE_SECONDS, FILE_SECONDS))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        whole = False
        try:
            whole = examine(file, folders, profiles, output)
        finally:
            os._exit(not whole)
    _append(output, {"file": str(file), "whole": os.waitpid(child, 0)[1] == 0})


def main() -> None:
    """The command line: see above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="folders that hold packages")
    parser.add_argument("--profile", action="append", choices=sorted(PROFILES), help="what is compiled for")
    parser.add_argument("--output", type=Path, default=Path("package_kernels.jsonl"), help="a line for each kernel")
    parser.add_argument("--resume", action="store_true", help="leave out the files that --output has")
    parser.add_argument("--limit", type=int, metavar="N", help="examine N files, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of that choice (default: 0)")
    options = parser.parse_args()
    profiles = options.profile or ["nvidia-hopper", "lavapipe"]
    folders = [folder.resolve() for folder in options.folders]
    files = sorted(
        file
        for folder in folders
        for file in folder.rglob("*.py")
        if "test" not in file.stem and "@triton.jit" in file.read_text(encoding="utf-8", errors="replace")
    )
    random.Random(options.seed).shuffle(files)
    files = files[: options.limit]
    before = _rows(options.output) if options.resume else []
    options.output.write_text("".join(json.dumps(row) + "\n" for row in before), encoding="utf-8")
    done = {row["file"] for row in before if "file" in row}
    install(folders)
    for number, file in enumerate(files):
        if str(file) in done:
            continue
        _in_process(file, folders, profiles, options.output)
        if sys.stderr.isatty():
            print(f"{number + 1} of {len(files)} files", end="\r", file=sys.stderr)
    rows = _rows(options.output)
    incomplete = sum(not row["whole"] for row in rows if "file" in row)
    print(f"{len(files)} files, of which {incomplete} have statements that failed, and may hold more kernels")
    kernels_found = {row["kernel"]: row for row in rows if "kernel" in row}  # a run that was ended has some twice
    sys.exit(not report(list(kernels_found.values()), profiles))


if __name__ == "__main__":
    main()
