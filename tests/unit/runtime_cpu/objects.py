"""Objects for the CPU device, compiled from LLVM IR by the LLVM inside libtriton."""

import ctypes
import functools
import platform
import struct
from typing import Any

import triton._C.libtriton as libtriton
from triton._C.libtriton import llvm

X86 = platform.machine() == "x86_64"

#: The parameters of a kernel's function.
KERNEL = "ptr %block, i64 %first, i64 %last, ptr %grid, ptr %scratch, ptr %stop"


@functools.cache
def _target() -> tuple[str, str]:
    """LLVM's triple and processor, once their code generator is there."""
    library = ctypes.CDLL(libtriton.__file__)
    for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"):
        getattr(library, f"LLVMInitialize{'X86' if X86 else 'AArch64'}{part}")()
    llvm.init_targets()
    return ("x86_64-unknown-linux-gnu", "x86-64-v2") if X86 else ("aarch64-unknown-linux-gnu", "generic")


def compiled(ir: str) -> bytes:
    """The relocatable object of an LLVM module."""
    triple, processor = _target()
    made: Any = llvm.translate_to_asm(ir, triple, processor, "", [], False, True, False)
    return bytes(made)


def block(*values: int | float) -> bytes:
    """An argument block of 64-bit integers and doubles."""
    return b"".join(struct.pack("<d" if isinstance(value, float) else "<q", value) for value in values)


def program_loop(body: str, extra: str = "") -> str:
    """A module with the kernel `k`, which runs `body` for each program: its number is %program. The body ends in a
    branch to %next."""
    return f"""
{extra}
define void @k({KERNEL}) nounwind {{
entry:
  br label %head
head:
  %program = phi i64 [ %first, %entry ], [ %following, %next ]
  %stopped = load atomic i32, ptr %stop monotonic, align 4
  %stops = icmp ne i32 %stopped, 0
  br i1 %stops, label %end, label %body
body:
{body}
next:
  %following = add i64 %program, 1
  %more = icmp ult i64 %following, %last
  br i1 %more, label %head, label %end
end:
  ret void
}}
"""
