import re

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@pytest.mark.parametrize("value", [2.0**-16, 1e-9, 1.2345e-5, 0.1])
def test_bf16_constants_are_the_nearest_number(value):
    @triton.jit
    def kernel(out, VALUE: tl.constexpr):
        tl.store(out + tl.arange(0, 16), tl.full((16,), VALUE, tl.bfloat16))

    source = ASTSource(kernel, {"out": "*bf16", "VALUE": "constexpr"}, {"VALUE": value})
    ttir = triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ttir"]
    (constant,) = re.findall(r"arith\.constant (?:dense<)?([-+.\deE]+)>? : (?:tensor<16x)?b?f", ttir)
    # A bfloat16 has eight bits of precision.
    assert float(constant) == pytest.approx(value, rel=2**-8)
