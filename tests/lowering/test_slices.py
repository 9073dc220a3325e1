"""Dots whose operands take too much shared memory: a loop over slices of K."""

from __future__ import annotations

import subprocess

from triton.backends.spirv.transforms.kernel import kernel_of
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.transforms.slice_dots import slice_dots
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAVAPIPE, disassemble, lower_module, module_text
from tests.lowering.test_dot import dot


def sliced(limit: int) -> str:
    """A product of 32×32×64, whose operands take 16,384 bytes."""
    body = dot(32, 32, 64).replace("    ttg.barrier local\n", "")
    module = parse_module(module_text(body, "%p: !tt.ptr<f32>"))
    assert slice_dots(kernel_of(module), limit) == (limit < 16384)
    spirv = lower_module(module, LAVAPIPE, Options()).spirv
    subprocess.run(["spirv-val", "--target-env", "vulkan1.3", "-"], input=spirv, check=True)
    return disassemble(spirv)


def test_a_slice_is_stored_and_multiplied_in_each_iteration(filecheck):
    text = sliced(8192)
    filecheck(
        text,
        "CHECK: OpLoopMerge %{{[0-9]+}} %{{[0-9]+}} DontUnroll\n"
        "CHECK: OpControlBarrier\nCHECK: OpStore\nCHECK: OpControlBarrier\nCHECK: Fma\n",
    )
    # Of 32 accumulators an invocation, no more than 512 multiply-adds: one body.
    assert 0 < text.count(" Fma ") <= 512


def test_what_fits_stays_whole():
    assert sliced(8192).count("OpLoopMerge") == sliced(16384).count("OpLoopMerge") + 1


def test_operands_of_several_dots_are_sliced_for_each():
    body = dot(32, 32, 64).replace("    ttg.barrier local\n", "")
    product = next(line for line in body.splitlines() if "tt.dot" in line)
    body = body.replace(product, f"{product}\n{product.replace('%d =', '%e =').replace('%lb, %c', '%lb, %d')}")
    module = parse_module(module_text(body.replace("tt.store %ptr, %d", "tt.store %ptr, %e"), "%p: !tt.ptr<f32>"))
    kernel = kernel_of(module)
    assert slice_dots(kernel, 8192)
    assert kernel.body is not None
    names = [one.name for top in kernel.body.blocks[0].operations for one in top.walk()]
    assert names.count("spirv.store_slice") == 4
    assert names.count("ttg.local_alloc") == 4, "the whole operands are no longer stored"
