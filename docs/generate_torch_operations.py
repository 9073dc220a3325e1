"""Writes docs/internals/torch-operations.tsv, with a row for every operator of torch's own test database on the device
``spirv``, and the page that sums it up, torch-operations.md.

``python -m docs.generate_torch_operations`` runs them all, which takes an hour on two cores; ``--part 2/8`` runs the
second eighth and keeps the other rows of the page, ``--only NAME …`` these operators, ``--refused`` counts the calls
that must be refused. The page holds what was seen when
it was written; tests/device/torch_ops/test_op_database.py runs some of it again, others each day.

With ``--check`` nothing is written to the page. The rows are printed as they come, then what the page says otherwise:
the status is 1 if that is anything, and, with ``--check`` or not, if a result is wrong.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections import Counter
from pathlib import Path

import torch

from tests.device.torch_ops import op_database
from tests.device.torch_ops.op_database import FAMILIES, NOT_DEFINED, ON_CPU, ON_DEVICE, PARTLY, REFUSED

PAGE = Path(__file__).parent / "internals" / "torch-operations.md"
#: The rows of all operators, separated by tabs; the page has those of operators that do not run on the device wholly.
DATA = PAGE.with_suffix(".tsv")
_NAMES_SHOWN = 4

#: torch's minor version that the page is of.
TORCH = "2.13"
_HEADER = f"""# torch's operators on the device

Every operator of the test database of torch {TORCH} (`torch.testing._internal`, `op_db`) was run on tensors of
the device `spirv`, and compared with the same call on the CPU: values, types and shapes of results, and for
float32 also the gradients, the in-place variant and the variant with `out=`. A few of torch's samples of each operator
were run, with their strides and offsets. Every call that was run gives the CPU's result, up to rounding.
`python -m docs.generate_torch_operations` generates this page and [torch-operations.tsv](torch-operations.tsv), which
has a row for each operator.

- *device*: all of it runs on the device.
- *CPU*: it runs on the CPU, on copies, and is counted ([torch.md](../torch.md)).
- *partly*: some calls, or the gradient, run on the CPU.
- *refused*: it raises an error where the CPU has a result; the last column says why.
- *–*: torch has no samples of it for this type.

"""
_WRITTEN = "Last written on {} with torch {}.\n\n"
_REFUSED_CALLS = "Of {} calls that torch's database says must be refused, {} raise the CPU's class of error.\n\n"

#: Cells by family, and what the last column says.
Row = tuple[dict[str, str], str]


def row(name: str) -> Row:
    """Run an operator with all families. Raises ValueError if a result is wrong."""
    op = op_database.entries()[name]
    cells, names = {}, set()
    for family in FAMILIES:
        outcome = op_database.run(op, family)
        if outcome.problems:
            raise ValueError(f"{name}, {family}: {outcome.problems[0]}")
        cells[family] = outcome.summary
        if family != "complex64":
            names |= outcome.fallbacks
    return cells, remark(name, cells, names)


def remark(name: str, cells: dict[str, str], names: set[str]) -> str:
    """The last column: why it is refused, and what runs on the CPU."""
    parts = []
    if REFUSED in cells.values():
        parts.append(next(why for start, why in op_database.REFUSALS.items() if name.startswith(start)))
    shown = sorted(name.removeprefix("aten::") for name in names)
    if shown:
        more = ", …" if len(shown) > _NAMES_SHOWN else ""
        parts.append(", ".join(f"`{text}`" for text in shown[:_NAMES_SHOWN]) + more)
    return "; ".join(parts)


def read() -> dict[str, Row]:
    """The rows that are there."""
    rows: dict[str, Row] = {}
    if DATA.exists():
        for line in DATA.read_text(encoding="utf-8").splitlines()[1:]:
            name, *cells, text = line.split("\t")
            rows[name] = dict(zip(FAMILIES, cells, strict=True)), text
    return rows


def data(rows: dict[str, Row]) -> str:
    """The text of the file with all rows."""
    titles = "\t".join(("operator", *FAMILIES, "on the CPU, complex numbers apart"))
    lines = ("\t".join((name, *(of[0][family] for family in FAMILIES), of[1])) for name, of in sorted(rows.items()))
    return "\n".join((titles, *lines, ""))


def write(rows: dict[str, Row], refusals: str, when: str) -> None:
    """Writes the file with all rows, and the page."""
    DATA.write_text(data(rows), encoding="utf-8")
    PAGE.write_text(page(rows, refusals, when), encoding="utf-8")


def refused() -> str:
    """The line about calls that must be refused, as it is on the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.search(r"Of (\d+) calls that .*, (\d+) raise", text)
    return _REFUSED_CALLS.format(*found.groups()) if found else ""


