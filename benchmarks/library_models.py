"""Small models of public libraries, trained on ``spirv`` and on torch's CPU from the same weights.

Each model of ``library_model_shapes`` runs in a process of its own, for at most ``--limit`` seconds of processor time:
forward, backward and steps of AdamW, in float32 on both devices, and in float64 on the CPU. Errors are of what float64
gives: of the output and of all gradients in the first step, and of all that a module saves after the last. An error is
the norm of the difference, relative to the norm of what float64 gives.

A model is wrong if a tensor's error on ``spirv`` is much larger than that of the CPU's float32 (``FACTOR``), or if
torch.compile breaks it into other graphs there than on the CPU (``--graphs``: that alone is tried). The exit
status is 1 if a model is wrong or ends in an error, not if it takes too long or its library is not installed.

    pip install torch==2.13.0 transformers diffusers timm torchvision torch-geometric
    python -m benchmarks.library_models --out models.jsonl --table models.md
    python -m benchmarks.library_models torch GPT2LMHeadModel        # a library, a model

A line of JSON is written for each model as it is done (``--out``), and a table in Markdown at the end. What has passed
in that file is not trained again with ``--resume``, and is in the table. ``--page`` puts the table into
docs/internals/torch-models.md, instead of what is there from the line "Last written" on.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from .library_model_shapes import MODELS, PACKAGES, Case, build
from .outcomes import FAILED, FAILURES, NOT_ENDED, PASSED, SKIPPED, WRONG, ending_after, of_error, of_status

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/internals/torch-models.md"
WRITTEN = "Last written on "

#: A tensor is wrong if its error is so many times that of the CPU's float32, or of rounding, if that is more.
FACTOR = 20.0
#: What rounding may make of a tensor: relative to its own norm, and to that of the largest tensor of its kind.
_ROUNDED, _ROUNDED_OF_LARGEST = 1e-6, 1e-7

#: Relative error of the CPU's own float32 output from which on a model draws random numbers, or is no use.
_DETERMINED = 1e-3

#: Name → tensor, on the CPU in float64.
Tensors = dict[str, torch.Tensor]
#: What is compared.
KINDS = ("outputs", "gradients", "weights")


@dataclass(frozen=True)
class Trained:
    """What training gave: tensors of each of KINDS; seconds of the first step, which compiles kernels, and of the
    last."""

    tensors: dict[str, Tensors]
    first: float
    last: float


class _Wide(TorchFunctionMode):
    """What a model computes in float32 by name, such as a norm, is computed in float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def widened(leaf: Any) -> Any:
            return torch.float64 if leaf is torch.float32 else leaf

        args, kwargs = pytree.tree_map(widened, (args, kwargs or {}))
        return _IN_FLOAT64.get(func, func)(*args, **kwargs)


def _products_of_groups(rows: torch.Tensor, matrices: torch.Tensor, offs: torch.Tensor, **_: Any) -> torch.Tensor:
    """Each group of rows times its matrix. ``offs``: where the groups end."""
    ends = offs.tolist()
    return torch.cat([rows[start:end] @ m for start, end, m in zip([0, *ends], ends, matrices, strict=False)])


#: Functions of torch that are other functions in float64, or do not take it.
_IN_FLOAT64: dict[Any, Callable[..., Any]] = {
    torch.Tensor.float: torch.Tensor.double,
    torch._grouped_mm: _products_of_groups,
}


@contextmanager
def _computing_in(dtype: torch.dtype) -> Iterator[None]:
    if dtype != torch.float64:
        yield
        return
    torch.set_default_dtype(dtype)
    try:
        with _Wide():
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def _kept(tensors: Any) -> Tensors:
    return {name: t.detach().to("cpu", torch.float64, copy=True) for name, t in tensors if t.is_floating_point()}


def trained(case: Case, device: str, dtype: torch.dtype, steps: int) -> Trained:
    """A copy of a model, trained on a device in a type."""
    module = copy.deepcopy(case.module).to(device, dtype)

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.to(device, dtype) if leaf.is_floating_point() else leaf.to(device)

    inputs = pytree.tree_map(moved, case.inputs)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    found: dict[str, Tensors] = {}
    seconds = []
    torch.manual_seed(1)
    with _computing_in(dtype):
        for step in range(steps):
            start = time.perf_counter()
            loss, output = case.call(module, inputs)
            loss.backward()
            if step == 0:
                found["outputs"] = _kept([("output", output), ("loss", loss)])
                found["gradients"] = _kept((n, p.grad) for n, p in module.named_parameters() if p.grad is not None)
            optimizer.step()
            optimizer.zero_grad()
            if device != "cpu":
                getattr(torch, device).synchronize()
            seconds.append(time.perf_counter() - start)
    found["weights"] = _kept(module.state_dict().items())
    return Trained(found, seconds[0], seconds[-1])


