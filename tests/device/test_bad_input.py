"""What a user gets wrong, through the whole path: one error that says what, where, and what to do."""

import json
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.compiler import TooManyWarps
from triton.backends.spirv.lowering.errors import LoweringError, UnsupportedOperation
from triton.backends.spirv.runtime.errors import KernelRejected
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

from tests.device.helpers import device_capabilities

LANES = device_capabilities().subgroup_size


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, at < n) * 2, at < n)


@pytest.fixture
def tensors():
    return torch.arange(16, dtype=torch.float32), torch.zeros(16)


@pytest.fixture
def own_cache(tmp_path):
    """An empty cache folder, and no kernel in memory."""
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        double_kernel.device_caches.clear()
        yield tmp_path
    double_kernel.device_caches.clear()


@pytest.mark.parametrize("size", (0, 201, 200))
def test_truncated_binary_in_the_cache(own_cache, tensors, size):
    x, y = tensors
    double_kernel[(1,)](x, y, 16, BLOCK=16)
    (binary,) = own_cache.rglob("double_kernel.spv")
    os.truncate(binary, size)
    metadata = json.loads(binary.with_suffix(".json").read_text())
    del metadata["sha256"]  # with it, the kernel is compiled again, but by the patch 'damaged-metadata' alone
    binary.with_suffix(".json").write_text(json.dumps(metadata))
    double_kernel.device_caches.clear()
    with pytest.raises(
        KernelRejected, match="'double_kernel'.*(not a SPIR-V module|is cut off|cut off or damaged)"
    ) as raised:
        double_kernel[(1,)](x, y, 16, BLOCK=16)
    assert f"comes from Triton's cache: delete {binary.parent}, and the kernel is compiled" in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    shutil.rmtree(binary.parent)
    double_kernel.device_caches.clear()
    y.zero_()
    double_kernel[(1,)](x, y, 16, BLOCK=16)
    assert torch.equal(y, 2 * x)


def test_lost_binary_is_compiled_again(own_cache, tensors):
    x, y = tensors
    double_kernel[(1,)](x, y, 16, BLOCK=16)
    for path in own_cache.rglob("*.json"):
        path.unlink()
    double_kernel.device_caches.clear()
    double_kernel[(1,)](x, y, 16, BLOCK=16)
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[1]", b"\xdc\xff"])
def test_damaged_metadata_in_the_cache_are_made_again(own_cache, tensors, content):
    pytest.importorskip("triton.compiler.cached_metadata", reason="this triton lacks the patch 'damaged-metadata'")
    x, y = tensors
    double_kernel[(1,)](x, y, 16, BLOCK=16)
    (metadata,) = own_cache.rglob("double_kernel.json")
    metadata.write_bytes(content)
    double_kernel.device_caches.clear()
    y.zero_()
    double_kernel[(1,)](x, y, 16, BLOCK=16)
    assert torch.equal(y, 2 * x) and metadata.stat().st_size > len(content)


def test_files_of_every_stage_are_in_the_cache(own_cache, tensors):
    double_kernel[(1,)](*tensors, 16, BLOCK=16)
    assert {path.suffix for path in own_cache.rglob("double_kernel.*")} >= {".ttir", ".ttgir", ".spv", ".json"}


TTGIR = """
#b = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [{lanes}], warpsPerCTA = [{warps}], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "spirv:vulkan1.3",
    "ttg.threads-per-warp" = {lanes} : i32}} {{
  tt.func public @k(%x: !tt.ptr<f32>) attributes {{noinline = false}} {{
    %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #b>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #b>
    %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>, #b>, tensor<64xi32, #b>
    %v = tt.load %p : tensor<64x!tt.ptr<f32>, #b>
    %w = arith.addf %v, %v : tensor<64xf32, #b>
    tt.store %p, %w : tensor<64x!tt.ptr<f32>, #b>
    tt.return
  }}
}}
"""


def compile_text(folder: Path, text: str):
    path = folder / "k.ttgir"
    path.write_text(text)
    return triton.compile(str(path), target=driver.active.get_current_target())


def test_ttgir_file_runs(tmp_path):
    x = torch.arange(64, dtype=torch.float32)
    compile_text(tmp_path, TTGIR.format(lanes=LANES, warps=2))[(1, 1, 1)](x)
    assert torch.equal(x, 2 * torch.arange(64, dtype=torch.float32))


def test_garbage_ttgir_file(tmp_path, capfd):
    with pytest.raises(RuntimeError, match="Parse MLIR file failed"):
        compile_text(tmp_path, "this is not IR {{{ %")
    assert re.search(r"k\.ttgir\":1:1.*error", capfd.readouterr().err)


def test_ttgir_of_another_subgroup_size(tmp_path):
    message = f"subgroups of {4 * LANES} invocations.*have {LANES}.*compile the kernel"
    with pytest.raises(LoweringError, match=message):
        compile_text(tmp_path, TTGIR.format(lanes=4 * LANES, warps=2))


def test_ttgir_of_too_many_warps(tmp_path):
    with pytest.raises(LoweringError, match=f"num_warps=256 needs workgroups of {256 * LANES} invocations.*allows"):
        compile_text(tmp_path, TTGIR.format(lanes=LANES, warps=256))


@triton.jit
def in_place_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)


@pytest.mark.only_on("CPU", "a workgroup is one subgroup there, however many warps a kernel asks for")
def test_any_number_of_warps_runs_on_a_processor():
    x = torch.ones(64)
    in_place_kernel[(1,)](x, BLOCK=64, num_warps=64)
    assert (x == 2).all()


