"""Our decoder and disassembler against SPIRV-Tools."""

import subprocess

import hypothesis
import pytest
from hypothesis import strategies as st
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.decode import DecodedOperand, decode, header, instruction_words
from triton.backends.spirv.spirv.disassemble import disassemble
from triton.backends.spirv.spirv.encode import encode
from triton.backends.spirv.spirv.grammar import UnknownInstruction
from triton.backends.spirv.spirv.module import float_bits

EVERYTHING = r"""
               OpCapability Shader
               OpCapability Int64
               OpCapability Float64
               OpCapability Kernel
               OpExtension "SPV_KHR_non_semantic_info"
          %1 = OpExtInstImport "GLSL.std.450"
          %2 = OpExtInstImport "NonSemantic.Another"
          %3 = OpExtInstImport "NonSemantic.Shader.DebugInfo.100"
               OpMemoryModel Logical Vulkan
               OpEntryPoint GLCompute %main "main" %workgroup %unnamed
               OpExecutionMode %main LocalSize 8 4 1
       %text = OpString "a \"quoted\" \\ text"
               OpSource OpenCL_C 120 %text "source"
               OpName %main "main"
               OpName %twin "main"
               OpName %odd "an odd-name"
               OpDecorate %workgroup BuiltIn WorkgroupId
               OpDecorate %unnamed BuiltIn SubgroupId
               OpDecorate %array ArrayStride 4
               OpDecorate %unnamed FPFastMathMode NotNaN|NSZ
       %void = OpTypeVoid
       %bool = OpTypeBool
       %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
      %short = OpTypeInt 16 1
       %long = OpTypeInt 64 1
      %float = OpTypeFloat 32
     %double = OpTypeFloat 64
    %v3float = OpTypeVector %float 3
        %one = OpConstant %int -1
      %large = OpConstant %long -5000000000
       %tiny = OpConstant %short -3
   %infinite = OpConstant %float 0x1p+128
     %nearly = OpConstant %float 0.1
  %subnormal = OpConstant %float 0x1.8p-140
       %less = OpConstant %double -0.1
       %true = OpConstantTrue %bool
       %four = OpConstant %uint 4
      %array = OpTypeArray %float %four
    %runtime = OpTypeRuntimeArray %float
     %struct = OpTypeStruct %array %uint
    %pointer = OpTypePointer PhysicalStorageBuffer %struct
      %input = OpTypePointer Input %uint
        %sum = OpSpecConstantOp %uint IAdd %four %four
  %workgroup = OpVariable %input Input
    %unnamed = OpVariable %input Input
    %nothing = OpTypeFunction %void
       %main = OpFunction %void DontInline|Const %nothing
       %twin = OpLabel
        %odd = OpLoad %uint %unnamed Volatile|Aligned 4
               OpStore %unnamed %odd NonPrivatePointer
       %root = OpExtInst %float %1 Sqrt %nearly
      %other = OpExtInst %void %2 7 %four
       %none = OpExtInst %void %3 DebugInfoNone
               OpSelectionMerge %merge DontFlatten
               OpSwitch %odd %merge 1 %case 4294967295 %case
       %case = OpLabel
               OpBranch %merge
      %merge = OpLabel
               OpSelectionMerge %end None
               OpSwitch %large %end -2 %wide
       %wide = OpLabel
               OpBranch %end
        %end = OpLabel
               OpLine %text 3 4
               OpReturn
               OpFunctionEnd
"""


