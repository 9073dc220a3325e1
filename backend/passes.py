"""Upstream's pass pipelines, as tables: one row per pass."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from triton._C.libtriton import ir, passes

from . import system
from .layouts.element_sizes import bits_in_memory
from .transforms.gpu.dot_precision import OF_F32
from .transforms.sink_loads import APART, are_apart
from .ttgir.attributes import AttributeReader
from .ttgir.lexer import Tokens
from .ttgir.types import TensorType

#: What ``ttg.target`` says of the module.
TARGET = "spirv:vulkan1.3"

#: What it says while upstream's add_accelerate_matmul runs, which wants an NVIDIA compute capability: 6.0 has no matrix
#: instructions, so all that the pass does is decompose tt.dot_scaled and widen the operands of tt.dot to its result.
NO_MATRIX_INSTRUCTIONS = "cuda:60"

#: The same where dots go to matrix units: 8.0 has instructions of one warp on values in registers, as Vulkan has.
MATRIX_INSTRUCTIONS = "cuda:80"

#: Dots on multiply-adds or matrix units; scaled ones are decomposed.
DOTS = frozenset({"tt.dot", "tt.dot_scaled"})

#: What operation_names() calls the functions of a module that has more than one.
SEVERAL_FUNCTIONS = "several tt.func"


class Pass(NamedTuple):
    """An upstream pass: the ``group`` that it is in, the name there, its arguments. ``only_on``: it does nothing to
    a module without an operation of one of these names; empty if that cannot be said. Such a pass is left out, because
    upstream would still verify the whole module after it, which takes as long as a pass that does something.
    ``needed``: nothing can be compiled without it. ``turn``: which of the passes of its name it is, from a kernel's
    TTIR to its last TTGIR."""

    group: Any
    name: str
    arguments: tuple[Any, ...] = ()
    only_on: frozenset[str] = frozenset()
    needed: bool = False
    turn: int = 1

    @property
    def item(self) -> str:
        """What the option ``without`` calls it."""
        return self.name.removeprefix("add_") + (f" {self.turn}" if self.turn > 1 else "")


Pipeline = tuple[Pass, ...]


def _only_on(group: Any, name: str, *operations: str, needed: bool = False, turn: int = 1) -> Pass:
    return Pass(group, name, (), frozenset(operations), needed, turn)


#: Front-end TTIR to optimised TTIR. Tensor descriptors become pointers: Vulkan has no tensor-map hardware.
TTIR: Pipeline = (
    _only_on(passes.common, "add_inliner", "tt.call", needed=True),
    Pass(passes.ttir, "add_rewrite_tensor_descriptor_to_pointer", needed=True),
    Pass(passes.common, "add_canonicalizer"),
    Pass(passes.ttir, "add_combine"),
    Pass(passes.ttir, "add_reorder_broadcast"),
    Pass(passes.common, "add_cse"),
    _only_on(passes.ttir, "add_triton_licm", "scf.for", "scf.while"),
    _only_on(passes.common, "add_symbol_dce", SEVERAL_FUNCTIONS),
    _only_on(passes.ttir, "add_loop_unroll", "scf.for"),
)


def encodings(num_warps: int, subgroup_size: int, num_ctas: int) -> Pipeline:
    """TTIR to TTGIR whose tensors have the encoding that suits their shape."""
    return (Pass(passes.ttir, "add_convert_to_ttgpuir", (TARGET, num_warps, subgroup_size, num_ctas), needed=True),)


#: Tensors get the encodings that suit memory and each other. Upstream's add_optimize_thread_locality is not among them:
#: it takes any update of what a loop carries for the reduction's own, so values are wrong (triton-lang/triton#11305).
LAYOUTS: Pipeline = (Pass(passes.ttgpuir, "add_coalesce"), Pass(passes.ttgpuir, "add_remove_layout_conversions"))

#: Block-scaled dots (``tt.dot_scaled``) to plain ones.
DECOMPOSE_SCALED_DOTS: Pipeline = (Pass(passes.ttgpuir, "add_accelerate_matmul", needed=True),)

#: Dots get layouts of matrix fragments, and with them what they are computed from and what is computed from them.
ACCELERATE_DOTS: Pipeline = (
    Pass(passes.ttgpuir, "add_accelerate_matmul", needed=True),
    Pass(passes.ttgpuir, "add_remove_layout_conversions", needed=True),
    Pass(passes.ttgpuir, "add_optimize_dot_operands", (True,), needed=True),
    Pass(passes.ttir, "add_loop_aware_cse", needed=True),
)

#: What passes work on that move and remove layout conversions.
_MOVED = ("ttg.convert_layout", "ttg.local_alloc", "ttg.local_load", "tt.trans")

#: TTGIR to optimised TTGIR.
TTGIR: Pipeline = (
    _only_on(passes.ttgpuir, "add_remove_layout_conversions", "ttg.convert_layout", turn=2),
    Pass(passes.ttgpuir, "add_optimize_dot_operands", (False,)),
    Pass(passes.ttir, "add_loop_aware_cse"),
    _only_on(passes.ttgpuir, "add_remove_layout_conversions", "ttg.convert_layout", *DOTS, turn=3),
    _only_on(passes.ttgpuir, "add_reduce_data_duplication", *DOTS),
    _only_on(passes.ttgpuir, "add_reorder_instructions", *_MOVED, *DOTS),
    _only_on(passes.ttir, "add_loop_aware_cse", *_MOVED, *DOTS, turn=2),  # again, after those between
    Pass(passes.common, "add_sccp"),
    Pass(passes.common, "add_canonicalizer", turn=2),
)


#: The last passes; offsets in a program's global scratch memory (``ttg.global_scratch_memory_offset``, ``_size``,
#: ``_alignment``).
LAST: Pipeline = (
    _only_on(passes.ttgpuir, "add_combine_tensor_select_and_if", "scf.if"),
    _only_on(passes.ttgpuir, "add_allocate_global_scratch_memory", "ttg.global_scratch_alloc", "tt.call", needed=True),
)


#: A Gluon kernel to TTGIR: its layouts are its author's. What is optional has the names of other kernels' passes.
GLUON: Pipeline = (
    Pass(passes.gluon, "add_inliner", needed=True),
    Pass(passes.gluon, "add_infer_coalesced_encodings", needed=True),
    Pass(passes.gluon, "add_resolve_auto_encodings", needed=True),
    Pass(passes.gluon, "add_canonicalizer"),
    Pass(passes.common, "add_sccp"),
    Pass(passes.ttir, "add_loop_aware_cse"),
    Pass(passes.gluon, "add_canonicalizer", turn=2),
    _only_on(passes.ttgpuir, "add_combine_tensor_select_and_if", "scf.if"),
    _only_on(passes.common, "add_symbol_dce", SEVERAL_FUNCTIONS),
)


def due(pipeline: Pipeline, names: Collection[str], without: Collection[str] = ()) -> list[Pass]:
    """The passes of a pipeline that may change a module with operations of these names, but those ``without`` which it
    is compiled."""
    return [
        row
        for row in pipeline
        if (not row.only_on or not row.only_on.isdisjoint(names)) and (row.needed or row.item not in without)
    ]


def run(module: Any, pipeline: Pipeline, name: str, names: Collection[str], without: Collection[str] = ()) -> None:
    """Runs a pipeline on ``module`` in place; ``name`` labels it in timings and reproducers. ``names``: what
    operation_names() gives for the module; ``without``: the items of passes that are left out."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    for row in due(pipeline, names, without):
        getattr(row.group, row.name)(manager, *row.arguments)
    manager.run(module, name)


