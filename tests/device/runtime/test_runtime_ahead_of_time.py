"""Kernels compiled to files, loaded and launched: what goes in, and what is refused."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton.backends import spirv as backend
from triton.backends.spirv import cli
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.runtime import (
    IncompatibleModule,
    LoadedKernel,
    TensorDescriptor,
    array,
    from_numpy,
    load,
    zeros,
)
from triton.backends.spirv.runtime.compiled.ahead_of_time import check_target
from triton.backends.spirv.runtime.compiled.kernel_file import read_abi, sealed
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.errors import KernelRejected
from triton.backends.spirv.runtime.reports.failures import KernelAssertionError
from triton.backends.spirv.runtime.reports.outside import OutOfBounds
from triton.backends.spirv.settings import ZERO_COPY

KERNELS = Path(__file__).parent / "ahead_of_time_kernels.py"
Compile = Callable[..., Path]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Compiles a kernel of ahead_of_time_kernels.py; the module's path."""

    def run(kernel: str, signature: str, *options: str) -> Path:
        module = tmp_path / f"{kernel}.spv"
        assert cli.main(["compile", f"{KERNELS}:{kernel}", "-s", signature, "-o", str(module), *options]) == 0
        return module

    return run


def _vectors(size: int = 1000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = np.random.default_rng(0).standard_normal((2, size), dtype=np.float32)
    return x, y, np.zeros(size, np.float32)


def test_numpy_arrays_by_position(compiled: Compile) -> None:
    x, y, out = _vectors()
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32, 256"))
    assert isinstance(kernel, LoadedKernel) and kernel.name == "add"
    kernel[(4,)](x, y, out, 1000)
    np.testing.assert_array_equal(out, x + y)
    way = current().host_memory
    assert kernel.transfers == {"x": way, "y": way, "out": way}
    if way == ZERO_COPY:
        assert np.shares_memory(array(out).array, out)


def test_other_arguments_and_grids(compiled: Compile) -> None:
    x, y, out = _vectors()
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32"))  # BLOCK has a default
    kernel[lambda constants: (-(-1000 // constants["BLOCK"]),)](array(x), y, out=out, n=np.int32(1000), BLOCK=256)
    np.testing.assert_array_equal(out, x + y)
    on_device = zeros(1000, "float32")
    kernel[4](from_numpy(x), from_numpy(y), on_device, 1000)
    np.testing.assert_array_equal(on_device.to_numpy(), x + y)
    assert set(kernel.transfers.values()) == {"device"}
    for grid in (np.int64(4), np.array([4]), lambda named: (-(-named["n"] // named["BLOCK"]),)):
        out[:] = 0
        kernel[grid](x, y, out, 1000)
        np.testing.assert_array_equal(out, x + y)
    out[:] = 0
    kernel[0](x, y, out, 1000)
    assert not out.any()


def test_torch_tensors(compiled: Compile) -> None:
    torch = pytest.importorskip("torch")
    x, y, out = map(torch.from_numpy, _vectors())
    load(compiled("add", "*fp32, *fp32, *fp32, i32"))[(4, 1, 1)](x, y, out, 1000)
    assert torch.equal(out, x + y)


def test_an_autotuned_kernel_is_compiled_for_what_the_signature_says(compiled: Compile) -> None:
    x = np.arange(100, dtype=np.float32)
    kernel = load(compiled("scale", "*fp32, factor=fp32, n=i32, BLOCK=128", "--num-warps", "2"))
    kernel[1](x, 100, 3.0)
    np.testing.assert_array_equal(x, 3 * np.arange(100, dtype=np.float32))
    subgroups = 1 if current().capabilities.processor else 2
    assert kernel.abi.workgroup_size == (subgroups * kernel.abi.subgroup_size, 1, 1)


def test_every_scalar_type_and_constant(compiled: Compile) -> None:
    out = np.zeros(1, np.float64)
    if not current().capabilities.has("float64"):
        pytest.skip("the device has no float64")
    module = compiled("every_type", "*fp64:16, i8, u16, i32:16, i64, fp16, fp32, i32:1, 'twice', None")
    load(module)[1](out, -3, 60000, 32, -(2**40), 1.5, 0.25, g=1, SUFFIX="twice", NOTHING=None)
    assert out[0] == 2 * (-3 + 60000 + 32 - 2**40 + 1.5 + 0.25 + 1)
    told = {
        entry["name"]: (entry["type"], entry["offset"], entry["bytes"])
        for entry in json.loads(module.with_suffix(".json").read_text())["arguments"]
    }
    assert told == {
        "out": ("*fp64", 0, 8),
        "a": ("i8", 8, 1),
        "b": ("u16", 10, 2),
        "c": ("i32", 12, 4),
        "d": ("i64", 16, 8),
        "e": ("fp16", 24, 2),
        "f": ("fp32", 28, 4),
    }


def test_tensor_descriptors(compiled: Compile) -> None:
    source = np.arange(20 * 24, dtype=np.float32).reshape(20, 24)
    target = np.zeros_like(source)
    kernel = load(compiled("copy_block", "tensordesc<fp32[16, 16]>, tensordesc<fp32[16, 16]>, i32, i32"))

    def block(of: np.ndarray, *shape: int, last: int = 1) -> TensorDescriptor:
        return TensorDescriptor(of, [20, 24], [24, last], shape or [16, 16])

    kernel[1](block(source), block(target), 16, 16)
    expected = np.zeros_like(source)
    expected[16:, 16:] = source[16:, 16:]
    np.testing.assert_array_equal(target, expected)
    with pytest.raises(ValueError, match=r"'target' was compiled for blocks of \[16,16\], not of \[8,16\]"):
        kernel[1](block(source), block(target, 8, 16), 0, 0)
    with pytest.raises(ValueError, match="'source': the last stride is 2, not 1"):
        kernel[1](block(source, last=2), block(target), 0, 0)
    with pytest.raises(TypeError, match=r"'source' \(tensordesc<.*\) is a TensorDescriptor, not ndarray"):
        kernel[1](source, block(target), 0, 0)
    with pytest.raises(ValueError, match="'source': the padding is 'zero' or 'nan', not 'one'"):
        kernel[1](replace(block(source), padding="one"), block(target), 0, 0)
    with pytest.raises(TypeError, match="'source': shape, strides and block_shape are tuples, not 5, "):
        kernel[1](replace(block(source), shape=5), block(target), 0, 0)


def test_reports(compiled: Compile, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = load(compiled("report", "*i32, i32", "--debug"))
    out = np.full(4, -1, np.int32)
    kernel[4](out, 4)
    assert out.tolist() == [0, 1, 2, 3]
    printed = capfd.readouterr().out.splitlines()
    assert {f"pid ({at}, 0, 0) idx () program: {at}" for at in range(4)} <= set(printed)
    with pytest.raises(KernelAssertionError, match="kernel 'report': assertion failed: past the end"):
        kernel[4](out, 3)


def test_accesses_are_checked_where_asked(compiled: Compile) -> None:
    x, y, out = _vectors()
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32", "--check-bounds"))
    kernel[4](x, y, out, 1000)
    np.testing.assert_array_equal(out, x + y)
    with pytest.raises(OutOfBounds, match="kernel 'add': load out of bounds: argument 'y'"):
        kernel[4](x, y[:900], out, 1000)


def test_a_descriptor_has_one_name_in_what_is_told_of_it(compiled: Compile) -> None:
    """That of the parameter, as where it is compiled just in time."""
    kernel = load(
        compiled("copy_block", "tensordesc<fp32[16, 16]>, tensordesc<fp32[16, 16]>, i32, i32", "--check-bounds")
    )
    source, target = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    taller, same = (
        TensorDescriptor(of, shape, [16, 1], [16, 16]) for of, shape in ((source, [20, 16]), (target, [16, 16]))
    )
    kernel[1](taller, same, 0, 0)
    assert set(kernel.transfers) == {"source", "target"}
    with pytest.raises(OutOfBounds, match="argument 'source' at index") as caught:
        kernel[1](taller, same, 4, 0)
    assert (caught.value.argument, caught.value.count) == ("source", 64)
    target.setflags(write=False)
    with pytest.raises(ValueError, match="argument 'target': the kernel writes it, but the array is read-only"):
        kernel[1](taller, TensorDescriptor(target, [16, 16], [16, 1], [16, 16]), 0, 0)


def test_a_watched_loop(compiled: Compile) -> None:
    out = np.zeros(1, np.int32)
    kernel = load(compiled("collatz", "*i32, i32"))
    kernel[1](out, 27)
    assert out[0] == 111
    watched = current().capabilities.driver == "mesa_llvmpipe"
    assert [message["kind"] for message in kernel.abi.reports] == (["loop"] if watched else [])


def test_more_arguments_than_push_constants(compiled: Compile) -> None:
    module = compiled("many", ", ".join(["*fp32"] * 19))
    assert load(module).abi.indirect_arguments is (current().capabilities.push_constant_bytes < 152)
    values = [np.full(1, 2.0**power, np.float32) for power in range(18)]
    out = np.zeros(1, np.float32)
    load(module)[1](*values, out)
    assert out[0] == 2**18 - 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x, y, out: (x, y, out), TypeError, r"takes \(x: \*fp32, .*, n: i32\): 4 arguments, not 3"),
        (lambda x, y, out: (x, y, out, 9, 9), TypeError, "4 arguments, not 5"),
        (lambda x, y, out: (x.astype(np.float64), y, out, 9), TypeError, "'x' .*elements of type fp32, not float64"),
        (lambda x, y, out: (x, y, out, 1.5), TypeError, r"'n' \(i32\): an integer is needed, not float"),
        (lambda x, y, out: (x, y, out, 2**31), OverflowError, r"'n' \(i32\): 2147483648 does not fit"),
        (lambda x, y, out: (x, y, [0.0], 9), TypeError, r"'out' \(\*fp32\): a tensor"),
        (lambda x, y, out: (x[1:], y, out, 9), ValueError, "'x' was compiled for multiples of 16, not a tensor at 0x"),
        (
            lambda x, y, out: (x, y.astype(">f4"), out, 9),
            TypeError,
            "kernel 'add', argument 'y': an array of >f4 cannot",
        ),
    ],
)
def test_arguments_that_do_not_fit(compiled: Compile, change: Any, error: type[Exception], message: str) -> None:
    kernel = load(compiled("add", "*fp32:16, *fp32, *fp32, i32"))
    with pytest.raises(error, match=message):
        kernel[1](*change(*_vectors()))


@pytest.mark.parametrize("number", [33, np.int32(33), np.array(33), True])
def test_numbers_that_are_not_the_multiple_that_was_said(compiled: Compile, number: Any) -> None:
    x, y, out = _vectors()
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32:16"))
    kernel[1](x, y, out, np.array(32))
    np.testing.assert_array_equal(out[:32], x[:32] + y[:32])
    with pytest.raises(ValueError, match=f"'n' was compiled for multiples of 16, not {number}; compile it without"):
        kernel[1](x, y, out, number)


def test_a_tensor_of_one_number_is_checked_as_a_number(compiled: Compile) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="'n' was compiled for multiples of 16, not"):
        load(compiled("add", "*fp32, *fp32, *fp32, i32:16"))[1](*_vectors(), torch.tensor(33))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"BLOCK": np.array([256, 1])}, "was compiled for BLOCK=256, not array"),
        ({"m": 1}, "has no parameter 'm'; it has"),
        ({"x": 1}, "'x' was passed twice"),
        ({"BLOCK": 64}, "was compiled for BLOCK=256, not 64"),
    ],
)
def test_names_that_do_not_fit(compiled: Compile, named: dict[str, int], message: str) -> None:
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32"))
    with pytest.raises((TypeError, ValueError), match=message):
        kernel[1](*_vectors(), 9, **named)


