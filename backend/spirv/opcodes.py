"""Opcode and enumerant numbers that are used here (SPIR-V specification, sections 3.2 to 3.49)."""

from __future__ import annotations

# Miscellaneous and debug.
Undef = 1
Source = 3
Name = 5
Line = 8
String = 7
NoLine = 317

# Mode setting.
Extension = 10
ExtInstImport = 11
ExtInst = 12
MemoryModel = 14
EntryPoint = 15
ExecutionMode = 16
Capability = 17

# Types.
TypeVoid = 19
TypeBool = 20
TypeInt = 21
TypeFloat = 22
TypeVector = 23
TypeArray = 28
TypeStruct = 30
TypePointer = 32
TypeFunction = 33

TypeCooperativeMatrixKHR = 4456

# Constants.
ConstantTrue = 41
ConstantFalse = 42
Constant = 43
ConstantComposite = 44
ConstantNull = 46

# Functions.
Function = 54
FunctionParameter = 55
FunctionEnd = 56
FunctionCall = 57

# Memory.
Variable = 59
Load = 61
Store = 62
AccessChain = 65

# Annotations.
Decorate = 71
MemberDecorate = 72

# Composites.
VectorExtractDynamic = 77
VectorShuffle = 79
CompositeConstruct = 80
CompositeExtract = 81
CompositeInsert = 82

# Conversions.
ConvertFToU = 109
ConvertFToS = 110
ConvertSToF = 111
ConvertUToF = 112
UConvert = 113
SConvert = 114
FConvert = 115
ConvertPtrToU = 117
ConvertUToPtr = 120
Bitcast = 124

# Arithmetic.
SNegate = 126
FNegate = 127
IAdd = 128
FAdd = 129
ISub = 130
FSub = 131
IMul = 132
FMul = 133
UDiv = 134
SDiv = 135
FDiv = 136
UMod = 137
SRem = 138
FRem = 140
UMulExtended = 151
SMulExtended = 152

# Relational and logical.
IsNan = 156
IsInf = 157
LogicalEqual = 164
LogicalNotEqual = 165
LogicalOr = 166
LogicalAnd = 167
LogicalNot = 168
Select = 169
IEqual = 170
INotEqual = 171
UGreaterThan = 172
SGreaterThan = 173
UGreaterThanEqual = 174
SGreaterThanEqual = 175
ULessThan = 176
SLessThan = 177
ULessThanEqual = 178
SLessThanEqual = 179
FOrdEqual = 180
FUnordEqual = 181
FOrdNotEqual = 182
FUnordNotEqual = 183
FOrdLessThan = 184
FUnordLessThan = 185
FOrdGreaterThan = 186
FUnordGreaterThan = 187
FOrdLessThanEqual = 188
FUnordLessThanEqual = 189
FOrdGreaterThanEqual = 190
FUnordGreaterThanEqual = 191

# Bits.
ShiftRightLogical = 194
ShiftRightArithmetic = 195
ShiftLeftLogical = 196
BitwiseOr = 197
BitwiseXor = 198
BitwiseAnd = 199
Not = 200
BitReverse = 204
BitCount = 205

# Barriers and atomics.
ControlBarrier = 224
MemoryBarrier = 225
AtomicLoad = 227
AtomicStore = 228
AtomicExchange = 229
AtomicCompareExchange = 230
AtomicIAdd = 234
AtomicISub = 235
AtomicSMin = 236
AtomicUMin = 237
AtomicSMax = 238
AtomicUMax = 239
AtomicAnd = 240
AtomicOr = 241
AtomicXor = 242
AtomicFAddEXT = 6035

# Control flow.
Phi = 245
LoopMerge = 246
SelectionMerge = 247
Label = 248
Branch = 249
BranchConditional = 250
Return = 253
ReturnValue = 254
Unreachable = 255

# Subgroups.
GroupNonUniformElect = 333
GroupNonUniformAll = 334
GroupNonUniformAny = 335
GroupNonUniformBroadcast = 337
GroupNonUniformShuffle = 345
GroupNonUniformShuffleXor = 346
GroupNonUniformShuffleUp = 347

# Shader clock (SPV_KHR_shader_clock).
ReadClockKHR = 5056

# Cooperative matrices.
CooperativeMatrixLoadKHR = 4457
CooperativeMatrixStoreKHR = 4458
CooperativeMatrixMulAddKHR = 4459
CooperativeMatrixLengthKHR = 4460

