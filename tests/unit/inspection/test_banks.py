"""The estimate of bank conflicts, against cases whose steps are known."""

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection.banks import fewest, shared_accesses, steps
from triton.backends.spirv.planning.kernel_plan import plan_kernel
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

LANES = range(32)


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        ([4 * lane for lane in LANES], 4, (1, 1)),  # neighbours
        ([128 * lane for lane in LANES], 4, (32, 1)),  # down a column of 32 words
        ([132 * lane for lane in LANES], 4, (1, 1)),  # the same, rows padded by a word
        ([8 * lane for lane in LANES], 4, (2, 1)),  # every other word
        ([0 for _ in LANES], 4, (1, 1)),  # all lanes want one word
        ([16 * lane for lane in LANES], 16, (4, 4)),  # 8 lanes at a time
        ([128 * lane for lane in LANES], 16, (32, 4)),
        ([2 * lane for lane in LANES], 2, (1, 1)),  # two lanes to a word
    ],
)
def test_steps(addresses: list[int], size: int, expected: tuple[int, int]) -> None:
    assert (steps(addresses, size, 32), fewest(addresses, size, 32)) == expected


def test_of_half_as_many_banks() -> None:
    """Intel's: 32 neighbours take two steps, and a stride of 16 words meets in one bank."""
    intel = PROFILES["intel-xe"].traits.bank_count
    assert intel == 16
    assert (steps([4 * lane for lane in LANES], 4, intel), fewest([4 * lane for lane in LANES], 4, intel)) == (2, 2)
    assert (steps([64 * lane for lane in LANES], 4, intel), steps([64 * lane for lane in LANES], 4, 32)) == (32, 16)


KERNEL = """
#blocked = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [{threads}], warpsPerCTA = [1, 1], order = [1, 0]}}>
#shared = #ttg.{shared}
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32,
    ttg.shared = 4224 : i32, "ttg.target" = "spirv:vulkan1.3"}} {{
  tt.func public @kernel() {{
    %v = arith.constant dense<1.0> : tensor<32x32xf32, #blocked>
    %b = ttg.local_alloc %v {{allocation.offset = 0 : i32}} : (tensor<32x32xf32, #blocked>)
      -> !ttg.memdesc<32x32xf32, #shared, #smem>
    tt.return
  }}
}}
"""
PLAIN = "swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"
SWIZZLED = "swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 32, order = [1, 0]}>"
PADDED = "padded_shared<[32:+1] {order = [1, 0], shape = [32, 32]}>"


@pytest.mark.parametrize(
    ("threads", "shared", "bits", "accesses", "taken"),
    [
        ("1, 32", PLAIN, 32, 32, 32),
        ("32, 1", PLAIN, 128, 8, 256),
        ("32, 1", SWIZZLED, 32, 32, 32),
        ("32, 1", PADDED, 32, 32, 32),
    ],
)
def test_a_buffer_by_its_layout(threads: str, shared: str, bits: int, accesses: int, taken: int) -> None:
    """A warp writes rows, or columns: those meet in one bank, unless the buffer is swizzled or padded."""
    source = parse_module(KERNEL.format(threads=threads, shared=shared), "kernel.ttgir")
    kernel = kernel_of(source)
    plan = plan_kernel(source, PROFILES["nvidia-hopper"], Options()).plan
    (access,) = shared_accesses(kernel, plan, 32)
    assert (access["what"], access["bits"], access["accesses"]) == ("store", bits, accesses)
    assert (access["steps"], access["fewest"]) == (taken, 32)