def decompose_scaled_dots(module: Any, names: Collection[str]) -> None:
    """Block-scaled dots to plain dots of scaled operands; a module without any is left as it is."""
    if "tt.dot_scaled" in names:
        _run_for(NO_MATRIX_INSTRUCTIONS, module, DECOMPOSE_SCALED_DOTS, "decompose_scaled_dots", names)


def accelerate_dots(module: Any, names: Collection[str]) -> None:
    """Dots, block-scaled ones included, to dots of matrix fragments. ``names``: as of run()."""
    _run_for(MATRIX_INSTRUCTIONS, module, ACCELERATE_DOTS, "accelerate_dots", names)


def _run_for(target: str, module: Any, pipeline: Pipeline, name: str, names: Collection[str]) -> None:
    """Runs a pipeline on a module that says it is for ``target`` meanwhile."""
    text = ir.builder(module.context).get_string_attr
    module.set_attr("ttg.target", text(target))
    run(module, pipeline, name, names)
    module.set_attr("ttg.target", text(TARGET))


#: Bits of the dimension that a tt.dot sums over, at least, that add_accelerate_matmul needs for fragments: 16 halves.
_FRAGMENT_BITS = 256


@dataclass(frozen=True)
class Survey:
    """What is in a TTIR module. ``names``: what operation_names() gives. ``dots``: how many it has. ``largest``:
    elements of the largest tensor among results and scaled operands of dots, 1 if there is none. ``accelerable``:
    accelerate_dots() can be run on it: it has dots, and none sums less than a fragment."""

    names: frozenset[str]
    dots: int
    largest: int
    accelerable: bool


