"""How attention and its gradients are laid out on NVIDIA's driver: what is loaded ahead, held in registers, and kept in
shared memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.inspection.plan import planned_again
from triton.backends.spirv.planning.show import plan_text
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.transforms.schedule import Schedule
from triton.compiler.compiler import ASTSource

from examples import flash_attention
from tests.spirv_val import validated

HOPPER = PROFILES["nvidia-hopper"]
#: Bytes of shared memory with which two workgroups of four warps run on a multiprocessor.
SHARED = HOPPER.traits.resident_shared or 0
SOURCE = Path(flash_attention.__file__)
HELD = "operands that loops do not change in registers"


class PlannedKernel(NamedTuple):
    """A kernel's layout in words, its bytes of shared memory, the lines of its plan, and its TTGIR."""

    layout: str
    shared: int
    plan: list[str]
    ttgir: str


def compiled(kernel: Any, m: int, n: int, warps: int, head: int = 64, device: Capabilities = HOPPER) -> PlannedKernel:
    types = {"length": "i32", "scale": "fp32", "log_sum_ptr": "*fp32", "product_ptr": "*fp32"}
    constants = {"HEAD": head, "BLOCK_M": m, "BLOCK_N": n, "CAUSAL": False}
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp16") for name in kernel.arg_names}
    aligned = [index for index, name in enumerate(kernel.arg_names) if name.endswith("_ptr") or name == "length"]
    source = ASTSource(kernel, signature, constants, {(index,): [["tt.divisibility", 16]] for index in aligned})
    made = triton.compile(source, target=GPUTarget("spirv", device.arch(), 32), options={"num_warps": warps})
    validated(made.asm["spv"], may_be_older=True)
    metadata = made.metadata._asdict()
    planned = planned_again(made.asm["ttgir"], device, metadata)
    lines = plan_text(kernel_of(planned.source), planned.plan).splitlines()
    return PlannedKernel(Schedule(**metadata["layout"]).summary(), made.metadata.shared, lines, made.asm["ttgir"])


def test_numbers_of_rows_are_stored_beside_the_tiles() -> None:
    """Of log_sum and product, each lane loads one before the loop and one in it, for the next iteration."""
    found = compiled(flash_attention.key_gradients_kernel, 64, 64, 4)
    loads = [line for line in found.plan if " tt.load " in line and "of 32 bits" in line]
    assert len(loads) == 4 and all("1 element of 32 bits" in line for line in loads)
    # Two of the loop's four buffers, and no barrier but for the first of them.
    fills = [line for line in found.plan if "ttg.local_alloc" in line][2:]
    assert [("after a barrier" in line, line.endswith(" 1 element an access")) for line in fills] == [
        (True, False),
        (False, False),
        (False, True),
        (False, True),
    ]
    assert found.shared <= SHARED


def test_rows_of_a_kernel_that_names_its_layouts(tmp_path: Path) -> None:
    """As Gluon's do, and a kernel's own TTGIR, whose buffers are not padded."""
    kernel = tmp_path / "kernel.ttgir"
    made = compiled(flash_attention.key_gradients_kernel, 64, 64, 4)
    kernel.write_text(made.ttgir)
    again = triton.compile(str(kernel), target=GPUTarget("spirv", HOPPER.arch(), 32), options={"num_warps": 4})
    assert again.metadata.shared == 2 * 64 * 64 * 2 + 2 * 64 * 4


def test_operands_are_held_where_a_second_workgroup_fits_only_then() -> None:
    found = compiled(flash_attention.query_gradients_kernel, 128, 32, 4)
    assert found.shared <= SHARED and HELD not in found.layout
    found = compiled(flash_attention.key_gradients_kernel, 32, 128, 4)
    assert found.shared <= SHARED and HELD not in found.layout


@pytest.mark.parametrize(("m", "n", "warps", "held"), [(128, 64, 4, True), (128, 128, 8, False)])
def test_operands_are_held_where_the_kernel_fits_only_then(m: int, n: int, warps: int, held: bool) -> None:
    """With eight warps that is the same as room for a workgroup."""
    found = compiled(flash_attention.key_gradients_kernel, m, n, warps)
    assert found.shared <= HOPPER.shared_bytes and "pieces" not in found.layout and (HELD in found.layout) == held


def test_operands_larger_than_shared_memory_need_no_buffer() -> None:
    found = compiled(flash_attention.forward_kernel, 256, 64, 8, head=128)
    assert 256 * 128 * 2 > HOPPER.shared_bytes >= found.shared and "pieces" not in found.layout
    conversions = [line for line in found.plan if "ttg.convert_layout" in line and "rounds" in line]
    assert len(conversions) == 2  # of the queries and of the result


def test_weights_are_computed_transposed_before_dots_are_cut() -> None:
    """Their elements are where the next dots need them, in pieces, too."""
    device = replace(HOPPER, shared_bytes=16384)
    found = compiled(flash_attention.key_gradients_kernel, 64, 64, 4, device=device)
    assert found.layout.endswith("dots in 2 pieces of K")
    place = next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if "v_grad = tl.dot(tl.trans(" in line)
    conversions = [line for line in found.plan if f":{place}:" in line and "ttg.convert_layout" in line]
    assert len(conversions) == 2 and all(line.endswith(" nothing") for line in conversions)
