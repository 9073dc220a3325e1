"""A process of ``triton-spirv warm``: reads kernels from standard input, a line of JSON each, and answers with a line.

An answer has ``status`` (COMPILED, THERE or SKIPPED) and ``seconds``. If it is SKIPPED, ``why`` is the reason. Else
``same`` says whether the kernel has the key that was recorded; None if the recorded program had another compiler or
device.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

COMPILED, THERE, SKIPPED = "compiled", "there", "skipped"


class DoesNotFit(Exception):
    """A line that this version cannot compile. The message says why."""


def warm(line: Mapping[str, Any], hits: list[bool]) -> dict[str, Any]:
    """Compile the kernel of a line for the current device, and load it. ``hits``: gets whether Triton's cache had it.
    Raises DoesNotFit, and whatever importing a user's module or compiling raises."""
    from triton.runtime.driver import driver

    from ..availability import compile_only
    from ..launching.kernel_records import compiler_key
    from .finding import NotFound, find

    try:
        for place in line["passed"]:
            find(place)
        function = find(line["function"])
    except NotFound as error:
        raise DoesNotFit(str(error)) from None
    target = driver.active.get_current_target()
    compiled = function.preload(_data(line, function, target))
    if compiled is None:
        raise DoesNotFit("a hook of Triton's left it out")
    compiled._init_handles()
    if not compile_only():
        compiled.module.context.opened.compile_now(compiled.function)
    same = compiled.hash == line["key"] if compiler_key(target) == line["compiler"] else None
    return {"status": THERE if all(hits) else COMPILED, "same": same}


def _data(line: Mapping[str, Any], function: Any, target: Any) -> str:
    """What upstream's preload takes, for a function as it is now and this target. Raises DoesNotFit."""
    from ..options import SPIRVOptions

    data = json.loads(line["data"])
    if list(function.arg_names) != line["parameters"]:
        raise DoesNotFit("its parameters have changed")
    unknown = data["options"].keys() - {entry.name for entry in fields(SPIRVOptions)}
    if unknown:
        raise DoesNotFit(f"this version has no option {min(unknown)}")
    return json.dumps(data | {"name": function._fn_name, "target": vars(target)})


def answer(line: Mapping[str, Any], hits: list[bool]) -> dict[str, Any]:
    """The answer to a line. Nothing that a kernel raises ends the process."""
    start = time.perf_counter()
    hits.clear()
    try:
        told = warm(line, hits)
    except DoesNotFit as error:
        told = {"status": SKIPPED, "why": str(error)}
    except (KeyError, TypeError, AttributeError) as error:  # what a line of another version lacks
        told = {"status": SKIPPED, "why": f"it does not fit this version: {_first_line(error)}"}
    except Exception as error:
        told = {"status": SKIPPED, "why": _first_line(error)}
    return {**told, "seconds": time.perf_counter() - start}


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip() or '?'}".splitlines()[0]


def main() -> None:
    """Answer until the input ends. What modules print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from triton import knobs

    hits: list[bool] = []
    knobs.compilation.listener = lambda **told: hits.append(told["cache_hit"])
    for text in sys.stdin:
        print(json.dumps(answer(json.loads(text), hits)), file=answers, flush=True)


if __name__ == "__main__":
    main()
