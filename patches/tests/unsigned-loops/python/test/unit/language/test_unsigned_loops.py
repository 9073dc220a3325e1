import pytest
import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend


@triton.jit
def kernel(out, first, past, LAST: tl.constexpr):
    for i in range(first, past):
        tl.store(out, i)
    for i in range(past, LAST, -1):
        tl.store(out, i)


def ttir(first, past, last=0):
    backend = make_backend(GPUTarget("cuda", 80, 32))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    source = ASTSource(kernel, {"out": "*i64", "first": first, "past": past, "LAST": "constexpr"}, {"LAST": last})
    made = source.make_ir(
        backend.target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    return str(made)


@pytest.mark.parametrize("past, loops", [("u32", 2), ("u64", 2), ("i32", 0), ("i64", 0)])
def test_a_loop_counts_as_its_type_does(past, loops):
    assert ttir(past, past).count("scf.for unsigned") == loops


def test_a_bound_below_zero_is_none_of_an_unsigned_type():
    assert ttir("u32", "u32", -1).count("scf.for unsigned") == 1


def test_each_bound_is_extended_by_its_own_type():
    text = ttir("u8", "i32")
    assert "arith.extui %first : i8 to i32" in text and "arith.extsi %first" not in text
