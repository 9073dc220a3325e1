"""How consecutive elements travel to and from memory: as one scalar or one vector of at most four components.

Elements narrower than a word travel in 32-bit words once there are enough of them, so that 128 bits are a vector of
four whatever the element. i1 is a byte in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..layouts.element_sizes import MAX_BITS, bits_in_memory
from ..spirv import opcodes as op
from ..ttgir.types import IntegerType, Type
from .emitter import Emitter


@dataclass(frozen=True)
class PackedElements:
    """``parts`` components of SPIR-V type ``part``, each ``per_part`` elements of SPIR-V type ``element``.

    ``boolean``: the elements are i1, held as bytes. ``bits``: of the whole access."""

    element: int
    part: int
    parts: int
    per_part: int
    boolean: bool
    bits: int

    def type_id(self, emitter: Emitter) -> int:
        """The SPIR-V type that is loaded or stored."""
        return emitter.module.vector(self.part, self.parts) if self.parts > 1 else self.part


def packing(emitter: Emitter, type_: Type, count: int) -> PackedElements:
    """The packing of ``count`` elements of scalar ``type_``; ``count`` is a power of two, MAX_BITS at most in all."""
    element = emitter.elements.memory_type_id(type_)
    bits = bits_in_memory(type_)
    boolean = type_ == IntegerType(1)
    total = bits * count
    assert total <= MAX_BITS, (type_, count)
    if bits < 32 <= total:
        return PackedElements(element, emitter.module.u32, total // 32, 32 // bits, boolean, total)
    return PackedElements(element, element, count, 1, boolean, total)


def unpack(emitter: Emitter, how: PackedElements, loaded: int) -> list[int]:
    """The elements of a loaded value."""
    f, module = emitter.f, emitter.module
    parts = (
        [loaded]
        if how.parts == 1
        else [f.emit(op.CompositeExtract, how.part, loaded, index) for index in range(how.parts)]
    )
    if how.per_part > 1:
        parts = [element for part in parts for element in split_word(emitter, part, how.element)]
    if how.boolean:
        return [f.compare(op.INotEqual, part, module.uint(0, 8)) for part in parts]
    return parts


def pack(emitter: Emitter, how: PackedElements, values: Sequence[int]) -> int:
    """The value to store for ``values``."""
    f, module = emitter.f, emitter.module
    parts = list(values)
    if how.boolean:
        parts = [f.select(value, module.uint(1, 8), module.uint(0, 8)) for value in parts]
    if how.per_part > 1:
        parts = [
            join_words(emitter, parts[start : start + how.per_part], how.part)
            for start in range(0, len(parts), how.per_part)
        ]
    return parts[0] if how.parts == 1 else f.emit(op.CompositeConstruct, how.type_id(emitter), *parts)


def _steps(emitter: Emitter, word: int, element: int) -> list[int]:
    """The types between a word and its elements: a bit cast makes a vector of four components at most."""
    module = emitter.module
    bits, width = module.kinds[word][1], module.kinds[element][1]
    return [module.u32, element] if bits == 64 and width < 32 else [element]


def split_word(emitter: Emitter, word: int, element: int) -> list[int]:
    """The parts of SPIR-V type ``element`` that a scalar is made of, the lowest first."""
    f, module = emitter.f, emitter.module
    values = [word]
    for type_id in _steps(emitter, f.type_of(word), element):
        count = module.kinds[f.type_of(values[0])][1] // module.kinds[type_id][1]
        vectors = [f.bitcast(value, module.vector(type_id, count)) for value in values]
        values = [f.emit(op.CompositeExtract, type_id, vector, index) for vector in vectors for index in range(count)]
    return values


def join_words(emitter: Emitter, elements: Sequence[int], word: int) -> int:
    """The scalar of SPIR-V type ``word`` that is made of ``elements``."""
    f, module = emitter.f, emitter.module
    values = list(elements)
    for type_id in [*_steps(emitter, word, f.type_of(values[0]))[-2::-1], word]:
        source = f.type_of(values[0])
        count = module.kinds[type_id][1] // module.kinds[source][1]
        vector = module.vector(source, count)
        values = [
            f.bitcast(f.emit(op.CompositeConstruct, vector, *values[start : start + count]), type_id)
            for start in range(0, len(values), count)
        ]
    return values[0]