def test_grids_that_do_not_fit(compiled: Compile) -> None:
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32"))
    with pytest.raises(ValueError, match="a grid has 1 to 3 sizes, not 4"):
        kernel[1, 1, 1, 1](*_vectors(), 9)
    for grid in (4.0, (4.0,), "4", None):
        with pytest.raises(TypeError, match="kernel 'add': a grid is an integer or a tuple of 1 to 3, not "):
            kernel[grid](*_vectors(), 9)
    kernel.unload()
    with pytest.raises(RuntimeError, match="kernel 'add' was unloaded"):
        kernel[1](*_vectors(), 9)


# -- modules that do not belong here ---------------------------------------------------------------------------


def _profile(path: Path, **changes: Any) -> str:
    """A JSON profile of the device that is present, with changes; its path."""
    has = replace(current().capabilities, **changes)
    entries = {"description": "for a test", "sources": [], **vars(has), "features": sorted(has.features)}
    entries["native_math"], entries["tile_products"] = sorted(has.native_math), sorted(has.tile_products)
    entries["corrections"] = sorted(has.corrections)
    path.write_text(json.dumps(entries))
    return str(path)


def test_a_profile_of_ones_own(compiled: Compile, tmp_path: Path) -> None:
    x, y, out = _vectors()
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32", "--target", _profile(tmp_path / "own.json")))
    kernel[4](x, y, out, 1000)
    np.testing.assert_array_equal(out, x + y)


