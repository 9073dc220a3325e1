"""Frames of machine code as each system wants them: Windows adds pages to a stack one after the other, and what looks
into an exception there may write below the stack pointer."""

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.machine import assembly
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled

X86 = [profile for profile in PROFILES_HERE if "x86" in profile]
FRAME = """
define void @frame() nounwind {attributes} {{
  %array = alloca [{bytes} x i8]
  call void asm sideeffect "", "r"(ptr %array)
  ret void
}}
"""


@triton.jit
def matmul(a, b, c, total, N: tl.constexpr):
    r, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    product = tl.dot(tl.load(a + r * N + k), tl.load(b + r * N + k))
    tl.store(c + r * N + k, product)
    tl.atomic_add(total + r % 3 + k % 2, product)


@pytest.mark.parametrize("profile", X86)
def test_a_frame_of_many_pages_is_touched_page_by_page(profile: str) -> None:
    host = host_of(PROFILES[profile].processor)
    for bytes_ in (2 * 4096, 10 * 4096):  # in a row, and in a loop
        text = assembly(FRAME.format(attributes=host.attributes, bytes=bytes_), host)
        steps = [int(step) for step in re.findall(r"subq\s+\$(\d+), %rsp", text)]
        assert re.search(r"movq\s+\$0, \(%rsp\)", text) and max(steps) <= 4096, text


@pytest.mark.parametrize("profile", X86)
def test_nothing_is_kept_below_the_stack_pointer(profile: str) -> None:
    host = host_of(PROFILES[profile].processor)
    assert re.search(r"-\d+\(%rsp\)", assembly(FRAME.format(attributes="", bytes=64), host))
    assert not re.search(r"-\d+\(%rsp\)", assembly(FRAME.format(attributes=host.attributes, bytes=64), host))


@pytest.mark.parametrize("profile", X86)
def test_all_functions_of_a_kernel_have_such_frames(profile: str) -> None:
    a = np.zeros((32, 32), np.float32)
    found = compiled(profile, matmul, [a, a, a, a], {"N": 32})
    capabilities = PROFILES[profile]
    host = host_of(capabilities.processor)
    text = translate(found.asm["spv"], host, capabilities.subgroup_size).text
    heads = re.findall(r"^define .*$", text, re.MULTILINE)
    assert len(heads) > 2 and all(host.attributes in head for head in heads), heads
