"""The hooks into torch's compiler: each finds what it changes in this torch, and a warning names what torch moved."""

from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.spirv.torch.compile.internals import hook as one_hook  # noqa: E402
from triton.backends.spirv.torch.compile.internals import hooks as internals  # noqa: E402


@triton.jit
def _twice(out, x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@pytest.mark.parametrize("hook", internals.HOOKS, ids=lambda hook: hook.name)
def test_torch_has_what_the_hook_needs(hook: internals.Hook) -> None:
    internals.install()
    module = import_module(hook.place)
    if not hook.is_due:
        if hook.since:
            assert set(hook.missing(module)) == set(hook.needs), f"'{hook.name}' is due before torch {hook.since}"
        return
    assert hook.missing(module) == [], f"the hook '{hook.name}' is broken by torch {torch.__version__}"
    assert hook.name not in internals.BROKEN


def test_every_change_is_a_hook() -> None:
    names = ("convolutions", "generation", "replays", "roles", "templates", "tuned_kernels")
    rooms = [getattr(internals, name) for name in names]
    changes = {
        value
        for room in rooms
        for name, value in vars(room).items()
        if getattr(value, "__module__", "") == room.__name__ and not name.startswith("_")
    }
    assert changes == {hook.change for hook in internals.HOOKS}


def _sample(module: Any) -> None:
    raise AssertionError("a change that lacks what it needs is not made")


def test_a_hook_without_its_place_is_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken: dict[str, str] = {}
    monkeypatch.setattr(one_hook, "BROKEN", broken)
    hook = internals.Hook("torch.somewhere", ("present.part", "gone.part"), _sample)
    module: Any = ModuleType("torch.somewhere")
    module.present = ModuleType("present")
    module.present.part = 1
    hook.apply(module)
    assert "torch.somewhere.gone.part" in broken["_sample"] and "'_sample'" in caplog.text


def test_a_hook_that_the_device_does_without_costs_what_it_gives(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken: dict[str, str] = {}
    monkeypatch.setattr(one_hook, "BROKEN", broken)
    hook = internals.Hook("torch.somewhere", ("gone",), _sample, otherwise="samples are slow")
    hook.apply(ModuleType("torch.somewhere"))
    assert not broken
    assert "'_sample': samples are slow" in caplog.text and "torch.somewhere.gone" in caplog.text


@pytest.mark.parametrize(
    ("since", "until", "due"),
    [("", "", True), ("1.13", "", True), ("99.0", "", False), ("", "1.13", False), ("", "99.0", True)],
)
def test_what_only_other_versions_have_is_not_missed(since: str, until: str, due: bool) -> None:
    assert internals.Hook("torch.somewhere", ("gone",), print, since=since, until=until).is_due == due


@pytest.mark.parametrize(("module", "formerly"), [("torch.gone", ""), ("torch.gone", "torch._inductor.gone")])
def test_a_hook_of_a_module_that_torch_has_not_is_left_out(module: str, formerly: str) -> None:
    assert internals.Hook(module, (), print, formerly).place == ""


@pytest.mark.parametrize("module", ["torch._inductor.utils", "torch._inductor.codegen"])
def test_a_module_is_found_by_either_name(module: str) -> None:
    assert internals.Hook(module, (), print, "torch.gone").place == module
    assert internals.Hook("torch.gone", (), print, module).place == module


def test_a_device_with_a_broken_hook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.backends.spirv.torch.compile import interface

    assert interface.BROKEN is internals.BROKEN
    monkeypatch.setitem(internals.BROKEN, "sample", "torch 9.9 has no torch.somewhere.gone")
    assert "torch 9.9 has no torch.somewhere.gone" in str(interface.why_unavailable())


def test_the_first_hook_reaches_those_who_import_it_later() -> None:
    internals.install()
    from torch.utils._triton import has_triton
    from triton.backends.spirv.availability import is_active as driver_is_active

    assert has_triton() or not driver_is_active()


@pytest.mark.parametrize("device", ["cpu", "cuda", "mps", "xpu"])
def test_the_code_around_kernels_of_other_devices_is_torchs(device: str) -> None:
    internals.install()
    from torch._inductor.codegen.common import get_device_op_overrides

    assert get_device_op_overrides(device).__module__.startswith(f"torch._inductor.codegen.{device}")


def test_strides_that_torch_cannot_compare_are_not_in_order() -> None:
    """A stride of a convolution of an image of any size, whose bounds torch cannot compute."""
    internals.install()
    import sympy
    from torch._dynamo.source import ConstantSource
    from torch._inductor.sizevars import SizeVarAllocator
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
    from torch.utils._sympy.functions import FloorDiv, Mod

    environment = ShapeEnv()
    size = environment.create_symbol(16, ConstantSource("size"), dynamic_dim=DimDynamic.DYNAMIC)
    half = FloorDiv(size - 1, 2)
    comparison = sympy.Eq((half + 1) * Mod(1, (half**2 + 2 * half + 1) / (half + 1)), 0)
    assert not SizeVarAllocator(environment).guard_or_false(comparison)


def test_remainders_of_even_products() -> None:
    """sympy says that (10 s + 20) (t + 2) / 18 is an integer, whatever s and t are."""
    internals.install()
    import sympy
    from torch.utils._sympy.functions import Mod as TorchMod

    Mod = sympy.Mod if next(h for h in internals.HOOKS if h.name == "remainders_of_sympy").is_due else TorchMod
    import_module("torch._inductor.ir")  # until torch 2.11 it asks sympy's own
    s, t = sympy.symbols("s t", integer=True, positive=True)
    for product in ((10 * s + 20) * (t + 2), t * (2 * s + 4), 36 * s * t, (6 * s + 18) * (t + 1)):
        for divisor in (2, 4, 6, 10, 18, 36):
            remainder = Mod(product, sympy.Integer(divisor))
            for values in ({s: 5, t: 7}, {s: 3, t: 4}):
                assert remainder.subs(values) == product.subs(values) % divisor, (product, divisor)
    assert Mod(36 * s * t, sympy.Integer(18)) == Mod((6 * s + 18) * (t + 1), sympy.Integer(6)) == 0, (
        "what is known stays"
    )


def test_what_inductor_keeps_on_disk_is_of_these_devices_and_this_version(monkeypatch: pytest.MonkeyPatch) -> None:
    internals.install()
    from torch._inductor.codecache import CacheBase
    from triton.backends.spirv import runtime
    from triton.backends.spirv.availability import is_active
    from triton.backends.spirv.torch.compile import properties

    if not is_active():
        pytest.skip("Triton's active driver is another one")

    def key() -> str:
        CacheBase.get_system.cache_clear()  # type: ignore[attr-defined]
        return str(CacheBase.get_system()["hash"])

    before = key()
    assert before == key()
    assert not any("frozenset" in text for text in properties._devices()), "its order is another in each process"
    with monkeypatch.context() as patched:
        patched.setattr(properties, "sources_digest", lambda: "another version")
        assert key() != before
    found = runtime.devices()
    with monkeypatch.context() as patched:
        patched.setattr(runtime, "devices", lambda: (replace(found[0], driver_version="another"), *found[1:]))
        assert key() != before
    with monkeypatch.context() as patched:
        patched.setattr(runtime, "devices", lambda: (*found, found[0]))
        assert key() != before
    assert before == key()


def test_kernels_for_cpu_tensors_are_compiled_for_the_active_device() -> None:
    from torch._inductor.runtime.hints import DeviceProperties
    from triton.backends.spirv.availability import is_active as driver_is_active
    from triton.runtime.driver import driver

    if not driver_is_active():
        pytest.skip("Triton's active driver is another one")
    properties = DeviceProperties.create(torch.device("cpu"))
    target = driver.active.get_current_target()
    assert (properties.type, properties.cc, properties.warp_size) == ("spirv", target.arch, target.warp_size)


def test_compiled_kernels_are_loaded_on_the_gpu_that_cuda_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES=1: the second of Vulkan's GPUs is "cuda:0", and there is no other."""
    internals.install()
    from torch._dynamo.device_interface import DeviceGuard, get_interface_for_device
    from torch._inductor.runtime.hints import DeviceProperties
    from triton.backends.spirv.runtime import context
    from triton.backends.spirv.runtime.cuda import current_gpu
    from triton.backends.spirv.torch.compile import interface

    if not interface.is_active():
        pytest.skip("Triton's active driver is another one")
    first = interface.properties_of(torch.device("cpu"))
    monkeypatch.setattr(context._chosen, "index", None)
    monkeypatch.setattr(current_gpu, "uuid_of", lambda ordinal: "second")
    monkeypatch.setattr(context, "_followed", current_gpu.FollowedGpu("spirv", lambda: ["first", "second"]))
    monkeypatch.setattr(context._followed, "_cuda", lambda: torch.cuda)
    for name, value in {"current_device": 0, "device_count": 1}.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    monkeypatch.setitem(interface._worker, "properties", {0: first, 1: replace(first, arch="the second's")})
    properties = DeviceProperties.create(torch.device("cuda", 0))
    assert (properties.type, properties.index, properties.cc) == ("spirv", 0, "the second's")
    for index in (properties.index, DeviceProperties.create(torch.device("cpu")).index):
        with DeviceGuard(get_interface_for_device("spirv"), index):
            assert context.current_device() == 1


def test_constants_have_no_attributes() -> None:
    """torch 2.11 gives a kernel's numbers so, to see which tensors the kernel writes. Triton 3.9 ended in "Function
    argument index out of range", torch took all tensors as written, and a tensor that was given twice, to be read and
    to be written, kept its old values."""
    internals.install()
    import_module("torch._higher_order_ops.triton_kernel_wrap")
    compiler = import_module("triton.compiler.compiler")
    divisible = [["tt.divisibility", 16]]
    signature = {"out": "*fp32", "x": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    attributes = {(number,): divisible for number in range(3)}
    source = compiler.ASTSource(_twice, signature, {"n": 64, "BLOCK": 64}, attributes)
    assert source.attrs == {(0,): divisible, (1,): divisible} and source.constants == {(2,): 64, (3,): 64}