def test_what_a_profile_promises_is_there() -> None:
    """Where a device of a profile's driver is present, it has what modules for the profile may need."""
    has = current().capabilities
    promises = [promised for promised in PROFILES.values() if promised.driver == has.driver]
    if not promises:
        pytest.skip(f"no profile is of the driver {has.driver}")
    if not has.has("matrices"):  # the profiles with matrix units are of newer versions of the driver
        promises = [promised for promised in promises if not promised.has("matrices")]
    for promised in promises:
        assert promised.features <= has.features
        for limit in ("shared_bytes", "push_constant_bytes", "max_workgroup_invocations"):
            assert getattr(promised, limit) <= getattr(has, limit), limit


def test_a_module_for_another_subgroup_size(compiled: Compile, tmp_path: Path) -> None:
    size = current().capabilities.subgroup_size
    module = compiled("add", "*fp32, *fp32, *fp32, i32", "-t", _profile(tmp_path / "own.json", subgroup_size=2 * size))
    with pytest.raises(IncompatibleModule, match=f"needs subgroups of {2 * size}, the device has {size}; compile it"):
        load(module)


def test_a_module_for_another_driver(compiled: Compile) -> None:
    other = "amd-rdna3" if current().capabilities.driver != "mesa_radv" else "lavapipe"
    module = compiled("add", "*fp32, *fp32, *fp32, i32", "-t", other)
    with pytest.raises(
        IncompatibleModule,
        match=f"it was compiled for the driver {PROFILES[other].driver}, not {current().capabilities.driver}",
    ):
        load(module)


