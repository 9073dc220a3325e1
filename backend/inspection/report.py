"""``triton-spirv inspect``: one page about a kernel, from the user's source to the SPIR-V, that needs no network."""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..ahead_of_time.command import add_request, fusion, target
from ..ahead_of_time.draft import draft
from ..ahead_of_time.errors import RequestError, in_one_line
from ..ahead_of_time.kernel_source import find_kernel, split_request
from ..ahead_of_time.widening import wider
from ..capabilities import Capabilities
from ..cpu.machine import NoHostTarget
from ..options import CHOICES, chosen
from ..planning.kernel_plan import Planned
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import given_path, write_whole
from ..source_files import digest_of
from ..transforms.kernel_function import kernel_of
from ..ttgir.spelling import Spelling
from . import drawings
from .banks import shared_accesses
from .compare import compared
from .compilers import asked
from .flows import dots
from .kernels import CachedKernel, NotInCache, NotPlannable, find
from .processor_code import code_lines, machine_accesses, machine_facts
from .speed import launched, speed
from .stage_lines import Line, mlir_lines, source_lines, spirv_lines
from .verdict import verdict

PAGE = Path(__file__).with_name("page")

#: Stages of a kernel in the cache that are texts.
_TEXTS = ("source", "ttir", "ttgir")

_ANOTHER = (
    "The module in the cache was emitted by another version of this backend. The page shows what this version emits "
    "from the same TTGIR; launch the kernel again to run that."
)

#: (fact, name in the compiler's metadata).
_FACTS = (
    ("subgroups asked for", "num_warps"),
    ("invocations a workgroup", "workgroup_size"),
    ("stages", "num_stages"),
    ("shared memory", "shared"),
    ("bytes of arguments", "argument_bytes"),
    *((entry.fact, name) for name, entry in CHOICES.items() if entry.fact),
)


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """The options of ``inspect``."""
    parser.add_argument(
        "kernel",
        metavar="KERNEL",
        nargs="?",
        help="a @triton.jit function as FILE:FUNCTION, with --signature, or a kernel's name or key in Triton's cache",
    )
    add_request(parser, required=False)
    how = "a trace of `triton-spirv profile --trace`: the page then says how fast the kernel was"
    parser.add_argument("--launches", type=given_path, metavar="TRACE.json", help=how)
    pages, how = ("ONE.html", "OTHER.html"), "two pages side by side, and what differs"
    parser.add_argument("--compare", type=given_path, nargs=2, metavar=pages, help=how)
    parser.add_argument("-o", "--output", type=given_path, metavar="FILE.html", help="default: FUNCTION.html")


def run_inspect(options: argparse.Namespace) -> int:
    """``triton-spirv inspect``: 0, or 1 with one error on stderr and no file written."""
    try:
        path = inspect_to_file(options)
    except Exception as error:  # the user's file, the front end and the backend raise what they like
        known = isinstance(error, RequestError | DeviceUnavailable | NotInCache | NotPlannable)
        kind = "" if known else f"{type(error).__name__}: "
        print(f"triton-spirv inspect: error: {kind}{in_one_line(error)}", file=sys.stderr)
        return 1
    print(path)
    return 0


def inspect_to_file(options: argparse.Namespace) -> Path:
    """Writes the page that the options ask for; its path."""
    if options.compare:
        return _written(options.output or Path("compare.html"), compared(*options.compare))
    if options.kernel is None:
        raise RequestError("name a kernel, or two pages with --compare")
    try:
        import triton.compiler  # noqa: F401
    except ModuleNotFoundError as error:
        raise RequestError(f"inspecting needs Triton, which is not installed ({error})") from None
    module = None
    if ":" in options.kernel:
        path, name = split_request(options.kernel)
        if not options.signature:
            raise RequestError(
                f"{options.kernel} needs --signature: a type or constant for each parameter. A draft to correct: "
                f'--signature "{draft(find_kernel(path, name, "inspect"))}"'
            )
        from ..ahead_of_time.build import compiled_kernel, is_type
        from .plan import planned_again  # needs Triton's compiled library

        capabilities = target(options.target)
        function, choices = find_kernel(path, name, "inspect"), chosen(options) | {"debug_info": True, **fusion()}
        compiled, _ = compiled_kernel(function, options.signature, capabilities, choices)
        metadata = compiled.metadata._asdict()
        planned = planned_again(compiled.asm["ttgir"], capabilities, metadata)
        known = collected(metadata, compiled.asm, planned)
        if any(one["could"] for one in known["accesses"]):
            known["wider"] = wider(
                compiled.asm["spv"],
                options.signature,
                is_type,
                lambda text: compiled_kernel(function, text, capabilities, choices)[0].asm["spv"],
            )
    elif options.kernel.endswith(".spv"):
        instead = "`triton-spirv disassemble` shows one; a page is about FILE.py:FUNCTION, or a kernel of the cache"
        raise RequestError(f"{options.kernel} is a module: {instead}")
    else:
        kernel = find(options.kernel, modules=launched(options.launches) if options.launches is not None else ())
        name, module = kernel.name, kernel.path("spv").read_bytes()
        known = of_cache(kernel, module)
    timed = speed(options.launches, name, module) if options.launches is not None else None
    known["verdict"] = verdict(known, timed)
    known.pop("wider", None)
    written = _written(options.output or Path(f"{name}.html"), page(known | {"speed": timed}))
    print(known["verdict"], file=sys.stderr)
    return written