@pytest.mark.only_on("Vulkan", "the CPU device runs any number of warps as one subgroup")
def test_too_many_warps_say_how_many_there_can_be():
    limit = device_capabilities().max_workgroup_invocations
    many = 2 * limit // LANES
    with pytest.raises(
        TooManyWarps,
        match=f"^kernel 'in_place_kernel': num_warps={many} needs workgroups of {many * LANES} invocations, and the "
        f"device's have at most {limit}: use num_warps={limit // LANES} or fewer",
    ):
        in_place_kernel[(1,)](torch.ones(64), BLOCK=64, num_warps=many)
    error = TooManyWarps("k", many, LANES, limit)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.only_on("Vulkan", "the CPU device runs any number of warps as one subgroup")
def test_autotuning_leaves_out_what_has_too_many_warps():
    many = 2 * device_capabilities().max_workgroup_invocations // LANES
    configs = [triton.Config({}, num_warps=warps) for warps in (many, 2)]
    tuned = triton.autotune(configs, key=[])(in_place_kernel)
    x = torch.ones(64)
    tuned[(1,)](x, BLOCK=64)
    assert tuned.best_config.num_warps == 2 and x[0] >= 2


@triton.jit
def third_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, (tl.load(x_ptr + i).to(tl.float64) / 3).to(tl.float32))


@pytest.mark.parametrize("profile", ["generic", "intel-xe"])
def test_what_a_device_lacks_is_told_with_the_line(profile):
    """The constant 3 no longer has its own line: the error names the division's line."""
    capabilities = PROFILES[profile]
    source = ASTSource(third_kernel, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {(1,): 128})
    message = r"test_bad_input\.py:\d+.*has no f64 arithmetic \(feature float64\); use float32, or a device that has"
    with pytest.raises(UnsupportedOperation, match=message):
        triton.compile(source, target=target_of(capabilities))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_ctas": 2}, "num_ctas=2.*num_ctas=1 only"),
        ({"num_warps": 3}, "num_warps=3 must be a power of two"),
        ({"num_stages": -1}, "num_stages=-1 must not be negative"),
        ({"launch_cooperative_grid": True}, "launch_cooperative_grid=True.*Vulkan"),
    ],
)
def test_options_that_cannot_be_honoured(tensors, options, message):
    with pytest.raises(ValueError, match=message):
        double_kernel[(1,)](*tensors, 16, BLOCK=16, **options)


def test_unknown_option(tensors):
    with pytest.raises(KeyError, match="nun_warps"):
        double_kernel[(1,)](*tensors, 16, BLOCK=16, nun_warps=4)


@pytest.mark.parametrize("argument", ("abc", [1, 2], object()))
def test_argument_that_is_no_value(tensors, argument):
    with pytest.raises(
        TypeError, match=r"kernel .double_kernel.: argument .y_ptr. is (a string|a list|of type object)"
    ):
        double_kernel[(1,)](tensors[0], argument, 16, BLOCK=16)


def test_tensor_without_memory(tensors):
    with pytest.raises(
        ValueError, match=r"kernel '\w+': argument 'x_ptr' \(\*fp32\).*'meta', where tensors have no memory"
    ):
        double_kernel[(1,)](tensors[0].to("meta"), tensors[1], 16, BLOCK=16)


def test_wrong_dtype_for_a_compiled_kernel(tensors):
    x, y = tensors
    compiled = double_kernel.warmup(x, y, 16, BLOCK=16, grid=(1,))
    with pytest.raises(TypeError, match=r"argument 'x_ptr' \(\*fp32\).*compiled for.*fp32, not torch\.float64"):
        compiled[(1, 1, 1)](x.double(), y, 16, 16)
    with pytest.raises(TypeError, match=r"argument 'n' \(i32\) was not passed"):
        compiled[(1, 1, 1)](x, y)
    compiled[(1, 1, 1)](x, y, 16, 16)
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize(
    ("grid", "message"),
    [((1, 1 << 31, 1), "axis 1, 2147483648, is past the device's limit"), ((-1,), "axis 0 is negative")],
)
def test_impossible_grid(tensors, grid, message):
    with pytest.raises(ValueError, match=f"'double_kernel'.*{message}"):
        double_kernel[grid](*tensors, 16, BLOCK=16)


def test_empty_grid_does_nothing(tensors):
    x, y = tensors
    double_kernel[(0,)](x, y, 16, BLOCK=16)
    assert torch.equal(y, torch.zeros(16))


@triton.jit
def large_histogram_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y_ptr + at, tl.histogram(tl.load(x_ptr + at), N))


def test_too_much_shared_memory():
    limit = device_capabilities().shared_bytes
    bins = triton.next_power_of_2(limit // 2)  # of four bytes each
    x, y = (torch.zeros(bins, dtype=torch.int32) for _ in range(2))
    message = (
        rf"^kernel 'large_histogram_kernel': .*shared memory, Required: {4 * bins}, Hardware limit: {limit}\. "
        r"Smaller blocks take less\.$"
    )
    for _ in range(2):  # the second one is not planned again
        with pytest.raises(OutOfResources, match=message) as raised:
            large_histogram_kernel[(1,)](x, y, bins, num_warps=8)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@triton.jit
def assembly_kernel(x_ptr):
    at = tl.arange(0, 16)
    x = tl.inline_asm_elementwise("ld.global.b32 $0, [$1];", "=r,r", [at], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x_ptr + at, x)


def test_inline_assembly_that_loads_is_refused_with_the_users_line():
    line = assembly_kernel.fn.__code__.co_firstlineno + 3
    message = rf"test_bad_input\.py:{line}:\d+.*'tt\.elementwise_inline_asm'.*use "
    with pytest.raises(UnsupportedOperation, match=message):
        assembly_kernel[(1,)](torch.zeros(16, dtype=torch.int32))