class _Poorer:
    """The present device with less."""

    def __init__(self, **less: Any) -> None:
        self.device, self.capabilities = current().device, replace(current().capabilities, **less)


@pytest.mark.parametrize(
    ("less", "message"),
    [
        ({"features": frozenset()}, "it needs .*float64, .*which the device lacks"),
        ({"shared_bytes": 16}, "it takes 64 bytes of shared memory, the device has 16"),
        ({"push_constant_bytes": 8}, "its arguments take 16 bytes of push constants, the device has 8"),
    ],
)
def test_a_device_that_has_less(compiled: Compile, less: dict[str, Any], message: str) -> None:
    if not current().capabilities.has("float64"):
        pytest.skip("the device has no float64")
    module = compiled("narrow", "*fp64, *fp32")
    abi = replace(read_abi(module, module.read_bytes()), shared_bytes=64)
    check_target(abi, current())
    with pytest.raises(IncompatibleModule, match=f"kernel 'narrow' cannot run on .*: {message}"):
        check_target(abi, _Poorer(**less))  # type: ignore[arg-type]


def _edit(module: Path, **changes: Any) -> None:
    path = module.with_suffix(".json")
    path.write_text(json.dumps(sealed(json.loads(path.read_text()) | changes)))


def _edit_first(module: Path, list_: str, **changes: Any) -> None:
    """Changes the first entry of a list of the JSON."""
    first, *others = json.loads(module.with_suffix(".json").read_text())[list_]
    _edit(module, **{list_: [first | changes, *others]})


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda module: module.unlink(), FileNotFoundError, "there is no module .*add.spv"),
        (lambda module: module.with_suffix(".json").unlink(), FileNotFoundError, "add.json is missing"),
        (lambda module: module.write_bytes(module.read_bytes()[:-4]), IncompatibleModule, "describes another module"),
        (lambda module: module.with_suffix(".json").write_text("{"), IncompatibleModule, "add.json is damaged"),
        (
            lambda module: module.with_suffix(".json").write_text("[" * 100_000),
            IncompatibleModule,
            "add.json is damaged",
        ),
        (lambda module: module.with_suffix(".json").write_text("[]"), IncompatibleModule, "its format is not"),
        (lambda module: _edit(module, format="other"), IncompatibleModule, "its format is not"),
        (lambda module: _edit(module, version=99), IncompatibleModule, "has version 99 .* reads version 2"),
        (lambda module: _edit(module, more=1), IncompatibleModule, "see its entries more"),
        (lambda module: _edit(module, parameters=[{"x": 1}]), IncompatibleModule, "add.json is damaged"),
        (lambda module: _edit(module, parameters=[]), IncompatibleModule, "do not match its parameters"),
        (lambda module: _edit(module, sha256=1), IncompatibleModule, "add.json is damaged: sha256 is 1"),
        (lambda module: _edit(module, target="x"), IncompatibleModule, "add.json is damaged: 'x' is neither"),
        (
            lambda module: _edit(module, required_features=[1]),
            IncompatibleModule,
            r"damaged: required_features\[0\] is 1",
        ),
        (lambda module: _edit(module, workgroup_size=[1]), IncompatibleModule, r"damaged: workgroup_size is \[1\]"),
        (lambda module: _edit(module, shared_bytes=None), IncompatibleModule, "damaged: shared_bytes is None"),
        (lambda module: _edit(module, reports=[{}]), IncompatibleModule, "do not match its parameters"),
        (lambda module: _edit(module, arguments={}), IncompatibleModule, r"damaged: arguments is \{\}"),
        (
            lambda module: _edit_first(module, "parameters", type="*fp64"),
            IncompatibleModule,
            r"parameter 'x' of type \*fp64 is passed as \(\*fp32\)",
        ),
        (lambda module: _edit_first(module, "parameters", divisible_by=0), IncompatibleModule, "divisible_by is 0"),
        (
            lambda module: _edit_first(module, "parameters", name="y"),
            IncompatibleModule,
            "two parameters have one name",
        ),
        (lambda module: _edit_first(module, "parameters", more=1), IncompatibleModule, r"parameters\[0\] lacks one"),
        (lambda module: _edit_first(module, "arguments", parameter=9), IncompatibleModule, r"is passed as \(\)"),
        (lambda module: _edit_first(module, "arguments", written="no"), IncompatibleModule, r"\[0\].written is 'no'"),
        (lambda module: _edit_first(module, "arguments", bytes=4), IncompatibleModule, "of type .*fp32 has 4 bytes"),
        (
            lambda module: _edit(module, kernel="sub"),
            (IncompatibleModule, KernelRejected),  # machine code is looked for the function first
            "its JSON says .'sub'|it has no function 'sub'",
        ),
        (lambda module: _edit(module, block_bytes=64), IncompatibleModule, "offsets .* do not follow the ABI"),
    ],
)
def test_files_that_do_not_belong_together(
    compiled: Compile, damage: Callable[[Path], object], error: type[Exception], message: str
) -> None:
    module = compiled("add", "*fp32, *fp32, *fp32, i32")
    load(module).unload()
    damage(module)
    with pytest.raises(error, match=message):
        load(module)


