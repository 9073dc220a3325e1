"""Writes docs/internals/tour.md: one kernel followed through the compiler, from a real run.

``python -m docs.generate_tour`` writes the page, with ``--check`` it only says whether the page is current. The kernel
is compiled for a profile, so that the page is the same on every machine.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import triton
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.spirv.disassemble import disassemble
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource

from docs import pages
from docs.tour_kernel import row_sum

PAGE = Path(__file__).parent / "internals" / "tour.md"
PROFILE = "generic"
_SOURCE = Path(__file__).parent / "tour_kernel.py"

_TEXT = """# Follow one kernel through the compiler

The kernel adds up the rows of a matrix. It is small, but has what most kernels are made of: a program id, a masked
load, a reduction and a store. To see the same for your own kernel, run `triton-spirv disassemble NAME --stage ttgir`.
(`python -m docs.generate_tour` generates this page from a run of the compiler.)

## 1. The source
<!-- python
import triton
import triton.language as tl
-->
```python
{source}
```
`@triton.jit` keeps the source. The first launch parses it; each operation of `tl` appends an operation to a module.
The file is upstream's `triton/compiler/code_generator.py`.

## 2. TTIR: what is computed
```mlir
{ttir}
```
A value such as `tensor<64xf32>` is a whole tensor. Nothing says yet who computes which element. `tt.get_program_id` is
the place in the grid, `tt.addptr` makes a tensor of pointers, and `tt.reduce` holds the function that combines two
elements. `passes.TTIR` lists upstream's passes that turned the front end's module into this one.

## 3. TTGIR: who computes what
```mlir
{ttgir}
```
Each tensor now has an encoding: `#blocked` says how many elements a lane, a warp and the workgroup hold, and in which
order. `ttg.num-warps` and `ttg.threads-per-warp` describe the workgroup, here one subgroup (`num_warps={warps}`) of
{lanes} lanes, so a lane holds two of the 64 elements. Next, `backend/ttgir/` turns the text into objects, and
`backend/layouts/linear.py` turns the encodings into maps.

## 4. SPIR-V: what one invocation does
```
{spirv}
```
Tensors are gone: an invocation has its few elements in its own variables. Look for:

- `OpEntryPoint GLCompute` and `LocalSize {size}`: the workgroup.
- The push constants, through `PushConstant`: the arguments ([abi.md](abi.md)).
- Loads through `PhysicalStorageBuffer`: a pointer is a 64-bit address.
- {shuffles} subgroup operations: the reduction first adds the elements of each invocation, then goes across the
  subgroup. With several subgroups it would continue through shared memory (`backend/lowering/reduce.py`).

Each TTGIR operation has one rule in `backend/lowering/`; `grep -rn '"tt.reduce"' backend/lowering` finds this one. The
whole module has {words} words and {instructions} instructions.

## 5. What to do next
Change the reduction to `tl.max` and generate the page again. Then read [architecture.md](architecture.md) alongside it,
and write a rule: CONTRIBUTING.md, "Add an operation".
"""


def compiled() -> Any:
    """The kernel for the profile."""
    types = {"x": "*fp32", "out": "*fp32", "columns": "i32", "BLOCK": "constexpr"}
    source = ASTSource(row_sum, types, {(3,): 64}, {})
    capabilities = Capabilities.parse(PROFILE)
    target = target_of(capabilities)
    return triton.compile(source, target=target, options={"num_warps": 1, "enable_fp_fusion": True})


def without_places(text: str) -> str:
    """MLIR without its locations, which hold paths of this machine."""
    lines = [line for line in text.splitlines() if not line.startswith("#loc")]
    plain = "\n".join(re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", line) for line in lines)
    return plain.strip("\n")


def kernel_source() -> str:
    text = _SOURCE.read_text()
    return text[text.index("@triton.jit") :].rstrip()


def page() -> str:
    """The text of docs/internals/tour.md."""
    kernel = compiled()
    listing = disassemble(kernel.asm["spv"])
    body = [re.sub(r"\s+$", "", line) for line in listing.splitlines()]
    # The declarations in the middle are long and say little; the functions are what a reader wants.
    first = next(number for number, line in enumerate(body) if "OpFunction " in line)
    heads = [
        line for line in body[:first] if re.search("OpCapability|OpEntryPoint|OpExecutionMode|OpMemoryModel", line)
    ]
    size = next(line.split("LocalSize")[1].strip() for line in heads if "LocalSize" in line)
    shuffles = sum("GroupNonUniform" in line and "OpCapability" not in line for line in body)
    return _TEXT.format(
        source=kernel_source(),
        ttir=without_places(str(kernel.asm["ttir"])),
        ttgir=without_places(str(kernel.asm["ttgir"])),
        spirv="\n".join([*heads, "…", *body[first:]]),
        warps=kernel.metadata.num_warps,
        lanes=Capabilities.parse(PROFILE).subgroup_size,
        size=size,
        shuffles=shuffles,
        words=len(kernel.asm["spv"]) // 4,
        instructions=sum(" Op" in line or line.startswith("Op") for line in body),
    )


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, page))