def _written(output: Path, text: str) -> Path:
    if not output.absolute().parent.is_dir():
        raise RequestError(f"there is no folder {output.parent} to write {output.name} in")
    write_whole(output, text.encode())
    return output


def of_cache(kernel: CachedKernel, module: bytes) -> dict[str, Any]:
    """``collected`` of a kernel of the cache, whose module is ``module``: emitted again, with lines. Raises
    NotInCache, NotPlannable, UnsupportedOperation."""
    from ..lowering.entry_point import emit
    from .plan import cached_plan  # needs Triton's compiled library

    asm: dict[str, Any] = {stage: kernel.text(stage) for stage in _TEXTS if kernel.path(stage).exists()}
    planned = cached_plan(kernel)
    emitted = emit(planned, lines=True)
    asm["spv"] = emitted.with_lines
    known = collected(kernel.metadata, asm, planned)
    notes = [*([] if emitted.spirv == module else [_ANOTHER]), *_changed(known["places"], kernel)]
    return known | {"note": " ".join(notes)}


def _changed(places: Sequence[str], kernel: CachedKernel) -> Iterator[str]:
    """What is to be said of the files of ``places`` ("file:line") if the page may not show what was compiled."""
    known = kernel.metadata.get("sources", {})
    for file in dict.fromkeys(place.rpartition(":")[0] for place in places):
        digest = digest_of(file)
        if digest is None:
            yield f"{file} is not there, so that its lines are not shown."
        elif digest != known.get(file, digest):
            yield f"{file} was changed after the kernel was compiled: its lines may be others by now."


def collected(metadata: Mapping[str, Any], asm: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
    """What the page shows, as plain data, of the compiler's ``metadata``, the text of each stage with its module, and
    the plan."""
    from .plan import layout_lines, lines_of  # needs Triton's compiled library

    spirv, capabilities = asm["spv"], planned.capabilities
    stages: dict[str, tuple[str, list[Line]]] = {}
    if "ttir" in asm:
        stages["ttir"] = ("TTIR", mlir_lines(asm["ttir"]))
    stages["ttgir"] = ("TTGIR", mlir_lines(asm["ttgir"]))
    kernel, plan = kernel_of(planned.source), planned.plan
    layout = [Line(text, ()) for text in layout_lines(metadata)]
    machine, accesses = None, drawings.accesses(kernel, plan)
    stages["plan"] = ("Plan", [*layout, *lines_of(planned)])
    stages["spv"] = ("SPIR-V", spirv_lines(spirv))
    if capabilities.processor:
        with suppress(NoHostTarget):  # the section about the driver says why
            code = code_lines(spirv, capabilities)[0]
            machine, accesses = machine_facts(code), machine_accesses(accesses, code)
            stages["machine"] = ("Machine code", [*code])
    source = source_lines([lines for _, lines in stages.values()])
    places = {place: None for _, lines in stages.values() for line in lines for place in line.places}
    places |= {place: None for line in source for place in line.places}
    numbers = {place: number for number, place in enumerate(places)}
    spelling = Spelling(planned.source.aliases)
    facts = [(fact, metadata[name]) for fact, name in _FACTS]
    return {
        "title": f"Kernel {metadata['name']}",
        "note": "",
        "facts": [
            ("driver", capabilities.driver),
            ("subgroup", capabilities.subgroup_size),
            *facts,
            ("module", f"{len(spirv)} bytes"),
        ],
        "places": list(places),
        "stages": [
            {
                "id": name,
                "title": title,
                "lines": [[line.text, [numbers[place] for place in line.places]] for line in lines],
            }
            for name, (title, lines) in {"source": ("Python", source), **stages}.items()
        ],
        "accesses": accesses,
        "machine": machine,
        "shape": drawings.shape(kernel, capabilities.subgroup_size),
        "dots": dots(kernel, spelling, plan),
        "matrix_units": bool(capabilities.matrices),
        "body": next((number for number, line in enumerate(stages["spv"][1]) if "OpFunction " in line.text), 0),
        "layouts": drawings.layouts(kernel, spelling),
        "conversions": drawings.conversions(kernel, spelling, plan),
        "shared": drawings.shared_memory(kernel, plan),
        "banks": shared_accesses(kernel, plan, capabilities.traits.bank_count),
        "bank_count": capabilities.traits.bank_count,
        "mix": drawings.instruction_mix(spirv),
        "driver": _driver(spirv, capabilities),
    }


#: The largest whole number that every reader of JSON keeps as it is.
_EXACT = 2**53


def _driver(spirv: bytes, capabilities: Capabilities) -> dict[str, Any]:
    known = asdict(asked(spirv, capabilities))
    for executable in known["executables"]:
        for row in executable["statistics"]:
            if abs(row["value"]) > _EXACT:
                row["value"] = str(row["value"])
    return known


def page(data: dict[str, Any]) -> str:
    """The page, whole in one text."""
    text = (PAGE / "report.html").read_text(encoding="utf-8")
    # "</script>" in the data would end the element that holds it.
    embedded = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    for mark, value in (
        ("@TITLE@", html.escape(data["title"])),
        ("@STYLE@", (PAGE / "style.css").read_text(encoding="utf-8")),
        ("@SCRIPT@", "\n".join((PAGE / name).read_text(encoding="utf-8") for name in ("script.js", "pictures.js"))),
        ("@DATA@", embedded),
    ):
        text = text.replace(mark, value, 1)
    return text
