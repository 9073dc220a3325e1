"""How wide the loads and stores of a vector addition are, counted in the SPIR-V that it compiles to.

On aligned pointers each is 128 bits, also under a mask, as long as that is uniform over each vector: the number of
elements is a multiple of 16. Where alignment or the mask's uniformity is not known, accesses are one element. No device
is needed. Prints a table for each profile; exits with 1 where an access is not as wide as it should be.

    python -m benchmarks.access_width
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES
from triton.compiler import ASTSource

from benchmarks.disassembly import accesses

BLOCK = 4096
ALIGNED = [["tt.divisibility", 16]]
BITS = {"fp32": 32, "fp16": 16, "i8": 8, "fp64": 64}


@triton.jit
def plain_add(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Adds blocks that are whole."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))


@triton.jit
def masked_add(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Adds blocks of which the last may be cut off."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) + tl.load(y_ptr + offsets, inside), inside)


@dataclass(frozen=True)
class Case:
    """A kernel, the arguments that are known to be multiples of 16, and whether accesses must be 128 bits."""

    name: str
    kernel: Any
    aligned: tuple[str, ...]
    wide: bool


POINTERS = ("x_ptr", "y_ptr", "out_ptr")
CASES = (
    Case("no mask, aligned", plain_add, POINTERS, True),
    Case("mask, size a multiple of 16", masked_add, (*POINTERS, "size"), True),
    Case("mask, size unknown", masked_add, POINTERS, False),
    Case("no mask, not aligned", plain_add, (), False),
)


def compile_case(case: Case, element: str, profile: str) -> bytes:
    """The case's module for elements of that type on a device of that profile."""
    names = case.kernel.arg_names
    signature = {
        name: f"*{element}" if name in POINTERS else "i32" if name == "size" else "constexpr" for name in names
    }
    source = ASTSource(
        case.kernel, signature, {"BLOCK": BLOCK}, {(names.index(name),): ALIGNED for name in case.aligned}
    )
    target = GPUTarget("spirv", profile, PROFILES[profile].subgroup_size)
    return bytes(triton.compile(source, target=target).asm["spv"])


def show(counts: Counter[int]) -> str:
    """``count × bits``, widest first."""
    return ", ".join(f"{count} × {bits}" for bits, count in sorted(counts.items(), reverse=True))


def main() -> int:
    """Compile, count, print; 1 where a width is wrong."""
    failed = False
    for profile in PROFILES:
        print(
            f"{profile}: bits of each access of an invocation, {BLOCK} elements in 4 subgroups of "
            f"{PROFILES[profile].subgroup_size}"
        )
        print(f"  {'kernel':28} {'type':5} {'loads':>12} {'stores':>12}  wanted")
        for case in CASES:
            for element, bits in BITS.items():
                if element == "fp64" and not PROFILES[profile].has("float64"):
                    continue
                wanted = 128 if case.wide else bits
                loads, stores = accesses(compile_case(case, element, profile))
                right = set(loads) == set(stores) == {wanted}
                failed |= not right
                print(
                    f"  {case.name:28} {element:5} {show(loads):>12} {show(stores):>12}  {wanted:4} "
                    f"{'ok' if right else 'WRONG'}"
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