def written() -> str:
    """The line that says when rows were written, as it is on the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.search(r"Last written on (\S+) with torch (\S+)\.\n", text)
    return _WRITTEN.format(*found.groups()) if found else ""


def count_refused() -> str:
    """The same, of what the device refuses now. What is wrong is printed."""
    outcomes = [(name, problem) for name, op in op_database.entries().items() for problem in op_database.errors(op)]
    for name, problem in outcomes:
        if problem:
            print(name, problem, sep=": ", file=sys.stderr)
    return _REFUSED_CALLS.format(len(outcomes), sum(not problem for _, problem in outcomes))


def page(rows: dict[str, Row], refusals: str, when: str) -> str:
    """The text of the page."""
    lines = [
        _HEADER,
        when,
        refusals,
        "| | " + " | ".join(FAMILIES) + " |\n",
        "| --- |" + " --- |" * len(FAMILIES) + "\n",
    ]
    for kind in (ON_DEVICE, PARTLY, ON_CPU, REFUSED):
        counts = [Counter(cells[family] for cells, _ in rows.values())[kind] for family in FAMILIES]
        lines.append(f"| {kind} | " + " | ".join(map(str, counts)) + " |\n")
    defined = [sum(cells[family] != NOT_DEFINED for cells, _ in rows.values()) for family in FAMILIES]
    lines.append("| all | " + " | ".join(map(str, defined)) + " |\n\n")
    lines.append("## Operators that do not run on the device wholly\n\n")
    lines.append("| operator | " + " | ".join(FAMILIES) + " | on the CPU, complex numbers apart |\n")
    lines.append("| --- |" + " --- |" * (len(FAMILIES) + 1) + "\n")
    for name, (cells, text) in sorted(rows.items()):
        if set(cells.values()) - {ON_DEVICE, NOT_DEFINED}:
            lines.append(line(name, (cells, text)))
    return "".join(lines)


def line(name: str, of: Row) -> str:
    """A row as the page has it."""
    cells, text = of
    return f"| `{name}` | " + " | ".join(cells[family] for family in FAMILIES) + f" | {text} |\n"


def changes(there: dict[str, Row], found: dict[str, Row]) -> list[str]:
    """What the page says otherwise of the operators that were run, a line for each row."""
    return [
        f"{name}: the page has {line(name, there[name]).strip()}" if name in there else f"{name}: the page lacks it"
        for name, of in found.items()
        if there.get(name) != of
    ]


def check(names: list[str], count: bool) -> int:
    """Prints the rows of operators and what the page says otherwise; 1 where that is anything or a result is wrong."""
    found, failed = {}, 0
    for name in names:
        try:
            found[name] = row(name)
        except ValueError as error:
            failed = 1
            print(f"wrong: {error}", flush=True)
        else:
            print(line(name, found[name]), end="", flush=True)
    changed = changes(read(), found)
    if count and (counted := count_refused()) != refused():
        changed.append(f"{counted.strip()} The page: {refused().strip()}")
    print(*changed, f"{len(changed)} rows are not as in docs/internals/{DATA.name}", sep="\n")
    return failed or int(bool(changed))


def main() -> int:
    """Runs what was asked for and writes the page; 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="which part of the operators, such as 2/8")
    parser.add_argument("--only", nargs="*", help="these operators")
    parser.add_argument("--refused", action="store_true", help="count what is refused, too")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where the page is not current")
    arguments = parser.parse_args()
    names = sorted(op_database.entries())
    number, parts = map(int, arguments.part.split("/"))
    part = names[(number - 1) * len(names) // parts : number * len(names) // parts]
    chosen = part if arguments.only is None else arguments.only
    if arguments.check:
        return check(chosen, arguments.refused)
    rows = {name: cells for name, cells in read().items() if name in names}
    failed, refusals = 0, count_refused() if arguments.refused else refused()
    when = _WRITTEN.format(datetime.date.today(), torch.__version__.partition("+")[0])
    write(rows, refusals, when)
    for name in chosen:
        try:
            rows[name] = row(name)
        except ValueError as error:
            failed = 1
            print(error, file=sys.stderr)
        write(rows, refusals, when)
    return failed


if __name__ == "__main__":
    sys.exit(main())
