"""What Inductor generates for the device, launches, times and keeps on disk."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from ....autoload.placeholder import NAME


def code_generation(module: Any) -> None:
    from ..generated import DeviceCode, NoCppWrapper
    from ..interface import why_unavailable

    module.get_device_op_overrides("cpu")  # until torch 2.12 other devices enter a list that is empty, or not at all
    overrides = type("SPIRVDeviceOpOverrides", (DeviceCode, module.DeviceOpOverrides), {})
    module.register_device_op_overrides(NAME, overrides())

    original = module.init_backend_registration

    @functools.cache
    def init_backend_registration() -> None:
        from torch._inductor.codegen.triton import TritonScheduling
        from torch._inductor.codegen.wrapper import PythonWrapperCodegen

        class SPIRVScheduling(TritonScheduling):
            def __init__(self, scheduler: Any) -> None:
                reason = why_unavailable()
                if reason is not None:
                    raise RuntimeError(reason)
                super().__init__(scheduler)

        module.register_backend_for_device(NAME, SPIRVScheduling, PythonWrapperCodegen, NoCppWrapper)
        original()

    module.init_backend_registration = init_backend_registration


def benchmarker(module: Any) -> None:
    """Functions on the device are timed by its timestamps, and so are kernels that take tensors of another device.
    Those are timed for ``spirv`` by name, which torch may not know beside another accelerator."""
    from ..generated import bench

    original = module.Benchmarker.benchmark

    def benchmark(
        self: Any, fn: Any, fn_args: Any = None, fn_kwargs: Any = None, device: Any = None, **options: Any
    ) -> Any:
        args, named = fn_args or (), fn_kwargs or {}
        place = self.infer_device(*args, **named) if device is None else device
        if str(place).partition(":")[0] != NAME:
            return original(self, fn, fn_args, fn_kwargs, device, **options)
        return bench(self, lambda: fn(*args, **named), **options)

    module.Benchmarker.benchmark = benchmark


def launchers(module: Any) -> None:
    """Inductor's kernels do not wait to learn of a failed assertion, such as an index out of bounds, or of a loop that
    the driver cut short: copies to the host and synchronize() say so. The number of spilled registers, which Inductor
    compares with a limit, is none where Vulkan does not tell it."""
    original = module.TritonCompileResult.make_launcher

    def make_launcher(self: Any) -> Any:
        from ....launching.launcher import reports_later

        with reports_later():
            launcher = original(self)
        if launcher.n_spills is None:
            launcher.n_spills = 0
        return launcher

    module.TritonCompileResult.make_launcher = make_launcher


def strides(module: Any) -> None:
    """Whether strides are in order may be unknown: torch 2.13 raises ValueRangeError over divisions by sizes, which
    convolutions of dynamic images have."""
    original = module.SizeVarAllocator.guard_or_false

    def guard_or_false(self: Any, left: Any) -> Any:
        from torch.utils._sympy.value_ranges import ValueRangeError

        try:
            return original(self, left)
        except ValueRangeError:
            return False

    module.SizeVarAllocator.guard_or_false = guard_or_false


def remainders(module: Any) -> None:
    """Reductions that are cut into parts mask what lies past their end, unless the parts fit. sympy 1.14 says that even
    products are divisible by 6, 10, 18, …, and so does torch 2.13, although its quotients do not
    (``FloorDiv.eval``): such sums were wrong with dynamic sizes."""
    _doubt(module.Mod)


def written_tensors(_: Any) -> None:
    """torch compiles a kernel to see which tensors it writes. Up to 2.11 at least, it names numbers as constants that
    have attributes, too, which Triton 3.9 refuses: torch then took all tensors as written, and copied the second one
    over what was written to the first where both are the same."""
    compiler = import_module("triton.compiler.compiler")
    original = compiler.ASTSource.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.attrs = {path: value for path, value in self.attrs.items() if path not in self.constants}

    compiler.ASTSource.__init__ = init


def remainders_of_sympy(module: Any) -> None:
    """Does what remainders() does: before torch 2.12 such sums ask sympy's own remainder."""
    import sympy

    _doubt(sympy.Mod)


def _doubt(remainder: Any) -> None:
    """Makes a class of remainders not be 0 where that is not so for sure."""
    import sympy

    original = remainder.eval.__func__

    def eval_(cls: Any, p: Any, q: Any) -> Any:
        found = original(cls, p, q)
        doubtful = found == 0 and not p.is_number and q.is_Integer and int(q) & (int(q) - 1)
        return None if doubtful and not (sympy.expand(p) / q).is_integer else found

    remainder.eval = classmethod(eval_)


def caches(module: Any) -> None:
    """What Inductor keeps on disk was generated for the devices here, by this version: without CUDA its key says
    nothing of either."""
    original = module.CacheBase.get_system

    @module.clear_on_fresh_cache
    @functools.cache
    def get_system() -> Any:
        from ....availability import is_active
        from ..properties import cache_key

        found = original()
        return {**found, "hash": cache_key(found["hash"])} if is_active() else found

    module.CacheBase.get_system = staticmethod(get_system)
