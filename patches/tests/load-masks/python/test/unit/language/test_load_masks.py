import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.errors import CompilationError


@pytest.mark.parametrize("dtype", ["i32", "fp32"])
def test_load_refuses_a_mask_that_is_not_boolean(dtype):

    @triton.jit
    def kernel(x, mask, out):
        tl.store(out, tl.load(x, mask=mask))

    source = ASTSource(kernel, {"x": "*fp32", "mask": dtype, "out": "*fp32"})
    with pytest.raises(CompilationError) as error:
        triton.compile(source, target=GPUTarget("cuda", 80, 32))
    assert "Mask must have boolean scalar type" in str(error.value.__cause__ or error.value)