def test_the_runtime_imports_no_triton(compiled: Compile) -> None:
    """With every import of Triton's refused: the loaded package is found beside this one under another name."""
    module = compiled("add", "*fp32, *fp32, *fp32, i32")
    script = f"""
import importlib.util, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "torch"):
            raise ImportError(f"{{name}} was imported")
sys.meta_path.insert(0, Refuse())
spec = importlib.util.spec_from_file_location("own", {backend.__file__!r})
spec.submodule_search_locations = {list(backend.__path__)!r}
sys.modules["own"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
import numpy as np
from own import cli
from own.runtime import load
x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
load({str(module)!r})[(4, )](x, x, out, 1000)
assert (out == 2 * x).all()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_kernel_that_is_not_used_any_more_is_given_back(compiled: Compile) -> None:
    x, y, out = _vectors()
    values, sums = from_numpy(x), zeros(1000, "float32")
    module = compiled("add", "*fp32, *fp32, *fp32, i32")
    context = current()
    before = set(context._kernels)
    for _ in range(3):
        load(module)[4](values, values, sums, 1000)
    gc.collect()  # which may take kernels of earlier tests along
    assert set(context._kernels) <= before
    np.testing.assert_array_equal(sums.to_numpy(), 2 * x)


def test_a_launch_needs_a_grid(compiled: Compile) -> None:
    with pytest.raises(TypeError, match=r"is launched on a grid: kernel\[grid\]"):
        load(compiled("add", "*fp32, *fp32, *fp32, i32, 256"))()


def test_read_only_arrays(compiled: Compile) -> None:
    kernel = load(compiled("add", "*fp32, *fp32, *fp32, i32, 256"))
    x, y, out = _vectors()
    x.setflags(write=False)
    kernel[(4,)](x, y, out, 1000)
    np.testing.assert_array_equal(out, x + y)
    out.setflags(write=False)
    with pytest.raises(ValueError, match="argument 'out': the kernel writes it, but the array is read-only"):
        kernel[(4,)](y, y, out, 1000)