def survey(module: Any) -> Survey:
    """Looks through a TTIR module."""
    order: list[str] = []
    marks: set[str] = set()
    left: set[str] = set()
    largest = 1

    def visit(operation: Any) -> None:
        nonlocal largest
        name = operation.get_name()
        order.append(name)
        for index in range(operation.get_num_results()):
            if shape := operation.get_result(index).get_shape():
                largest = max(largest, math.prod(shape))
        if name == "tt.dot_scaled":
            for operand in (operation.get_operand(0), operation.get_operand(1)):
                size = math.prod(operand.get_shape()) * (2 if str(operand.get_type()).endswith("xi8>") else 1)
                largest = max(largest, size)
        if name == "tt.dot":
            marks.update(_marks(operation))
            left.add(str(operation.get_operand(0).get_type()))

    module.walk(visit)
    dots = sum(name in DOTS for name in order)
    fits = all(type_.shape[-1] * bits_in_memory(type_.element) >= _FRAGMENT_BITS for type_ in _tensors(left))
    return Survey(_found(order, marks), dots, largest, bool(dots) and fits)


def _tensors(types: Collection[str]) -> list[TensorType]:
    """Upstream's types that are tensors."""
    reader = AttributeReader()
    read = [reader.type(Tokens(text)) for text in types if text.startswith("tensor<")]
    return [type_ for type_ in read if isinstance(type_, TensorType)]


def operation_names(module: Any) -> frozenset[str]:
    """The names of a module's operations, OF_F32 for dots of f32, APART for loads that are apart from their dots,
    SEVERAL_FUNCTIONS: what decides whether its text has to be read at all, and which passes have something to do."""
    order: list[str] = []
    marks: set[str] = set()

    def visit(operation: Any) -> None:
        name = operation.get_name()
        order.append(name)
        if name == "tt.dot":
            marks.update(_marks(operation))

    module.walk(visit)
    return _found(order, marks)


def _marks(dot: Any) -> list[str]:
    """What else operation_names() calls a dot."""
    return [OF_F32] if "xf32" in str(dot.get_operand(0).get_type()) else []


def _found(order: list[str], marks: set[str]) -> frozenset[str]:
    several = order.count("tt.func") > 1
    return frozenset(
        {*order, *marks, *([APART] if are_apart(order) else []), *([SEVERAL_FUNCTIONS] if several else [])}
    )


def parse(text: str, context: Any) -> Any:
    """The module of a text; upstream's parser reads files."""
    with system.file_of(text.encode()) as file:
        module = ir.parse_mlir_module(file, context)
    module.context = context
    return module
