"""Run inside the virtual environment of test_install.py; prints what it found as JSON."""

from __future__ import annotations

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


def compiled(target: GPUTarget) -> dict[str, object]:
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    asm: dict[str, object] = triton.compile(ASTSource(add, signature, {"BLOCK": 128}), target=target).asm
    return asm


def backends() -> dict[str, object]:
    from triton.language.extra.toy import WHERE as language
    from triton.tools.extra.toy import WHERE as tools

    return {"backends": sorted(triton.backends.backends), "extras": [language, tools]}


def cuda() -> dict[str, object]:
    asm = compiled(GPUTarget("cuda", 80, 32))
    return {"stages": sorted(asm), "ptx": asm["ptx"], "cubin": bytes(asm["cubin"][:4]).hex()}  # type: ignore[index]


def toy() -> dict[str, object]:
    driver = triton.runtime.driver.active
    asm = compiled(driver.get_current_target())
    return {"driver": type(driver).__name__, "code": bytes(asm["toy"]).decode()}  # type: ignore[call-overload]


if __name__ == "__main__":
    print(json.dumps({"backends": backends, "cuda": cuda, "toy": toy}[sys.argv[1]]()))
