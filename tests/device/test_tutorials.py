"""What upstream's tutorials 01 to 08 call, on the device that they ask for: kernels of that kind, and what is around
them. If a tutorial asks for CUDA or HIP by name (07's path of a library, 08's number of multiprocessors), it is left
out. docs/running.md says what the tutorials themselves do."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402
from triton.runtime import driver  # noqa: E402

from examples.flash_attention import key_gradients_kernel  # noqa: E402


@pytest.fixture(scope="module")
def device() -> Any:
    return driver.active.get_active_torch_device()


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def test_01_vectors_and_their_benchmark(device: Any) -> None:
    x, y = torch.rand(1999, device=device), torch.rand(1999, device=device)
    out = torch.empty_like(x)
    assert x.device == device and out.device == device
    add[lambda meta: (triton.cdiv(1999, meta["BLOCK"]),)](x, y, out, 1999, BLOCK=256)
    assert torch.max(torch.abs(out - (x + y))).item() == 0

    def timed(**options: Any) -> Any:
        return triton.testing.do_bench(lambda: add[(8,)](x, y, out, 1999, BLOCK=256), warmup=1, rep=2, **options)

    milliseconds, least, most = timed(quantiles=[0.5, 0.2, 0.8])
    assert 0 < least <= milliseconds <= most and timed() > 0


def test_01_a_report(tmp_path: Any) -> None:
    for package in ("pandas", "matplotlib"):
        pytest.importorskip(package, reason=f"upstream's reports need {package}")
    shown = triton.testing.Benchmark(
        x_names=["size"], x_vals=[1 << 10], line_arg="provider", line_vals=["triton"], line_names=["Triton"],
        plot_name="sums", args={},
    )  # fmt: skip
    triton.testing.perf_report(shown)(lambda size, provider: 1.0).run(save_path=str(tmp_path))
    assert (tmp_path / "sums.csv").exists()


def test_02_what_an_occupancy_is_computed_from(device: Any) -> None:
    properties = driver.active.utils.get_device_properties(device.index)
    assert properties["max_shared_mem"] > 0 and properties["warpSize"] > 0
    assert properties["multiprocessor_count"] > 0
    if driver.active.get_current_target().backend == "spirv" and device.type == "cpu":
        assert properties["max_num_regs"] > 0
    module = getattr(torch, device.type)
    module.set_stream(module.Stream())


@triton.autotune(
    configs=[
        triton.Config({"M": 32, "N": 32, "K": 32, "waves_per_eu": 2}, num_warps=4, num_stages=2),
        triton.Config({"M": 16, "N": 32, "K": 32, "matrix_instr_nonkdim": 16}, num_warps=2, num_stages=3),
    ],
    key=["rows", "columns", "depth"],
)
@triton.jit
def product(a, b, out, rows, columns, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACT: tl.constexpr):
    tile = tl.program_id(0)
    row, column = tile // tl.cdiv(columns, N), tile % tl.cdiv(columns, N)
    tl.assume(row >= 0)
    i, j, k = row * M + tl.arange(0, M), column * N + tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(tl.cdiv(depth, K)):
        at = step * K + k
        left = tl.load(a + (i % rows)[:, None] * depth + at[None, :], mask=at[None, :] < depth, other=0.0)
        right = tl.load(b + at[:, None] * columns + (j % columns)[None, :], mask=at[:, None] < depth, other=0.0)
        total = tl.dot(left, right, total)
    if ACT == "leaky_relu":
        total = tl.where(total >= 0, total, 0.01 * total)
    tl.store(
        out + i[:, None] * columns + j[None, :], total.to(tl.float16), (i[:, None] < rows) & (j[None, :] < columns)
    )


def test_03_an_autotuned_product(device: Any) -> None:
    """The configurations for devices that are not CUDA name options of AMD's."""
    torch.manual_seed(0)
    a = torch.rand((50, 70), device=device, dtype=torch.float16) - 0.5
    b = torch.rand((70, 90), device=device, dtype=torch.float16) - 0.5
    out = torch.empty((50, 90), device=device, dtype=torch.float16)
    product[lambda meta: (triton.cdiv(50, meta["M"]) * triton.cdiv(90, meta["N"]),)](
        a, b, out, 50, 90, 70, ACT="leaky_relu"
    )
    expected = torch.nn.functional.leaky_relu(a.cpu().float() @ b.cpu().float())
    torch.testing.assert_close(out.cpu().float(), expected, rtol=1e-2, atol=1e-2)


