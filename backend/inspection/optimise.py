"""``triton-spirv opt``: TTIR or TTGIR after this compiler's passes and rewrites, or after some of them, as
``triton-opt`` prints it after upstream's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..ahead_of_time.command import add_target, target
from ..ahead_of_time.errors import RequestError
from ..capabilities import Capabilities
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import given_path


def add_opt(parser: argparse.ArgumentParser) -> None:
    """The options of the verb."""
    parser.add_argument("file", type=given_path, nargs="?", metavar="FILE", help="the text of TTIR or TTGIR")
    parser.add_argument("--list", action="store_true", help="the names of all that is optional, in their order")
    items = parser.add_mutually_exclusive_group()
    items.add_argument("--only", action="append", metavar="ITEM", help="run nothing but this; may be repeated")
    items.add_argument("--without", action="append", metavar="ITEM", help="leave this out; may be repeated")
    add_target(parser)


def run_opt(options: argparse.Namespace) -> int:
    """Prints the module; 1 with one error on stderr where that cannot be done."""
    from ..errors import LoweringError, UnsupportedOperation
    from ..reference import ITEMS, KEPT

    if options.list:
        for item in ITEMS:
            print(f"{item.name}{' (kept by the reference pipeline)' if item.name in KEPT else ''}: {item.kind}")
        return 0
    if options.file is None:
        print("triton-spirv: name the FILE, or --list", file=sys.stderr)
        return 1
    try:
        print(_optimised(options.file, options.only or (), options.without or (), target(options.target)), end="")
    except (RequestError, DeviceUnavailable, LoweringError, UnsupportedOperation, ValueError, OSError) as error:
        print(f"triton-spirv: {error}", file=sys.stderr)
        return 1
    except RuntimeError as error:  # upstream's parser has said on stderr what is wrong, and where
        print(f"triton-spirv: {options.file} cannot be read or compiled: {error}", file=sys.stderr)
        return 1
    return 0


def _optimised(file: Path, only: Sequence[str], without: Sequence[str], device: Capabilities) -> str:
    from triton._C.libtriton import ir

    from .. import passes
    from ..options import SPIRVOptions
    from ..planning.cost import named_layouts
    from ..reference import item_of, left_out
    from ..stages import choose, plan
    from ..ttgir.printer import print_module

    text = file.read_text(encoding="utf-8")
    context = ir.context()
    ir.load_dialects(context)
    module = passes.parse(text, context)
    laid_out = '"ttg.num-warps"' in text
    warps = module.get_int_attr("ttg.num-warps") if laid_out else 1 if device.processor else 4
    options = SPIRVOptions(num_warps=warps, warp_size=device.subgroup_size, without=left_out(without, False))
    if only:
        for name in only:
            module = _alone(item_of(name).row, name, module, device, options)
        return str(module)
    if not laid_out:
        passes.run(module, passes.TTIR, "make_ttir", passes.operation_names(module), options.without)
        chosen = choose(module, file.name, device, options)
        module = chosen.module
        if chosen.planned is not None:
            return print_module(chosen.planned.source)
    return print_module(plan(module, named_layouts(options.num_stages), file.name, device, options).source)


def _alone(row: Any, name: str, module: Any, device: Capabilities, options: Any) -> Any:
    """The module after one row of upstream's passes or of the transforms' table."""
    from .. import passes
    from ..planning.cost import named_layouts
    from ..stages import planning_options
    from ..transforms import table
    from ..ttgir.parser import parse_module
    from ..ttgir.printer import print_module

    if row is None:
        raise ValueError(f"{name!r} changes no TTGIR: compile the kernel `--without` it, and compare the modules")
    if isinstance(row, passes.Pass):
        passes.run(module, (row._replace(only_on=frozenset()),), row.item, frozenset())
        return module
    source = parse_module(str(module), "kernel.ttgir")
    planning = planning_options(device, options, named_layouts(options.num_stages))
    if row.stage is table.Stage.PLANNING:  # rows of that stage have one block, without calls
        table.transform(
            source, [one for one in table.TRANSFORMS if one.needed and one.stage is row.stage], device, planning
        )
    table.transform(source, [row], device, planning)
    return passes.parse(print_module(source), module.context)
