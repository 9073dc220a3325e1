"""Upstream's pass pipelines, as tables: (pass group, pass name, arguments)."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from typing import Any

from triton._C.libtriton import ir, passes

from .layouts.buffers import buffer_bytes
from .layouts.element_sizes import bits_in_memory
from .transforms.dot_precision import OF_F32
from .transforms.exchanged_pointers import EXCHANGES
from .transforms.sink_loads import APART, are_apart
from .ttgir.attributes import AttributeReader
from .ttgir.lexer import Tokens
from .ttgir.types import MemDescType, TensorType

#: What ``ttg.target`` says of the module.
TARGET = "spirv:vulkan1.3"

#: What it says while upstream's add_accelerate_matmul runs, which wants an NVIDIA compute capability: 6.0 has no matrix
#: instructions, so all that the pass does is decompose tt.dot_scaled and widen the operands of tt.dot to its result.
NO_MATRIX_INSTRUCTIONS = "cuda:60"

#: The same where dots go to matrix units: 8.0 has instructions of one warp on values in registers, as Vulkan has.
MATRIX_INSTRUCTIONS = "cuda:80"

Pipeline = Sequence[tuple[Any, str, tuple[Any, ...]]]

#: Front-end TTIR to optimised TTIR. Tensor descriptors become pointers: Vulkan has no tensor-map hardware.
TTIR: Pipeline = (
    (passes.common, "add_inliner", ()),
    (passes.ttir, "add_rewrite_tensor_descriptor_to_pointer", ()),
    (passes.common, "add_canonicalizer", ()),
    (passes.ttir, "add_combine", ()),
    (passes.ttir, "add_reorder_broadcast", ()),
    (passes.common, "add_cse", ()),
    (passes.ttir, "add_triton_licm", ()),
    (passes.common, "add_symbol_dce", ()),
    (passes.ttir, "add_loop_unroll", ()),
)


def layouts(num_warps: int, subgroup_size: int, num_ctas: int) -> Pipeline:
    """TTIR to TTGIR."""
    return (
        (passes.ttir, "add_convert_to_ttgpuir", (TARGET, num_warps, subgroup_size, num_ctas)),
        (passes.ttgpuir, "add_coalesce", ()),
        (passes.ttgpuir, "add_remove_layout_conversions", ()),
        (passes.ttgpuir, "add_optimize_thread_locality", ()),
    )


#: Block-scaled dots (``tt.dot_scaled``) to plain ones.
DECOMPOSE_SCALED_DOTS: Pipeline = ((passes.ttgpuir, "add_accelerate_matmul", ()),)

#: Dots get layouts of matrix fragments, and with them what they are computed from and what is computed from them.
ACCELERATE_DOTS: Pipeline = (
    (passes.ttgpuir, "add_accelerate_matmul", ()),
    (passes.ttgpuir, "add_remove_layout_conversions", ()),
    (passes.ttgpuir, "add_optimize_dot_operands", (True,)),
    (passes.ttir, "add_loop_aware_cse", ()),
)

#: TTGIR to optimised TTGIR.
TTGIR: Pipeline = (
    (passes.ttgpuir, "add_remove_layout_conversions", ()),
    (passes.ttgpuir, "add_optimize_dot_operands", (False,)),
    (passes.ttir, "add_loop_aware_cse", ()),
    (passes.ttgpuir, "add_remove_layout_conversions", ()),
    (passes.ttgpuir, "add_reduce_data_duplication", ()),
    (passes.ttgpuir, "add_reorder_instructions", ()),
    (passes.ttir, "add_loop_aware_cse", ()),
    (passes.common, "add_symbol_dce", ()),
    (passes.common, "add_sccp", ()),
    (passes.common, "add_cse", ()),
    (passes.common, "add_canonicalizer", ()),
)


#: Offsets in shared memory (``allocation.offset``, ``ttg.shared``), and in a program's global scratch memory
#: (``ttg.global_scratch_memory_offset``, ``_size``, ``_alignment``).
ALLOCATE: Pipeline = (
    (passes.ttgpuir, "add_combine_tensor_select_and_if", ()),
    (passes.ttgpuir, "add_allocate_shared_memory", ()),
    (passes.ttgpuir, "add_allocate_global_scratch_memory", ()),
)


#: A Gluon kernel to TTGIR: its layouts are its author's.
GLUON: Pipeline = (
    (passes.gluon, "add_inliner", ()),
    (passes.gluon, "add_infer_coalesced_encodings", ()),
    (passes.gluon, "add_resolve_auto_encodings", ()),
    (passes.gluon, "add_canonicalizer", ()),
    (passes.common, "add_sccp", ()),
    (passes.ttir, "add_loop_aware_cse", ()),
    (passes.gluon, "add_canonicalizer", ()),
    (passes.ttgpuir, "add_combine_tensor_select_and_if", ()),
    (passes.common, "add_symbol_dce", ()),
)


def run(module: Any, pipeline: Pipeline, name: str, copies: bool = True) -> None:
    """Runs a pipeline on ``module`` in place; ``name`` labels it in timings and reproducers. ``copies``: code may be
    there twice, in two layouts, where that saves a layout conversion."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    for group, pass_name, arguments in pipeline:
        if pass_name == "add_remove_layout_conversions" and not copies:
            arguments = (True,)  # disable-remat-splitting
        getattr(group, pass_name)(manager, *arguments)
    manager.run(module, name)