@triton.jit
def dropped(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    kept = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(kept, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


def test_04_random_numbers_of_a_seed(device: Any) -> None:
    x = torch.ones(500, device=device)
    found = [torch.empty_like(x) for _ in range(3)]
    for out, seed in zip(found, (123, 123, 512), strict=True):
        dropped[(1,)](x, out, 500, 0.5, seed, BLOCK=512)
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    assert set(found[0].tolist()) == {0.0, 2.0}


@triton.jit
def summed_under_a_lock(out, locks, n, PLAIN: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """As tutorial 05 sums the gradients of weights. PLAIN: what is no atomic operation, "acquire" or "release"."""
    group = tl.program_id(0) % GROUPS
    lock, count = locks + group, locks + GROUPS + group
    i = tl.arange(0, BLOCK)
    total = tl.full((BLOCK,), 1.0, tl.float32)
    if PLAIN == "acquire":
        while tl.load(lock, volatile=True) == 1:
            pass
        tl.store(lock, 1)
    else:
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        total += tl.load(out + group * n + i, mask=i < n)
    tl.store(out + group * n + i, total, mask=i < n)
    tl.debug_barrier()
    if PLAIN == "release":
        tl.store(lock, 0)
    else:
        tl.atomic_xchg(lock, 0)


def test_05_locks_and_gradients(device: Any) -> None:
    out, locks = torch.full((4, 100), 9.0, device=device), torch.zeros(8, dtype=torch.int32, device=device)
    summed_under_a_lock[(33,)](out, locks, 100, PLAIN="", GROUPS=4, BLOCK=128)
    assert out.sum(0).tolist() == [33.0] * 100
    x = torch.randn(8, 64, device=device, requires_grad=True)
    y = torch.nn.functional.layer_norm(x, (64,))
    upstream = torch.randn_like(y)

    def backward() -> None:
        y.backward(upstream, retain_graph=True)

    assert triton.testing.do_bench(backward, grad_to_none=[x], warmup=1, rep=2) > 0


@triton.jit
def copied_by_descriptors(x, out, rows, columns, BLOCK: tl.constexpr, specialize: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, shape=[rows, columns], strides=[columns, 1], block_shape=[BLOCK, BLOCK])
    row = tl.program_id(0) * BLOCK
    for column in tl.range(0, columns, BLOCK, warp_specialize=specialize):
        target.store([row, column], source.load([row, column]))


def test_06_descriptors_with_an_allocator(device: Any) -> None:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=device))
    try:
        x = torch.rand(48, 64, device=device)
        out = torch.zeros_like(x)
        copied_by_descriptors[(2,)](x, out, 48, 64, BLOCK=32, specialize=True)
        assert torch.equal(x, out)
    finally:
        triton.set_allocator(triton.runtime._allocation.NullAllocator())


@triton.jit
def arcsines(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, libdevice.asin(tl.load(x + i, mask=i < n)), mask=i < n)


def test_07_libdevice(device: Any) -> None:
    x, out = torch.rand(1000, device=device), torch.empty(1000, device=device)
    arcsines[(1,)](x, out, 1000, BLOCK=1024)
    torch.testing.assert_close(out, torch.asin(x), rtol=1e-6, atol=1e-6)


@triton.jit
def doubled_in_groups(sources, targets, sizes, groups, BLOCK: tl.constexpr):
    for group in range(groups):
        size = tl.load(sizes + group)
        source = tl.load(sources + group).to(tl.pointer_type(tl.float16))
        target = tl.load(targets + group).to(tl.pointer_type(tl.float16))
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(target + i, tl.load(source + i, mask=i < size) * 2, mask=i < size)


def test_08_pointers_from_memory(device: Any) -> None:
    if device.type == "cuda":
        pytest.skip("a CUDA tensor's address is not this device's: only arguments are translated")
    sizes = [100, 37, 64]
    sources = [torch.rand(size, device=device, dtype=torch.float16) for size in sizes]
    targets = [torch.zeros_like(source) for source in sources]
    addresses = [torch.tensor([x.data_ptr() for x in group], device=device) for group in (sources, targets)]
    doubled_in_groups[(2,)](*addresses, torch.tensor(sizes, dtype=torch.int32, device=device), 3, BLOCK=64)
    assert all(torch.equal(target, source * 2) for source, target in zip(sources, targets, strict=True))


def test_06_gradients_with_the_tutorials_blocks(device: Any) -> None:
    """128 keys and values of 64 channels are 32 KiB: all that Mesa's CPU driver has for the whole kernel."""
    length, head, scale = 150, 64, 0.125
    torch.manual_seed(0)
    q, k, v, grad = (torch.randn((2, length, head), device=device, dtype=torch.float16) for _ in range(4))
    exact = [one.cpu().double().requires_grad_() for one in (q, k, v)]
    scores = exact[0] @ exact[1].mT * scale
    scores = scores.masked_fill(~torch.ones(length, length, dtype=torch.bool).tril(), float("-inf"))
    out = scores.softmax(-1) @ exact[2]
    out.backward(grad.cpu().double())
    log_sum = (scores.logsumexp(-1) / math.log(2)).float().to(device)
    product = (out * grad.cpu().double()).sum(-1).float().to(device)
    found = [torch.full((2 * length + 1, head), 7.0, device=device) for _ in range(2)]
    key_gradients_kernel[(triton.cdiv(length, 128), 2)](
        q, k, v, grad, log_sum.detach(), product.detach(), *found, length, scale,
        HEAD=head, BLOCK_M=32, BLOCK_N=128, CAUSAL=True,
    )  # fmt: skip
    for one, wanted in zip(found, exact[1:], strict=True):
        torch.testing.assert_close(one[:-1].view(2, length, head).cpu().double(), wanted.grad, rtol=0, atol=1e-2)
        assert (one[-1] == 7).all()