#: Instructions that only compute: equal operands give equal results, and an unused one can be dropped.
# fmt: off
PURE = frozenset({
    CooperativeMatrixMulAddKHR,
    Undef, ExtInst, AccessChain, VectorShuffle, CompositeConstruct, CompositeExtract, CompositeInsert,
    ConvertFToU, ConvertFToS, ConvertSToF, ConvertUToF, UConvert, SConvert, FConvert, ConvertPtrToU, ConvertUToPtr,
    Bitcast, SNegate, FNegate, IAdd, FAdd, ISub, FSub, IMul, FMul, UDiv, SDiv, FDiv, UMod, SRem, FRem,
    UMulExtended, SMulExtended, IsNan, IsInf, LogicalEqual, LogicalNotEqual, LogicalOr, LogicalAnd, LogicalNot, Select,
    IEqual, INotEqual, UGreaterThan, SGreaterThan, UGreaterThanEqual, SGreaterThanEqual, ULessThan, SLessThan,
    ULessThanEqual, SLessThanEqual, FOrdEqual, FUnordEqual, FOrdNotEqual, FUnordNotEqual, FOrdLessThan, FUnordLessThan,
    FOrdGreaterThan, FUnordGreaterThan, FOrdLessThanEqual, FUnordLessThanEqual, FOrdGreaterThanEqual,
    FUnordGreaterThanEqual, ShiftRightLogical, ShiftRightArithmetic, ShiftLeftLogical, BitwiseOr, BitwiseXor,
    BitwiseAnd, Not, BitReverse, BitCount,
})

#: Instructions with a result that can be dropped when unused, though two equal ones may differ.
REMOVABLE = PURE | {Phi, Load, GroupNonUniformShuffle, GroupNonUniformShuffleXor, GroupNonUniformShuffleUp,
                    GroupNonUniformBroadcast, GroupNonUniformAll, GroupNonUniformAny}

#: Operand order does not matter: value numbering sorts the operands.
COMMUTATIVE = frozenset({
    IAdd, FAdd, IMul, FMul, LogicalEqual, LogicalNotEqual, LogicalOr, LogicalAnd, IEqual, INotEqual, FOrdEqual,
    FUnordEqual, FOrdNotEqual, FUnordNotEqual, BitwiseOr, BitwiseXor, BitwiseAnd,
})

#: Floating-point arithmetic that a driver may contract or reassociate unless it is decorated NoContraction.
CONTRACTIBLE = frozenset({FAdd, FSub, FMul, FDiv, FNegate, FRem})


# fmt: on
class StorageClass:
    """Section 3.7."""

    Input = 1
    Workgroup = 4
    Private = 6
    Function = 7
    PushConstant = 9
    PhysicalStorageBuffer = 5349


class Capability_:
    """Section 3.31."""

    Shader = 1
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


class Decoration:
    """Section 3.20."""

    Block = 2
    ArrayStride = 6
    BuiltIn = 11
    Aliased = 20
    Offset = 35
    NoContraction = 42
    AliasedPointer = 5356


class BuiltIn:
    """Section 3.21."""

    NumWorkgroups = 24
    WorkgroupId = 26
    LocalInvocationIndex = 29
    SubgroupId = 40
    SubgroupLocalInvocationId = 41
    SMIDNV = 5377


class ExecutionMode_:
    """Section 3.6."""

    LocalSize = 17
    DenormPreserve = 4459
    SignedZeroInfNanPreserve = 4461
    RoundingModeRTE = 4462


class Scope:
    """Section 3.27."""

    Device = 1
    Workgroup = 2
    Subgroup = 3
    Invocation = 4


class Semantics:
    """Section 3.25."""

    Relaxed = 0
    Acquire = 0x2
    Release = 0x4
    AcquireRelease = 0x8
    UniformMemory = 0x40
    WorkgroupMemory = 0x100
    MakeAvailable = 0x2000
    MakeVisible = 0x4000


class MemoryAccess:
    """Section 3.26."""

    Volatile = 0x1
    Aligned = 0x2
    MakePointerAvailable = 0x8
    MakePointerVisible = 0x10
    NonPrivatePointer = 0x20


class Glsl:
    """Instruction numbers of the GLSL.std.450 extended instruction set."""

    RoundEven = 2
    Trunc = 3
    FAbs = 4
    SAbs = 5
    FSign = 6
    Floor = 8
    Ceil = 9
    Fract = 10
    Sin = 13
    Cos = 14
    Tan = 15
    Asin = 16
    Acos = 17
    Atan = 18
    Sinh = 19
    Cosh = 20
    Tanh = 21
    Asinh = 22
    Acosh = 23
    Atanh = 24
    Atan2 = 25
    Pow = 26
    Exp = 27
    Log = 28
    Exp2 = 29
    Log2 = 30
    Sqrt = 31
    InverseSqrt = 32
    FMin = 37
    UMin = 38
    SMin = 39
    FMax = 40
    UMax = 41
    SMax = 42
    FClamp = 43
    Fma = 50
    Ldexp = 53
    FindILsb = 73
    FindSMsb = 74
    FindUMsb = 75
    NMin = 79
    NMax = 80
    NClamp = 81