def graphs(case: Case, device: str) -> int:
    """Into how many graphs torch.compile breaks a model's forward pass, which runs eagerly."""
    module = copy.deepcopy(case.module).to(device)
    inputs = pytree.tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, case.inputs)
    count = 0

    def counting(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return graph.forward

    torch._dynamo.reset()
    case.call(torch.compile(module, backend=counting), inputs)
    return count


def error(actual: Tensors, exact: Tensors) -> float:
    """The norm of all differences, relative to that of all numbers."""
    different = sum(float((actual[name] - t).square().sum()) for name, t in exact.items())
    return float((different / sum(float(t.square().sum()) for t in exact.values())) ** 0.5)


def worst(actual: Tensors, other: Tensors, exact: Tensors) -> tuple[float, str]:
    """The largest quotient of a tensor's error and of what it may be, with the tensor's name. It may be the error of
    ``other``, or that of rounding. Raises ValueError where a tensor is missing or has another size."""
    if actual.keys() != exact.keys() or any(actual[name].shape != t.shape for name, t in exact.items()):
        raise ValueError(f"other tensors: {sorted(actual.keys() ^ exact.keys())}")
    largest = max(float(t.norm()) for t in exact.values())
    found = [(0.0, "")]
    for name, t in exact.items():
        allowed = max(float((other[name] - t).norm()), _ROUNDED * float(t.norm()), _ROUNDED_OF_LARGEST * largest, 1e-30)
        quotient = float((actual[name] - t).norm()) / allowed
        found.append((quotient if quotient == quotient else float("inf"), name))
    return max(found)


def version(library: str) -> str:
    """Of an installed library, without what it was built for."""
    return importlib.metadata.version(library).partition("+")[0]


def measured(library: str, name: str, steps: int) -> dict[str, Any]:
    """The line of a model, in this process. Without steps, only its graphs are counted."""
    line: dict[str, Any] = {"library": library, "version": version(library), "model": name, "steps": steps}
    where = "when it is built"
    try:
        case = build(library, name)
        line["parameters"] = sum(p.numel() for p in case.module.parameters())
        if steps:
            where = "on the CPU"
            exact, cpu = (trained(case, "cpu", dtype, steps) for dtype in (torch.float64, torch.float32))
            if (apart := error(cpu.tensors["outputs"], exact.tensors["outputs"])) > _DETERMINED:
                raise ValueError(f"float32 and float64 differ by {apart:.0e}, so nothing says what is right")
            where = "on spirv"
            torch.spirv.reset_fallbacks()  # type: ignore[attr-defined]
            ours = trained(case, "spirv", torch.float32, steps)
            line["fallbacks"] = torch.spirv.fallbacks()  # type: ignore[attr-defined]
            line["seconds"] = {"first": ours.first, "last": ours.last, "cpu_last": cpu.last}
            line["errors"] = {
                kind: {"spirv": error(ours.tensors[kind], exact.tensors[kind]),
                       "cpu": error(cpu.tensors[kind], exact.tensors[kind])}
                for kind in KINDS
            }  # fmt: skip
            line["worst"] = {kind: worst(*(one.tensors[kind] for one in (ours, cpu, exact))) for kind in KINDS}
        where = "when it is compiled"
        line["graphs"] = {device: graphs(case, device) for device in ("cpu", "spirv")}
    except Exception as problem:
        outcome, said = of_error(problem)
        traceback.print_exc()
        return {**line, "outcome": outcome, "why": f"{where}: {said}"}
    above = {kind: of for kind, of in line.get("worst", {}).items() if of[0] > FACTOR}
    wrong = [f"{kind} of {name}: {factor:.0f} times" for kind, (factor, name) in above.items()]
    if line["graphs"]["spirv"] != line["graphs"]["cpu"]:
        wrong.append("{spirv} graphs, {cpu} on the CPU".format(**line["graphs"]))
    return {**line, "outcome": WRONG if wrong else PASSED, "why": "; ".join(wrong)}


def environment() -> dict[str, str]:
    """In which a process has ``spirv`` as torch's device."""
    return {**os.environ, "TRITON_DEFAULT_BACKEND": "spirv", "TRITON_SPIRV_TORCH_DEVICE": "1"}


def in_a_process(library: str, name: str, steps: int, limit: float) -> dict[str, Any]:
    """The line of a model, in a process of its own, which is ended after ``limit`` seconds of processor time."""
    if importlib.util.find_spec(PACKAGES[library]) is None:
        return {"library": library, "model": name, "outcome": SKIPPED, "why": "the library is not installed"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.library_models", "--worker", library, name]
    command += ["--steps", str(steps), "--limit", str(limit)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        return json.loads(lines[-1])  # type: ignore[no-any-return]
    why = f"not done in {limit:.0f} s" if of_status(done.returncode) == NOT_ENDED else "no result"
    outcome = NOT_ENDED if of_status(done.returncode) == NOT_ENDED else FAILED
    why += f": its process ended with {done.returncode}"
    return {"library": library, "version": version(library), "model": name, "outcome": outcome, "why": why}


# ---- The table -------------------------------------------------------------------------------------------------------

_COLUMNS = ("library", "model", "parameters", *(f"{kind}: spirv; CPU" for kind in KINDS), "on the CPU", "seconds")


def _row(line: dict[str, Any]) -> list[str]:
    titles = [f"{line['library']} {line.get('version', '')}".strip(), f"`{line['model']}`"]
    titles.append(f"{line['parameters']:,}" if "parameters" in line else "")
    if "errors" not in line:
        said = f"{line['outcome']}: {line['why']}" if line["why"] else "{spirv} graphs; {cpu}".format(**line["graphs"])
        return [*titles, said, *[""] * (len(_COLUMNS) - 4)]
    cells = ["{spirv:.0e}; {cpu:.0e}".format(**line["errors"][kind]) for kind in KINDS]
    fallbacks = Counter(line["fallbacks"])
    named = ", ".join(f"`{name.removeprefix('aten::')}` {count}" for name, count in fallbacks.most_common())
    cells.append(f"{fallbacks.total()} ({named})" if fallbacks else "0")
    cells.append("{first:.1f}; {last:.2f}; {cpu_last:.2f}".format(**line["seconds"]))
    if line["outcome"] != PASSED:
        cells[0] += f"; {line['outcome']}: {line['why']}"
    return titles + cells


def table(lines: list[dict[str, Any]]) -> str:
    """How many models there are of each outcome, and a row of Markdown for each model."""
    counts = Counter(line["outcome"] for line in lines).most_common()
    fallbacks = sum(sum(line.get("fallbacks", {}).values()) for line in lines)
    said = f"Of {len(lines)} models, {', '.join(f'{count} {outcome}' for outcome, count in counts)}. "
    said += f"Operations that ran on the CPU: {fallbacks}.\n\n"
    rows = [list(_COLUMNS), ["---"] * len(_COLUMNS), *map(_row, lines)]
    return said + "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def where() -> str:
    """The day, and with what the models were trained."""
    command = [sys.executable, "-c", "import torch; print(torch.spirv.get_device_properties(0).driver)"]
    driver = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    today, python = datetime.date.today(), platform.python_version()
    return f"{WRITTEN}{today} with torch {version('torch')}, Python {python}, driver {driver.stdout.strip()}."


def paged(text: str, said: str, rows: str) -> str:
    """The text of the page with another table."""
    return f"{text.partition(WRITTEN)[0]}{said}\n\n{rows}"


def passed(file: Path, steps: int) -> dict[tuple[str, str], dict[str, Any]]:
    """(library, model) → its last line in a file, of those that have passed after so many steps."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    done = [line for line in lines if line["outcome"] == PASSED and line.get("steps") == steps]
    return {(line["library"], line["model"]): line for line in done}


def _chosen(names: list[str], parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    known = {name for key in MODELS for name in (*key, "/".join(key))}
    if unknown := sorted(set(names) - known):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join('/'.join(key) for key in MODELS)}")
    return [key for key in MODELS if not names or {*key, "/".join(key)} & set(names)]


def main() -> int:
    """Trains, writes, prints; 1 where a model is wrong or ends in an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="libraries or models; all where none is named")
    parser.add_argument("--steps", type=int, default=3, help="of AdamW")
    parser.add_argument(
        "--graphs", action="store_const", const=0, dest="steps", help="only count torch.compile's graphs"
    )
    parser.add_argument("--limit", type=float, default=600, metavar="S", help="seconds of processor time for each")
    parser.add_argument("--out", type=Path, help="append lines of JSON to this file")
    parser.add_argument("--resume", action="store_true", help="keep the models of that file that have passed")
    parser.add_argument("--table", type=Path, help="write the table to this file")
    parser.add_argument("--page", action="store_true", help="put the table into docs/internals/torch-models.md")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        library, name = options.worker
        with ending_after(options.limit):
            print(json.dumps(measured(library, name, options.steps)))
        return 0
    if options.page and not options.steps:
        parser.error("--page is for models that were trained, not for --graphs")
    before = passed(options.out, options.steps) if options.resume and options.out and options.out.exists() else {}
    lines = []
    for library, name in _chosen(options.names, parser):
        if (library, name) in before:
            lines.append(before[library, name])
            continue
        line = in_a_process(library, name, options.steps, options.limit)
        lines.append(line)
        print(json.dumps(line), flush=True)
        if options.out:
            with options.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
    said, rows = where(), table(lines)
    print(f"\n{said}\n\n{rows}")
    if options.table:
        options.table.write_text(f"{said}\n\n{rows}", encoding="utf-8")
    if options.page:
        PAGE.write_text(paged(PAGE.read_text(encoding="utf-8"), said, rows), encoding="utf-8")
    return int(any(line["outcome"] in FAILURES and line["outcome"] != NOT_ENDED for line in lines))


if __name__ == "__main__":
    sys.exit(main())
