"""What is known about Vulkan drivers beyond what they report: faults to work around, and what suits their compilers.

Everything that depends on a driver's name is in this table, so that another driver, or another version of one, is
judged in one place. Each field has a test that shows what it does (tests/unit/test_driver_quirks.py); docs/limits.md
tells users of faults. Kernels ask a driver for the facts in CORRECTABLE, and correct the table where it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache


@dataclass(frozen=True)
class Faults:
    """What a driver gets wrong, or ends silently, and kernels work around. The defaults are no fault."""

    #: Modules must be compiled for this driver, because it needs what follows.
    own_modules: bool = False
    #: It silently ends loops after this number of iterations, counted over all loops of an invocation. Shorter loops
    #: need no watching.
    loop_limit: int | None = None
    #: How deep regions may nest. The default is the limit of the lowering's own recursion.
    max_nesting: int = 120
    #: It folds additions and products with the constant +0 as if there were no NaN and no -0.
    folds_zeros: bool = False
    #: It compares a sign-extended number with a 64-bit constant, one that it finds itself too, in the narrow type, and
    #: gets it wrong (Mesa's nir_opt_algebraic.py, "Optimize comparisons with up-casts": in 22.3.6 its -2^31 is an
    #: unsigned literal of C), and so where the number is converted to a float that is compared with 0
    #: (spirv/value_numbering.py). 26.2.6 does not.
    narrows_comparisons: bool = False
    #: It does a load whose address all lanes of a subgroup share even where none of them is active, and crashes where
    #: nothing is mapped (lowering/global_memory.py).
    unmasked_loads: bool = False
    #: It takes a float16 that is widened to float32 for the float32 that it was made of, however the bits are passed
    #: on: what is widened is rounded before it is narrowed (lowering/floats.py).
    widens_unrounded: bool = False
    #: It takes the sum of two sign-extended numbers of 8 or 16 bits, asked whether it is in the range of their type,
    #: for one that is computed in that type, and asks for its overflow wrongly (lowering/arith.py).
    narrows_sums: bool = False
    #: It takes the negative of a number of 8 or 16 bits for one of 32 bits, so that the smallest number's is positive
    #: wherever it is not stored, and so a sum, a difference or a product that it finds to be one (lowering/arith.py).
    widens_negations: bool = False
    #: It takes the unsigned number that a negative one of 8 bits is extended to for a small one, divides it as a float,
    #: and makes another float64 of it (lowering/defined_integers.py, lowering/casts.py).
    takes_for_small: bool = False
    #: It computes ``max(x, y) - y`` of 64 unsigned bits in 32 where only low bits of the result are wanted, and
    #: compares the low words alone (spirv/value_numbering.py).
    narrows_saturation: bool = False

    @property
    def folds_narrow(self) -> bool:
        """Whether a 0 that the driver does not know keeps it from a fold."""
        return self.narrows_sums or self.widens_negations or self.takes_for_small or self.narrows_saturation


#: Of a driver that is not known to have any.
NO_FAULTS = Faults()


@dataclass(frozen=True)
class Driver:
    """What suits a driver. The defaults suit that of a GPU of which nothing is known."""

    faults: Faults = NO_FAULTS

    # -- arithmetic ------------------------------------------------------------------------------------------------
    #: Fma of GLSL.std.450 rounds once, where Vulkan allows a product and a sum.
    fused: bool = False
    #: Division and square root are correctly rounded.
    exact_division: bool = False
    #: A reciprocal in f32 takes fewer instructions as the square of InverseSqrt than as a quotient.
    reciprocal_roots: bool = False
    #: RoundEven and Trunc of GLSL.std.450 round f64.
    rounds_doubles: bool = True
    #: Quotients are right for divisors of any size, as Vulkan does not promise (lowering/arith.py).
    large_divisors: bool = False
    #: Its own exponentials are worth measuring: an instruction of the hardware, not a polynomial.
    native_math: bool = True

    # -- copies ----------------------------------------------------------------------------------------------------
    #: From so many bytes on, a kernel copies tensors faster than vkCmdCopyBuffer. None: never, or not known.
    kernel_copies: int | None = None

    # -- registers -------------------------------------------------------------------------------------------------
    #: 32-bit registers that a lane can have, or had better: a power of two up to 256.
    lane_registers: int = 256
    #: Registers of a compute unit, if the vendor's documents tell them and the driver does not.
    unit_registers: int | None = None

    # -- subgroups and matrix units --------------------------------------------------------------------------------
    #: Kernels have subgroups of so many lanes, whatever size is the device's default.
    lanes: int | None = None
    #: The same where the device has matrix units.
    matrix_lanes: int | None = None
    #: Dots are faster on matrix units than on multiply-adds.
    matrix_units: bool = True
    #: Loads of whole fragments from workgroup memory, of padded rows, are faster than loads of their registers.
    matrix_loads: bool = True
    #: tf32 tiles that f16 holds exactly are multiplied as f16 (transforms/gpu/halves.py).
    multiplies_halves: bool = False
    #: Loops with dots on matrix units are not to be unrolled.
    rolls_matrix_loops: bool = False
    #: Loops with any other dots are not to be unrolled.
    rolls_dot_loops: bool = False
    #: Tiles of 128×128 are slower on matrix units than smaller ones.
    small_matrix_tiles: bool = False

    # -- workgroup memory ------------------------------------------------------------------------------------------
    #: Bytes that all workgroups that reside on a compute unit share. None: not known.
    resident_shared: int | None = None
    #: Bytes for each invocation that cost nothing: as many workgroups can be on a compute unit as with none. GPUs that
    #: are known have 25 and more (docs/internals/analysis.md).
    spare_shared: int = 16
    #: Workgroup memory is banked, as on a GPU, so that dot operands are laid out for it.
    shared_banks: bool = True
    #: How many banks of 4 bytes it has on the driver's GPUs, for estimates of conflicts (inspection/banks.py). 32: CUDA
    #: C++ Programming Guide, "Shared Memory"; "RDNA3" Instruction Set Architecture, 12.1. Others say nothing.
    bank_count: int = 32
    #: So many bytes of the vectors that a subgroup stores there are stored at a time, and are to be in different banks
    #: (transforms/gpu/store_lanes.py). 0: not known.
    stored_bytes: int = 0

    # -- its compiler ----------------------------------------------------------------------------------------------
    # How much code it takes well that is repeated for each register (analysis/code_size.py); 0: any amount.
    #: It makes a kernel's machine code when the kernel is first dispatched.
    compiles_late: bool = False
    #: Multiply-adds of the body of a dot's loop.
    dot_unroll: int = 2048
    #: Multiply-adds of all dots of a kernel. Where there is a limit, operands of several dots are loaded from buffers
    #: for each.
    dots_unroll: int = 0
    #: Multiply-adds of a dot an operand of which would need an indexed array in a loop.
    dot_unroll_registers: int = 2048
    #: Accumulators that a loop updates.
    dot_registers: int = 512
    #: How many times as long kernels take whose conversions go in rounds, and whose buffers loops fill again
    #: (planning/cost.py). On an H100 0.99 to 1.01 times as long in five products of float16; ACO: 1 to 1.08 times as
    #: many cycles for seven kernels.
    rounds_cost: float = 1.1
    #: The next iteration's dot operands are loaded ahead (transforms/gpu/prefetch.py).
    prefetch: bool = True
    #: They are loaded once this iteration's are stored.
    prefetch_behind_barrier: bool = False
    #: Loops carry the matrices that they compute with (spirv/carried_matrices.py).
    carries_matrices: bool = False
    #: 32-bit shuffles of a layout conversion. None: any number.
    most_shuffles: int | None = None
    #: Instructions of an operation.
    unrolled_instructions: int = 4000
    #: The same in loops of the kernel, for half of it.
    unrolled_in_loop: int = 0
    #: Of them, those of an atomic instruction on an element in memory. None: as many as anything that acts on one.
    updated: int | None = None
    #: Counters of each bin of a histogram, a power of two: lanes that act one after the other wait for one another's.
    counter_copies: int = 1
    #: Instructions of element-by-element code (transforms/strips.py).
    unrolled_elementwise: int = 0
    #: Instructions of an operation that unpacks numbers of four or eight bits, and of the product that scales them.
    #: None: any number. 580.159 on an H200: products of 128×256×256 took 70 s to compile in 360,000 words of SPIR-V, a
    #: third of them of unpacking, and 5 s in 80,000.
    unrolled_unpacking: int | None = 4000
    #: As many instructions are a shuffle, an access to an array at a loop's index, and an access to memory under a
    #: mask, of which Mesa's CPU driver has code for each lane.
    each_lane: int = 32

    # -- statistics (runtime/vulkan/statistics.py) -----------------------------------------------------------------
    #: Names of the registers of an invocation. The first one that is there counts.
    register_statistics: tuple[str, ...] = ()
    #: Names of registers that went to memory, which add up.
    spill_statistics: tuple[str, ...] = ()
    #: Figures above these are none, and are left out.
    most: Mapping[str, int] = field(default_factory=dict, hash=False)
    #: The name that it gives the device's instructions, "" if it shows none (of NVIDIA's driver the name that
    #: inspection/nvidia_code.py gives them).
    machine_code: str = ""


#: A driver of which nothing is known.
OTHER = Driver()

#: Of a multiprocessor of each compute capability from 5.0 to 12.1: CUDA Programming Guide, table of technical
#: specifications per compute capability.
_NVIDIA_REGISTERS = 65536

#: oneAPI GPU Optimization Guide, "Shared Local Memory": 64 bytes in 16 banks.
_INTEL_BANKS = 16

#: Lanes for AMD's GPUs with matrix units. With the 64 that are the default, fragments of A and B have four copies of
#: each element instead of two, and upstream's layouts of fragments are for 32. Measured with RADV's compiler alone.
_WAVE32 = 32

#: VkDriverId → its name in vulkan_core.h 1.4.335, in lower case without VK_DRIVER_ID_.
DRIVER_IDS = {
    1: "amd_proprietary",
    2: "amd_open_source",
    3: "mesa_radv",
    4: "nvidia_proprietary",
    5: "intel_proprietary_windows",
    6: "intel_open_source_mesa",
    7: "imagination_proprietary",
    8: "qualcomm_proprietary",
    9: "arm_proprietary",
    10: "google_swiftshader",
    11: "ggp_proprietary",
    12: "broadcom_proprietary",
    13: "mesa_llvmpipe",
    14: "moltenvk",
    15: "coreavi_proprietary",
    16: "juice_proprietary",
    17: "verisilicon_proprietary",
    18: "mesa_turnip",
    19: "mesa_v3dv",
    20: "mesa_panvk",
    21: "samsung_proprietary",
    22: "mesa_venus",
    23: "mesa_dozen",
    24: "mesa_nvk",
    25: "imagination_open_source_mesa",
    26: "mesa_honeykrisp",
    27: "vulkan_sc_emulation_on_vulkan",
    28: "mesa_kosmickrisp",
}

#: Of all of Mesa's compilers for GPUs.
_OF_NIR = Faults(narrows_comparisons=True)

#: By the name of the VkDriverId in lower case, without what all have in common.
DRIVERS = {
    # Mesa's CPU driver, as seen in 22.3.6 with LLVM 15.
    "mesa_llvmpipe": Driver(
        faults=Faults(
            own_modules=True,
            loop_limit=32768,  # LP_MAX_TGSI_LOOP_ITERATIONS is 65535; half of it is left for loops over registers
            max_nesting=72,  # LP_MAX_TGSI_NESTING is 80; eight are left for what rules emit
            folds_zeros=True,
            narrows_comparisons=True,
            unmasked_loads=True,  # 26.2.6; not 22.3.6 or 25.0.7
        ),
        exact_division=True,  # the CPU's own
        large_divisors=True,
        rounds_doubles=False,  # without AVX-512, RoundEven of a double rounds towards zero, and Trunc loses -0
        native_math=False,
        spare_shared=128,  # transposes by turns, 32 invocations: two of 1 KiB run 20% faster, two of 4 KiB 8% slower
        matrix_units=False,  # of Mesa 26.1: multiply-adds too, in more code
        compiles_late=True,  # 22.3.6: on the thread of its queue
        dot_unroll=512,  # 0.3 s to compile 256 multiply-adds, 14.7 s for 4,096
        # A kernel of eight dots of 64 accumulators takes 12 s to compile instead of 28, one whose two dots of 64×64×64
        # share an operand 2 s instead of 32.
        dots_unroll=2048,
        dot_registers=64,  # of 16 vector registers
        rounds_cost=2.5,  # next to dots it is code that takes 40 s to compile
        dot_unroll_registers=16384,  # 9 s instead of 75 where 1,024 registers would be looked up in an array
        shared_banks=False,
        prefetch=False,
        most_shuffles=16,  # 10 ms to compile each of 56 and 80 ms each of 640; a store and a load take 4
        unrolled_instructions=400,  # a basic block takes more than linear time
        unrolled_in_loop=1600,  # its loop limit counts rounds: 64 sines take 2.8 s instead of 20
        # Compiled in 0.3 s. With 1,000, sums and chains of functions are compiled in half the time and run 0.93 to 1.35
        # times as fast, but softmax of rows of 64 to 128 elements takes 1.08 to 1.2 times as long.
        unrolled_elementwise=4000,
        unrolled_unpacking=None,  # a scaled product of 128×128×256 takes 8 s to compile, and 18 with arrays
    ),
    # The CPU device of this project (backend/cpu/).
    "cpu": Driver(
        fused=True,
        exact_division=True,  # the processor's own
        large_divisors=True,
        native_math=False,
        matrix_units=False,
        matrix_loads=False,
        shared_banks=False,
        prefetch=False,
        dot_unroll=512,
        dots_unroll=2048,
        dot_registers=64,
        most_shuffles=128,  # a transposed tile of 64×64 as a whole, 240: 0.81 s to compile, and 0.39 in strips
        unrolled_instructions=400,
        unrolled_in_loop=800,
        unrolled_elementwise=100,
        unrolled_unpacking=400,
        counter_copies=4,  # 2^18 random numbers of 256 bins: 0.44 ms with one, 0.30 where no neighbours are equal
        updated=6,  # a call for each register: histograms of 1,024 numbers take 0.7 of the time
        machine_code="Assembly",  # of LLVM
        each_lane=2,  # of AVX-512: sums of rows 0.84 of torch's speed instead of 0.69, of columns 0.77 instead of 0.70
    ),
    # The name of its figure: yuzu, src/video_core/renderer_vulkan/pipeline_statistics.cpp.
    "nvidia_proprietary": Driver(
        fused=True,
        faults=Faults(
            widens_unrounded=True,
            narrows_sums=True,
            widens_negations=True,
            takes_for_small=True,
            narrows_saturation=True,
        ),  # 580.159
        reciprocal_roots=True,  # 580.159: InverseSqrt is MUFU.RSQ alone, a quotient 14 instructions with a branch
        kernel_copies=1 << 20,  # 580.159 on an H100: 2^27 floats at 844 GB/s, which a kernel reads and writes at 2,600
        large_divisors=True,  # with RoundingModeRTE, which keeps its subnormal numbers, too
        unit_registers=_NVIDIA_REGISTERS,
        # Unrolled eight times, products of float16 take all registers and spill: 128×128×32 with four warps runs at 255
        # TFLOP/s on an H100, and is compiled in 0.3 s. The loop by itself runs at 291, and is compiled in 0.1 s.
        rolls_matrix_loops=True,
        carries_matrices=True,
        multiplies_halves=True,
        # In registers of their own, kernels spill. On AMD's GPUs matmuls take 11 to 21% more cycles so, ACO estimates.
        prefetch_behind_barrier=True,
        unrolled_elementwise=4000,  # 512 elements a lane of float16 or int8 are refused (VK_ERROR_UNKNOWN), 256 are not
        stored_bytes=128,  # 580.159 on an H100: products of bfloat16 are 3 to 6% faster so
        resident_shared=24576,  # 580.159 on an H100: a multiprocessor has 48 KiB for all its workgroups
        register_statistics=("Register Count",),
        most={"Local Memory Size": 524288},  # CUDA's limit for a thread; 580.159 says 2^36 if there is none
        machine_code="SASS",
    ),
    # XGL, icd/api/vk_pipeline.cpp; it counts the bytes of scratch memory, not spills.
    "amd_proprietary": Driver(
        fused=True,
        matrix_lanes=_WAVE32,
        small_matrix_tiles=True,  # field_reports.py, 5
        register_statistics=("numUsedVgprs",),
    ),
    "amd_open_source": Driver(fused=True, matrix_lanes=_WAVE32, register_statistics=("numUsedVgprs",)),
    "mesa_radv": Driver(
        fused=True,
        faults=_OF_NIR,
        matrix_lanes=_WAVE32,
        register_statistics=("VGPRs",),
        spill_statistics=("Spilled VGPRs", "Spilled SGPRs"),
        machine_code="Assembly",
    ),
    "mesa_nvk": Driver(
        faults=_OF_NIR,
        unit_registers=_NVIDIA_REGISTERS,
        register_statistics=("Number of GPRs",),
        spill_statistics=("Spills to memory",),
        machine_code="NAK assembly",
    ),
    # A hardware thread has 4 KiB of registers, for its 32 lanes; its figures of registers are a thread's, not a lane's.
    # "Spill Count" to Mesa 24, "Spill count" in 25, then "Spills".
    "intel_open_source_mesa": Driver(
        lane_registers=32,
        bank_count=_INTEL_BANKS,
        faults=_OF_NIR,
        prefetch=False,  # the next tiles would be spilled: a 64×64×32 matmul takes 85,116 cycles instead of 66,838
        spill_statistics=("Spill Count", "Spill count", "Spills"),
        machine_code="GEN Assembly",
    ),
    # Conversions go through shared memory, and no rows are padded: field_reports.py, 9 and 11.
    "intel_proprietary_windows": Driver(
        lane_registers=32, bank_count=_INTEL_BANKS, most_shuffles=0, matrix_loads=False
    ),
    # As small as Mesa's CPU driver wants it: larger kernels are refused (field_reports.py, 19).
    "qualcomm_proprietary": Driver(
        lanes=64,
        lane_registers=128,
        dot_unroll=256,
        dots_unroll=1024,
        dot_registers=64,
        unrolled_instructions=400,
        unrolled_in_loop=800,
        unrolled_elementwise=400,
    ),
    # ir3 has 96 registers for each of 128 lanes and 192 for each of 64. Of 26.2.6 with the smaller subgroups: fp16
    # attention of 64×64 spills 148 instead of 461, and waits for loads a tenth as long by Turnip's own estimate.
    "mesa_turnip": Driver(
        lanes=64, lane_registers=128, faults=_OF_NIR, spill_statistics=("STP Count",), machine_code="IR3 Assembly"
    ),
    # A lane has 128 registers, in halves; the more it uses, the fewer lanes are in flight. Of 26.2.6: fp16 attention of
    # 64×64 has twice the subgroups with 64, each of half the instructions, and 12 spills instead of 226.
    "mesa_honeykrisp": Driver(
        lane_registers=64,
        faults=_OF_NIR,
        rolls_matrix_loops=True,  # field_reports.py, 22
        rolls_dot_loops=True,
        dot_unroll=512,
        spill_statistics=("Spills",),
        machine_code="AGX assembly",
    ),
}


def fact_of(driver: Driver, name: str) -> bool:
    """A field of a driver, or of its faults, that is true or false."""
    value = getattr(driver.faults if name in _FAULTS else driver, name)
    assert isinstance(value, bool)
    return value


@cache
def corrected(driver: Driver, corrections: frozenset[str]) -> Driver:
    """What is known of a driver. ``corrections``: names of fields that kernels found to be true, or after a ``-``
    false (runtime/measuring/driver_probe.py). Raises ValueError on other names."""
    found = {text.removeprefix("-"): not text.startswith("-") for text in corrections}
    if strange := found.keys() - CORRECTABLE:
        raise ValueError(f"unknown facts of drivers {sorted(strange)}; known: {sorted(CORRECTABLE)}")
    faults = {name: found.pop(name) for name in found.keys() & _FAULTS}
    return replace(driver, faults=replace(driver.faults, **faults), **found)  # type: ignore[arg-type]


_FAULTS = frozenset(entry.name for entry in fields(Faults))
#: What kernels find out: fields of Driver and Faults.
CORRECTABLE = frozenset(
    {
        *("fused", "exact_division", "rounds_doubles", "folds_zeros", "narrows_comparisons", "widens_unrounded"),
        *("narrows_sums", "widens_negations", "takes_for_small", "narrows_saturation"),
    }
)
