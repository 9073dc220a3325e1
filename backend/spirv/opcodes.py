"""Opcodes and enumerants by their names in SPIR-V's grammar (grammar.txt): ``op.IAdd``, ``Scope.Workgroup``."""

from __future__ import annotations

from collections.abc import Mapping

from .grammar import enumerants, extended, opcodes

globals().update(opcodes())


def __getattr__(name: str) -> int:
    """Says to type checkers what the names of instructions are. tests/unit/spirv/test_grammar.py checks the names."""
    raise AttributeError(f"the grammar of SPIR-V has no instruction {name}")


class _Numbers:
    """Numbers by their names."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.__dict__.update({name: number for number, name in names.items()})

    def __getattr__(self, name: str) -> int:
        raise AttributeError(f"the grammar of SPIR-V has no {name} here")


def _enumeration(kind: str) -> _Numbers:
    return _Numbers({number: entry.name for number, entry in enumerants(kind).items()})


def _named(names: str) -> frozenset[int]:
    return frozenset(map(opcodes().__getitem__, names.split()))


#: Instructions that only compute: equal operands give equal results, and an unused one can be dropped.
PURE = _named(
    "CooperativeMatrixMulAddKHR Undef ExtInst AccessChain VectorShuffle CompositeConstruct CompositeExtract "
    "CompositeInsert ConvertFToU ConvertFToS ConvertSToF ConvertUToF UConvert SConvert FConvert ConvertPtrToU "
    "ConvertUToPtr Bitcast SNegate FNegate IAdd FAdd ISub FSub IMul FMul UDiv SDiv FDiv UMod SRem FRem UMulExtended "
    "SMulExtended IsNan IsInf LogicalEqual LogicalNotEqual LogicalOr LogicalAnd LogicalNot Select IEqual INotEqual "
    "UGreaterThan SGreaterThan UGreaterThanEqual SGreaterThanEqual ULessThan SLessThan ULessThanEqual SLessThanEqual "
    "FOrdEqual FUnordEqual FOrdNotEqual FUnordNotEqual FOrdLessThan FUnordLessThan FOrdGreaterThan FUnordGreaterThan "
    "FOrdLessThanEqual FUnordLessThanEqual FOrdGreaterThanEqual FUnordGreaterThanEqual ShiftRightLogical "
    "ShiftRightArithmetic ShiftLeftLogical BitwiseOr BitwiseXor BitwiseAnd Not BitReverse BitCount"
)
#: Instructions with a result that can be dropped when unused, though two equal ones may differ.
REMOVABLE = PURE | _named(
    "Phi Load GroupNonUniformShuffle GroupNonUniformShuffleXor GroupNonUniformShuffleUp GroupNonUniformBroadcast "
    "GroupNonUniformAll GroupNonUniformAny"
)
#: Operand order does not matter: value numbering sorts the operands.
COMMUTATIVE = _named(
    "IAdd FAdd IMul FMul LogicalEqual LogicalNotEqual LogicalOr LogicalAnd IEqual INotEqual FOrdEqual FUnordEqual "
    "FOrdNotEqual FUnordNotEqual BitwiseOr BitwiseXor BitwiseAnd"
)
#: Floating-point arithmetic that a driver may contract or reassociate unless it is decorated NoContraction.
CONTRACTIBLE = _named("FAdd FSub FMul FDiv FNegate FRem")

StorageClass = _enumeration("StorageClass")
Decoration = _enumeration("Decoration")
BuiltIn = _enumeration("BuiltIn")
ExecutionMode_ = _enumeration("ExecutionMode")
Scope = _enumeration("Scope")
Semantics = _enumeration("MemorySemantics")
MemoryAccess = _enumeration("MemoryAccess")
Glsl = _Numbers(extended("GLSL.std.450"))


class Capability_:
    """Those that kernels may need (ahead_of_time/features.py), of section 3.31."""

    Shader = 1
    Linkage = 5
    Float16 = 9
    Float64 = 10
    Int64 = 11
    Int64Atomics = 12
    Int16 = 22
    Int8 = 39
    GroupNonUniform = 61
    GroupNonUniformVote = 62
    GroupNonUniformBallot = 64
    GroupNonUniformShuffle = 65
    StorageBuffer16BitAccess = 4433
    StorageBuffer8BitAccess = 4448
    WorkgroupMemoryExplicitLayoutKHR = 4428
    WorkgroupMemoryExplicitLayout8BitAccessKHR = 4429
    WorkgroupMemoryExplicitLayout16BitAccessKHR = 4430
    DenormPreserve = 4464
    SignedZeroInfNanPreserve = 4466
    RoundingModeRTE = 4467
    VulkanMemoryModel = 5345
    VulkanMemoryModelDeviceScope = 5346
    PhysicalStorageBufferAddresses = 5347
    ShaderClockKHR = 5055
    ShaderSMBuiltinsNV = 5373
    AtomicFloat32AddEXT = 6033
    AtomicFloat64AddEXT = 6034
    CooperativeMatrixKHR = 6022
    BFloat16TypeKHR = 5116
    BFloat16CooperativeMatrixKHR = 5118


class MatrixUse:
    """Cooperative Matrix Use (SPV_KHR_cooperative_matrix). The result's is the accumulator's."""

    A = 0
    B = 1
    Result = 2


class MatrixOperands:
    """Cooperative Matrix Operands (SPV_KHR_cooperative_matrix)."""

    SignedA = 1
    SignedB = 2
    SignedC = 4
    SignedResult = 8
