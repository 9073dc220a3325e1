"""What a module needs of a device, read from its own words."""

from __future__ import annotations

import array
import sys
from collections.abc import Iterator

from ..spirv.opcodes import Capability_, ExecutionMode_

_OP_EXECUTION_MODE, _OP_CAPABILITY, _HEADER_WORDS = 16, 17, 5

#: SPIR-V capability → key of capabilities.FEATURES.
FEATURE_OF = {
    Capability_.Float16: "float16",
    Capability_.Float64: "float64",
    Capability_.Int8: "int8",
    Capability_.Int16: "int16",
    Capability_.StorageBuffer8BitAccess: "storage8",
    Capability_.StorageBuffer16BitAccess: "storage16",
    Capability_.WorkgroupMemoryExplicitLayoutKHR: "explicit_workgroup_layout",
    Capability_.WorkgroupMemoryExplicitLayout8BitAccessKHR: "explicit_workgroup_layout",
    Capability_.WorkgroupMemoryExplicitLayout16BitAccessKHR: "explicit_workgroup_layout",
    Capability_.Int64Atomics: "int64_atomics",
    Capability_.ShaderClockKHR: "device_clock",
    Capability_.ShaderSMBuiltinsNV: "multiprocessor_built_ins",
    Capability_.AtomicFloat32AddEXT: "float32_atomic_add",
    Capability_.AtomicFloat64AddEXT: "float64_atomic_add",
}
#: Capabilities that every device has on which kernels can run at all, and those whose execution modes tell the feature.
EVERYWHERE = frozenset(
    {
        Capability_.Shader,
        Capability_.Int64,
        Capability_.GroupNonUniform,
        Capability_.GroupNonUniformVote,
        Capability_.GroupNonUniformBallot,
        Capability_.GroupNonUniformShuffle,
        Capability_.VulkanMemoryModel,
        Capability_.VulkanMemoryModelDeviceScope,
        Capability_.PhysicalStorageBufferAddresses,
        Capability_.RoundingModeRTE,
        Capability_.DenormPreserve,
        Capability_.SignedZeroInfNanPreserve,
    }
)
#: Execution mode with a width → the float control.
CONTROL_OF = {
    ExecutionMode_.RoundingModeRTE: "round_to_nearest_even",
    ExecutionMode_.DenormPreserve: "preserve_denormals",
    ExecutionMode_.SignedZeroInfNanPreserve: "preserve_signed_zero_inf_nan",
}


def _instructions(spirv: bytes) -> Iterator[tuple[int, array.array[int]]]:
    words = array.array("I", spirv)
    if sys.byteorder == "big":
        words.byteswap()
    position = _HEADER_WORDS
    while position < len(words):
        length = words[position] >> 16
        yield words[position] & 0xFFFF, words[position + 1 : position + length]
        position += length


def required_features(spirv: bytes) -> frozenset[str]:
    """The keys of capabilities.FEATURES without which the module cannot run. Raises ValueError on a capability that
    stands for none of them."""
    found = set()
    for opcode, operands in _instructions(spirv):
        if opcode == _OP_CAPABILITY and operands[0] not in EVERYWHERE:
            if operands[0] not in FEATURE_OF:
                raise ValueError(
                    f"the module has the SPIR-V capability {operands[0]}, for which no device feature is known"
                )
            found.add(FEATURE_OF[operands[0]])
        elif opcode == _OP_EXECUTION_MODE and operands[1] in CONTROL_OF:
            found.add(f"{CONTROL_OF[operands[1]]}{operands[2]}")
    return frozenset(found)
