"""The device features that a module needs, read from its own words."""

from __future__ import annotations

from ..matrices import COMPONENTS
from ..spirv import opcodes as op
from ..spirv.decode import instruction_words
from ..spirv.grammar import enumerants
from ..spirv.module import ENCODED_FLOATS
from ..spirv.opcodes import Capability_, ExecutionMode_

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
    Capability_.CooperativeMatrixKHR: "matrices",
    **{
        capability: COMPONENTS[name].feature
        for name, one in ENCODED_FLOATS.items()
        for capability in (one.capability, one.matrices)
    },
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
#: Capabilities of modules for no Vulkan device: that of functions that the CPU device has.
ELSEWHERE = frozenset({Capability_.Linkage})
#: Execution mode with a width → the float control.
CONTROL_OF = {
    ExecutionMode_.RoundingModeRTE: "round_to_nearest_even",
    ExecutionMode_.DenormPreserve: "preserve_denormals",
    ExecutionMode_.SignedZeroInfNanPreserve: "preserve_signed_zero_inf_nan",
}


def required_features(spirv: bytes) -> frozenset[str]:
    """The keys of capabilities.FEATURES without which the module cannot run. Raises ValueError on a capability that
    stands for none of them."""
    found = set()
    for opcode, operands in instruction_words(spirv):
        if opcode == op.Capability and operands[0] not in EVERYWHERE | ELSEWHERE:
            if operands[0] not in FEATURE_OF:
                known = enumerants("Capability").get(operands[0])
                capability = f"{known.name} ({operands[0]})" if known else str(operands[0])
                raise ValueError(
                    f"the module has the SPIR-V capability {capability}, which belongs to no device feature"
                )
            found.add(FEATURE_OF[operands[0]])
        elif opcode == op.ExecutionMode and operands[1] in CONTROL_OF:
            found.add(f"{CONTROL_OF[operands[1]]}{operands[2]}")
    return frozenset(found)