def decompose_scaled_dots(module: Any) -> None:
    """Block-scaled dots to plain dots of scaled operands; a module without any is left as it is."""
    if "tt.dot_scaled" in _names(module):
        _run_for(NO_MATRIX_INSTRUCTIONS, module, DECOMPOSE_SCALED_DOTS, "decompose_scaled_dots")


#: Bits of the dimension that a tt.dot sums over, at least, that add_accelerate_matmul needs for fragments: 16 halves.
_FRAGMENT_BITS = 256


def may_accelerate(module: Any) -> bool:
    """Whether accelerate_dots() can be run on a TTIR module: it has dots, and none sums less than a fragment."""
    left: set[str] = set()
    names: set[str] = set()

    def visit(operation: Any) -> None:
        names.add(operation.get_name())
        if operation.get_name() == "tt.dot":
            left.add(str(operation.get_operand(0).get_type()))

    module.walk(visit)
    return bool(left or "tt.dot_scaled" in names) and all(
        type_.shape[-1] * bits_in_memory(type_.element) >= _FRAGMENT_BITS for type_ in _tensors(left)
    )


def _tensors(types: Collection[str]) -> list[TensorType]:
    """Those of upstream's types that are tensors."""
    reader = AttributeReader()
    read = [reader.type(Tokens(text)) for text in types if text.startswith("tensor<")]
    return [type_ for type_ in read if isinstance(type_, TensorType)]


def accelerate_dots(module: Any, copies: bool = True) -> None:
    """Dots, block-scaled ones included, to dots of matrix fragments. ``copies``: as of run()."""
    _run_for(MATRIX_INSTRUCTIONS, module, ACCELERATE_DOTS, "accelerate_dots", copies)


def _run_for(target: str, module: Any, pipeline: Pipeline, name: str, copies: bool = True) -> None:
    """Runs a pipeline on a module that says it is for ``target`` meanwhile."""
    text = ir.builder(module.context).get_string_attr
    module.set_attr("ttg.target", text(target))
    run(module, pipeline, name, copies)
    module.set_attr("ttg.target", text(TARGET))


def operation_names(module: Any) -> frozenset[str]:
    """The names of a module's operations, ``"<name> on pointers"`` for those that exchange pointers, OF_F32 for dots of
    f32, APART for loads that are apart from their dots: what decides whether its text has to be read at all."""
    order: list[str] = []
    names: set[str] = set()

    def visit(operation: Any) -> None:
        name = operation.get_name()
        order.append(name)
        if name in EXCHANGES:
            operands = (operation.get_operand(index) for index in range(operation.get_num_operands()))
            if any("!tt.ptr" in str(operand.get_type()) for operand in operands):
                names.add(f"{name} on pointers")
        elif name == "tt.dot" and "xf32" in str(operation.get_operand(0).get_type()):
            names.add(OF_F32)

    module.walk(visit)
    return frozenset({*names, *order, *([APART] if are_apart(order) else [])})


def count(module: Any, names: Collection[str]) -> int:
    """How many of a module's operations have one of ``names``."""
    found = 0

    def visit(operation: Any) -> None:
        nonlocal found
        found += operation.get_name() in names

    module.walk(visit)
    return found


def largest_tensor(module: Any) -> int:
    """Elements of the largest tensor among a module's results; 1 where there is none."""
    types: set[str] = set()

    def visit(operation: Any) -> None:
        for index in range(operation.get_num_results()):
            types.add(str(operation.get_result(index).get_type()))

    module.walk(visit)
    return max((type_.size for type_ in _tensors(types)), default=1)


def least_shared(module: Any, explicit: bool) -> int:
    """Bytes of shared memory that a module takes at least, of those that upstream allocated: the buffers that tensors
    are stored to; with the ``explicit`` layout of workgroup memory all of them, where there is such a buffer."""
    ranges: list[tuple[int, int]] = []
    reader = AttributeReader()

    def visit(operation: Any) -> None:
        if operation.get_name() == "ttg.local_alloc" and operation.get_num_operands():
            offset = operation.get_int_attr("allocation.offset")
            type_ = reader.type(Tokens(str(operation.get_result(0).get_type())))
            if offset is not None and isinstance(type_, MemDescType):
                ranges.append((offset, offset + buffer_bytes(type_)))

    module.walk(visit)
    if ranges and explicit:
        return int(module.get_int_attr("ttg.shared"))
    total = end = 0
    for first, last in sorted(ranges):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


def insert_barriers(module: Any) -> frozenset[int]:
    """Upstream's membar analysis: a ``ttg.barrier local`` wherever shared memory needs one. Returns which of the
    module's barriers those are, as numbers in the order of its text."""
    before = _names(module)
    # The analysis only borrows the allocation: it must live until run() returns.
    allocation = passes.analysis.allocation(module)
    passes.analysis.membar(allocation).run()
    return _added(before, _names(module))


def _names(module: Any) -> list[str]:
    names: list[str] = []
    module.walk(lambda operation: names.append(operation.get_name()))
    return names


def _added(before: list[str], after: list[str]) -> frozenset[int]:
    """Which barriers of ``after`` are new: the other operations are those of ``before``, in the same order. Of barriers
    next to each other the last ones count as new."""
    added: set[int] = set()
    kept = number = 0
    for name in after:
        if kept < len(before) and name == before[kept]:
            kept += 1
        else:
            assert name == "ttg.barrier", f"membar inserted {name}"
            added.add(number)
        number += name == "ttg.barrier"
    assert kept == len(before), "membar removed an operation"
    return frozenset(added)


def parse(text: str, context: Any) -> Any:
    """The module of a text; upstream's parser reads files."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module