def reference(module: bytes, *arguments: str) -> str:
    """What spirv-dis makes of a module."""
    done = subprocess.run(["spirv-dis", "--no-color", *arguments, "-"], input=module, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.fixture(scope="module")
def everything() -> bytes:
    """A module with an operand of most kinds."""
    command = ["spirv-as", "--preserve-numeric-ids", "-o", "-", "-"]
    return subprocess.run(command, input=EVERYTHING.encode(), capture_output=True, check=True).stdout


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("heading", [True, False])
@pytest.mark.parametrize("indent", [True, False])
def test_the_text_is_that_of_spirv_dis(everything, names, heading, indent):
    flags = [*(["--raw-id"] if not names else []), *(["--no-header"] if not heading else [])]
    flags += ["--no-indent"] if not indent else []
    want = reference(everything, *flags).replace("Khronos SPIR-V Tools Assembler", "Unknown(7)")
    assert disassemble(everything, names, heading, indent) == want


@pytest.mark.parametrize("width", [16, 32, 64])
@hypothesis.given(st.integers(0, 2**64 - 1))
@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.example(0)
@hypothesis.example(1 << 63 | 1 << 31 | 1 << 15)
@hypothesis.example(1)
@hypothesis.example(0x7FF8_0000_7FC0_7E00)
def test_constants_are_written_as_spirv_dis_writes_them(width, bits):
    bits &= (1 << width) - 1
    words = (bits & 0xFFFFFFFF, bits >> 32) if width == 64 else (bits,)
    module = encode([[op.TypeFloat, 0, 1, width], [op.Constant, 1, 2, *words]], 3)
    assert disassemble(module) == reference(module)


def test_numbers_have_the_width_and_sign_of_their_type(everything):
    constants = [instruction for instruction in decode(everything) if instruction.opcode == op.Constant]
    assert [constant.operands[0].value for constant in constants][:3] == [-1, -5000000000, -3]
    (switch,) = [found for found in decode(everything) if found.name == "OpSwitch" and len(found.operands) == 4]
    assert switch.operands[2].value == -2
    assert [operand.is_id for operand in switch.operands] == [True, True, False, True]


def test_what_newer_headers_have_is_read():
    module = encode(
        [
            [op.TypeFloat, 0, 1, 16, 0],
            [op.TypeFloat, 0, 2, 8, 4214],
            [4456, 0, 3, 1, 5, 6, 7, 8],
            [4457, 3, 4, 9, 10, 11, 0x2 | 0x10 | 0x20, 16, 12],
            [4459, 3, 13, 4, 4, 4, 0x1 | 0x10],
        ],
        14,
    )
    assert disassemble(module, heading=False, indent=False) == (
        "%bfloat16 = OpTypeFloat 16 BFloat16KHR\n"
        "%fp8e4m3 = OpTypeFloat 8 Float8E4M3EXT\n"
        "%3 = OpTypeCooperativeMatrixKHR %bfloat16 %5 %6 %7 %8\n"
        "%4 = OpCooperativeMatrixLoadKHR %3 %9 %10 %11 Aligned|MakePointerVisible|NonPrivatePointer 16 %12\n"
        "%13 = OpCooperativeMatrixMulAddKHR %3 %4 %4 %4 MatrixASignedComponentsKHR|SaturatingAccumulationKHR\n"
    )
    load = list(decode(module))[3]
    assert load.operands[-1] == DecodedOperand("IdScope", 12)


def test_a_constant_of_a_format_that_python_does_not_know_has_its_bits():
    module = encode([[op.TypeFloat, 0, 1, 16, 0], [op.Constant, 1, 2, 0x3F80]], 3)
    assert "%bfloat16_16256 = OpConstant %bfloat16 16256" in disassemble(module)


@pytest.mark.parametrize(("width", "value"), [(16, 1.5), (32, -2.5), (64, 1e300)])
def test_floats_have_their_values(width, value):
    bits = float_bits(value, width)
    words = (bits & 0xFFFFFFFF, bits >> 32) if width == 64 else (bits,)
    _, constant = decode(encode([[op.TypeFloat, 0, 1, width], [op.Constant, 1, 2, *words]], 3))
    assert constant.operands[0].value == value


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (b"abc", "3 bytes are not a SPIR-V module"),
        (bytes(20), "it starts with 0x00000000"),
        (encode([], 1) + bytes(4), "cut off or damaged at word 5"),
        (encode([], 1) + bytes([17, 0, 3, 0]), "cut off or damaged at word 5"),
        (encode([[op.IAdd, 1, 2, 3]], 4), "OpIAdd ends before its operand"),
        (encode([[op.IAdd, 0, 1]], 4), "OpIAdd ends before its result"),
        (encode([[op.Name, 0, 0, 1, 0x61616161]], 4), "a literal string has no end"),
    ],
)
def test_damaged_modules_are_refused(module, message):
    with pytest.raises(ValueError, match=message):
        disassemble(module)


def test_unknown_opcodes_are_refused_but_walked_over():
    module = encode([[60000, 0, 0, 7]], 1)
    with pytest.raises(UnknownInstruction, match="60000"):
        disassemble(module)
    assert [(opcode, list(words)) for opcode, words in instruction_words(module)] == [(60000, [7])]


def test_header_and_strings(everything):
    assert header(everything).version == (1, 6)
    strings = [instruction.operands[0].value for instruction in decode(everything) if instruction.name == "OpString"]
    assert strings == ['a "quoted" \\ text']
