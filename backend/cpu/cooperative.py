"""Cooperative matrices of emulated devices (SPV_KHR_cooperative_matrix): each lane's components are numbers of it."""

from __future__ import annotations

from ..spirv.opcodes import MatrixOperands
from . import spread_access
from .code import type_name
from .decoded_module import ModuleInstruction, ModuleType
from .emulation import COMPONENTS, component_of, flat, numbers
from .errors import Untranslatable
from .registry import translates
from .translation import Translation
from .watching import watch_places

_ROW_MAJOR, _COLUMN_MAJOR = 0, 1


def _component(t: Translation, matrix: ModuleType, signed: bool = False) -> str:
    element = t.program.types[matrix.element]
    return component_of(element.kind, element.bits, element.encoding, signed)


def _numbers(t: Translation, matrix: ModuleType) -> list[list[int]]:
    emulation = t.program.emulation
    assert emulation is not None
    found = emulation.component_map(matrix.use, matrix.rows, matrix.columns, _component(t, matrix))
    assert found is not None, "decoded_module.py refuses a type without one"
    return numbers(found, matrix.columns, matrix.count, t.lanes)


def _constant(t: Translation, item: ModuleInstruction, operand: int, what: str) -> int:
    known = t.program.constants.get(operand)
    if known is None:
        raise Untranslatable(t.program.name, f"a matrix in memory whose {what} is not known", t.where(item))
    return known.bits


@translates("OpCooperativeMatrixLoadKHR")
def _load(t: Translation, item: ModuleInstruction) -> None:
    program, code = t.program, t.code
    pointer, layout, stride = item.operands[:3]
    matrix, address = program.type(item.result), t.keys(pointer)[0]
    name, size = type_name(program.types[matrix.element]), program.size(matrix.element)
    step = _constant(t, item, stride, "stride") * program.size(program.type(pointer).element)
    order = _constant(t, item, layout, "layout")
    if order not in (_ROW_MAJOR, _COLUMN_MAJOR):
        raise Untranslatable(program.name, f"a matrix in memory of layout {order}", t.where(item))
    helper, places, storage = spread_access.gather(t, name, size), t.vector(address), program.type(pointer).storage
    for key, elements in zip(t.keys(item.result), _numbers(t, matrix), strict=True):
        rows = [divmod(element, matrix.columns) for element in elements]
        offsets = [a * step + b * size for a, b in (rows if order == _ROW_MAJOR else [place[::-1] for place in rows])]
        at = code.emit(f"add {t.spread('i64')} {places}, {t.constant_vector('i64', offsets)}")
        watch_places(t, storage, at, size)
        arguments = [(t.spread("i64"), at), (t.mask_type, t.active()), (t.spread(name), "zeroinitializer")]
        t.values[key] = code.call(helper, t.spread(name), arguments, declared=True)


@translates("OpCooperativeMatrixMulAddKHR")
def _multiply(t: Translation, item: ModuleInstruction) -> None:
    program, code = t.program, t.code
    words = item.operands
    signs = words[3] if len(words) > 3 else 0
    operands = [*words[:3], item.result]
    matrices = [program.type(operand) for operand in operands]
    bits = (MatrixOperands.SignedA, MatrixOperands.SignedB, MatrixOperands.SignedC, MatrixOperands.SignedResult)
    names = [_component(t, one, bool(signs & bit)) for one, bit in zip(matrices, bits, strict=True)]
    left, right = matrices[:2]
    table = [left.rows, right.columns, left.columns, t.lanes, int(bool(signs & _SATURATES))]
    table += [COMPONENTS.index(name) for name in names] + [one.count for one in matrices]
    for one in matrices[:3]:
        table += flat(_numbers(t, one))
    name = f"matrices{item.result}"
    t.code.helpers[name] = f"@{name} = internal constant [{len(table)} x i32] [{', '.join(f'i32 {n}' for n in table)}]"
    memory = code.emit(f"add i64 %own, {t.told}")
    offset = 0
    for operand, one in zip(operands, matrices, strict=True):
        scalar, size = type_name(program.types[one.element]), program.size(one.element)
        for key in t.keys(operand):
            at = t.pointer(code.emit(f"add i64 {memory}, {offset}"))
            if operand != item.result:
                code.do(f"store {t.spread(scalar)} {t.vector(key)}, ptr {at}, align {size}")
            elif offset == sum(other.count * program.size(other.element) * t.lanes for other in matrices[:3]):
                code.call("triton_spirv_multiply_matrices", "void", [("ptr", t.pointer(memory)), ("ptr", f"@{name}")])
            if operand == item.result:
                t.values[key] = code.emit(f"load {t.spread(scalar)}, ptr {at}, align {size}")
            offset += size * t.lanes


#: Cooperative Matrix Operands: MatrixResultSaturatingAccumulation.
_SATURATES = 0x10
