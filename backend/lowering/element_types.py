"""How the elements of scalars and tensors are held: the SPIR-V type of each TTGIR element type.

==================  =====================================================================
i1                  bool (one byte in memory)
i8 … i64            integer of that width
f16, f32, f64       float of that width; f16 where the device has no such floats: as bf16
bf16                16-bit integer holding the bits; computed with in f32
fp8                 8-bit integer holding the bits
pointer             64-bit integer, the byte address
==================  =====================================================================
"""

from __future__ import annotations

from ..capabilities import Capabilities
from ..spirv.module import ModuleBuilder
from ..ttgir.types import FloatType, IndexType, IntegerType, PointerType, Type, element_type
from .errors import missing

#: Float types that SPIR-V has, with the feature that each needs.
NATIVE_FLOATS = {"f16": "float16", "f32": None, "f64": "float64"}
INTEGER_FEATURE = {8: "int8", 16: "int16"}
MEMORY_FEATURE = {8: "storage8", 16: "storage16"}


class ElementTypes:
    """Element types of one module."""

    def __init__(self, module: ModuleBuilder, capabilities: Capabilities) -> None:
        self._module = module
        self._capabilities = capabilities
        self._known: dict[Type, int] = {}

    def type_id(self, type_: Type) -> int:
        """The SPIR-V type that holds a value of ``type_`` (its element, for a tensor).

        Raises NotImplementedError, naming the feature, where the device has no arithmetic of that width.
        """
        type_ = element_type(type_)
        known = self._known.get(type_)
        if known is None:
            known = self._known[type_] = self._declare(type_)
        return known

    def memory_type_id(self, type_: Type) -> int:
        """The SPIR-V type of the element in memory: that of the value, but a byte for i1."""
        type_ = element_type(type_)
        return self.integer(8) if type_ == IntegerType(1) else self.type_id(type_)

    def is_native(self, type_: Type) -> bool:
        """Whether values of ``type_`` are floats of SPIR-V, which computes with them."""
        if not isinstance(type_, FloatType) or type_.name not in NATIVE_FLOATS:
            return False
        return type_.name != "f16" or self._capabilities.has("float16")

    def integer(self, width: int) -> int:
        """An integer type, if the device has it."""
        self._require(INTEGER_FEATURE.get(width), f"{width}-bit integers")
        return self._module.int(width)

    def _declare(self, type_: Type) -> int:
        if isinstance(type_, IntegerType):
            return self._module.bool if type_.width == 1 else self.integer(type_.width)
        if isinstance(type_, PointerType):
            return self.integer(64)
        if isinstance(type_, IndexType):
            return self.integer(32)
        if isinstance(type_, FloatType):
            if self.is_native(type_):
                self._require(NATIVE_FLOATS[type_.name], f"{type_.name} arithmetic")
                return self._module.float(type_.width)
            if type_.width in (8, 16):
                return self.integer(type_.width)
        raise NotImplementedError(f"values of type {type_} are not supported")

    def _require(self, feature: str | None, what: str) -> None:
        if feature and not self._capabilities.has(feature):
            raise missing(self._capabilities.driver, f"has no {what}", feature)
