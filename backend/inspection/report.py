"""``triton-spirv inspect``: one page about a kernel, from the user's source to the SPIR-V, that needs no network."""

from __future__ import annotations

import argparse
import html
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..ahead_of_time.command import add_request, fusion, requested, target
from ..ahead_of_time.errors import RequestError, in_one_line
from ..ahead_of_time.kernel_source import find_kernel, split_request
from ..capabilities import Capabilities
from ..runtime.errors import VulkanUnavailable
from ..spirv.decode import decode
from ..transforms.kernel import kernel_of
from ..ttgir.spelling import Spelling
from . import drawings
from .banks import shared_accesses
from .compilers import asked
from .files import write_whole
from .kernels import CachedKernel, NotInCache, find
from .lines import Line, mlir_lines, source_lines, spirv_lines
from .speed import speed

PAGE = Path(__file__).with_name("page")

#: Options of a kernel in the cache that it is compiled with again; the others follow from the target.
_OPTIONS = ("num_warps", "num_stages", "debug", "check_bounds", "check_races", "enable_fp_fusion", "sanitize_overflow")

#: (fact, name in the compiler's metadata).
_FACTS = (
    ("subgroups asked for", "num_warps"),
    ("invocations a workgroup", "workgroup_size"),
    ("stages", "num_stages"),
    ("shared memory", "shared"),
    ("bytes of arguments", "argument_bytes"),
    ("bounds checked", "check_bounds"),
    ("races checked", "check_races"),
)


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """The options of ``inspect``."""
    parser.add_argument(
        "kernel",
        metavar="KERNEL",
        help="a @triton.jit function as FILE:FUNCTION, with --signature, or a kernel's name or key in Triton's cache",
    )
    add_request(parser, required=False)
    parser.add_argument(
        "--launches",
        type=Path,
        metavar="TRACE.json",
        help="a trace of `triton-spirv profile --trace`: the page then says how fast the kernel was",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.html", help="the page (default: FUNCTION.html)")


def run_inspect(options: argparse.Namespace) -> int:
    """``triton-spirv inspect``: 0, or 1 with one error on stderr and no file written."""
    try:
        path = inspect_to_file(options)
    except Exception as error:  # the user's file, the front end and the backend raise what they like
        known = isinstance(error, RequestError | VulkanUnavailable | NotInCache)
        kind = "" if known else f"{type(error).__name__}: "
        print(f"triton-spirv inspect: error: {kind}{in_one_line(error)}", file=sys.stderr)
        return 1
    print(path)
    return 0


def inspect_to_file(options: argparse.Namespace) -> Path:
    """Writes the page that the options ask for; its path."""
    try:
        import triton.compiler  # noqa: F401
    except ModuleNotFoundError as error:
        raise RequestError(f"inspecting needs Triton, which is not installed ({error})") from None
    module = None
    if ":" in options.kernel:
        path, name = split_request(options.kernel)
        if not options.signature:
            raise RequestError(f"{options.kernel} needs --signature: a type or constant for each parameter")
        from ..ahead_of_time.build import compiled_kernel

        capabilities = target(options.target)
        extra = {"debug_info": True, **fusion()}
        compiled, _ = compiled_kernel(
            find_kernel(path, name, "inspect"), options.signature, capabilities, requested(options) | extra
        )
    elif options.kernel.endswith(".spv"):
        raise RequestError(
            f"{options.kernel} is a module: `triton-spirv disassemble` shows one; a page is about FILE.py:FUNCTION, "
            "or a kernel of Triton's cache"
        )
    else:
        kernel = find(options.kernel)
        name = kernel.name
        capabilities = Capabilities.parse(str(kernel.metadata["target"]["arch"]))
        compiled = _compiled_again(kernel, capabilities)
        module = kernel.path("spv").read_bytes()
    timed = speed(options.launches, name, module) if options.launches is not None else None
    output = options.output or Path(f"{name}.html")
    if not output.absolute().parent.is_dir():
        raise RequestError(f"there is no folder {output.absolute().parent} to write {output.name} in")
    write_whole(output, page(collected(compiled, capabilities) | {"speed": timed}))
    return output


def _compiled_again(kernel: CachedKernel, capabilities: Capabilities) -> Any:
    """A kernel of the cache, compiled from its TTGIR with debug information; the cache's earlier stages are its own."""
    import triton
    from triton.backends.compiler import GPUTarget

    path = kernel.path("ttgir")
    if not path.exists():
        raise NotInCache(f"the cache has no TTGIR of kernel {kernel.name}, only its binary")
    options = {name: kernel.metadata[name] for name in _OPTIONS if name in kernel.metadata} | {"debug_info": True}
    gpu = GPUTarget("spirv", capabilities.arch(), capabilities.subgroup_size)
    try:
        compiled = triton.compile(str(path), target=gpu, options=options)
    except RuntimeError as error:
        raise NotInCache(f"kernel {kernel.name} cannot be compiled from {path}: {error}") from None
    for stage in ("source", "ttir", "ttgir"):
        if kernel.path(stage).exists():
            compiled.asm[stage] = kernel.path(stage).read_text(encoding="utf-8")
    return compiled


def collected(compiled: Any, capabilities: Capabilities) -> dict[str, Any]:
    """What the page shows of a CompiledKernel, as plain data."""
    from .plan import lines_of, planned_again  # needs Triton's compiled library

    metadata, asm = compiled.metadata, compiled.asm
    spirv = asm["spv"]
    stages: dict[str, tuple[str, list[Line]]] = {}
    if "ttir" in asm:
        stages["ttir"] = ("TTIR", mlir_lines(asm["ttir"]))
    stages["ttgir"] = ("TTGIR", mlir_lines(asm["ttgir"]))
    planned = planned_again(asm["ttgir"], capabilities, metadata._asdict(), asm.get("ttir"))
    kernel, plan = kernel_of(planned.source), planned.plan
    stages["plan"] = ("Plan", lines_of(planned))
    stages["spv"] = ("SPIR-V", spirv_lines(spirv))
    source = source_lines([lines for _, lines in stages.values()])
    places = {place: None for _, lines in stages.values() for line in lines for place in line.places}
    places |= {place: None for line in source for place in line.places}
    numbers = {place: number for number, place in enumerate(places)}
    spelling = Spelling(planned.source.aliases)
    facts = [(fact, getattr(metadata, name)) for fact, name in _FACTS]
    return {
        "title": f"Kernel {metadata.name}",
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
        "accesses": drawings.accesses(kernel, plan),
        "layouts": drawings.layouts(kernel, spelling),
        "conversions": drawings.conversions(kernel, spelling, plan),
        "shared": drawings.shared_memory(kernel, plan),
        "banks": shared_accesses(kernel, plan),
        "mix": drawings.instruction_mix([entry.name for entry in decode(spirv)]),
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
        ("@SCRIPT@", (PAGE / "script.js").read_text(encoding="utf-8")),
        ("@DATA@", embedded),
    ):
        text = text.replace(mark, value, 1)
    return text
