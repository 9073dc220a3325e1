import pytest
import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend


@triton.jit
def exchanged(x, out, n):
    start = tl.load(x)
    a, b = start, start
    for _ in range(n):
        a, b = b, a + 1
    tl.store(out, a)
    tl.store(out + 1, b)


@triton.jit
def followed(x, out, n):
    now = tl.load(x)
    last = now
    while now < n:
        last = now
        now += 3
    tl.store(out, last)
    tl.store(out + 1, now)


@triton.jit
def in_a_tuple(x, out, n):
    start = tl.load(x)
    pair, other = (start, start + 1), start
    for _ in range(n):
        pair, other = (other, pair[0]), pair[0] + pair[1]
    tl.store(out, other)
    tl.store(out + 1, pair[0])


@triton.jit
def unchanged(x, out, n):
    start = tl.load(x)
    a, b = start, start
    for _ in range(n):
        a += b
    tl.store(out, a)


def ttir(kernel):
    backend = make_backend(GPUTarget("cuda", 80, 32))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    source = ASTSource(kernel, {"x": "*i32", "out": "*i32", "n": "i32"}, {})
    made = source.make_ir(
        backend.target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    made = backend.make_ttir(made, {}, options, backend.target.arch)
    return str(made)


@pytest.mark.parametrize("kernel, values", [(exchanged, 2), (followed, 2), (in_a_tuple, 3)])
def test_each_name_that_gets_another_value_is_carried(kernel, values):
    results = "scf.while" if kernel is followed else "scf.for"
    (loop,) = (line for line in ttir(kernel).splitlines() if results in line)
    assert loop.split("->")[1].count("i32") >= values, loop


def test_a_name_that_keeps_its_value_costs_nothing():
    (loop,) = (line for line in ttir(unchanged).splitlines() if "scf.for" in line)
    assert loop.split("->")[1].split(":")[0].count("i32") == 1, loop
