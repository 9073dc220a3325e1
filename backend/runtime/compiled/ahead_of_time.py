"""Loading and launching kernels that `triton-spirv compile` wrote, without Triton."""

from __future__ import annotations

import operator
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...abi.block import ArgumentBlock
from ...capabilities import Capabilities
from ...cpu.host import runs
from ..arrays import array
from ..context import Context, current
from ..device_kind import DeviceInfo, MachineModule
from ..kernel import Kernel
from ..launches.launch import LaunchWrapper, argument_block, make_launcher
from ..measuring.measured import capabilities_of
from ..modules.module_info import ModuleInfo
from ..reports.launchers import ReportingLauncher
from .kernel_file import LAUNCH_VERSION, Abi, IncompatibleModule, Parameter, check_digest, object_path, read_abi

#: The driver of targets that count on nothing that only one driver has.
ANY_DRIVER = "generic"

Grid = int | Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]


@dataclass(frozen=True)
class TensorDescriptor:
    """A block-wise view of a tensor, for a parameter of a ``tensordesc`` type; as Triton's class of that name.

    ``base``: the tensor; ``shape`` and ``strides`` in elements, the last stride 1; ``padding``: "zero" or "nan".
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False


class LoadedKernel(LaunchWrapper):
    """A kernel on a device: ``kernel[grid](*arguments)``.

    It has the source's parameters, without the ones that were compiled in; arguments go by position or by name.
    What was compiled in may be passed by name, and must then be equal. NumPy arrays, DeviceBuffers and torch tensors
    are pointers. ``abi`` tells all that is known of it; ``transfers`` which way each pointer of the last launch went.
    One that is unloaded, or not referred to any more, is given back to the device once its launches are done.
    """

    def __init__(self, code: bytes, abi: Abi, context: Context, machine: bool = False) -> None:
        """``code``: SPIR-V, or the object with its ``machine`` code."""
        check_target(abi, context)
        self.abi = abi
        self._context = context
        self._unloaded = False
        self._kernel = Kernel(context, abi.kernel, code, machine=_machine_module(abi) if machine else None)
        try:
            self._check_module()
            self._launch = self._make_launcher()
        except (IncompatibleModule, ValueError):
            self._kernel.unload()
            raise
        weakref.finalize(self, self._kernel.unload).atexit = False  # where nobody calls unload()
        self._passed = [parameter for parameter in abi.parameters if parameter.type is not None]
        self._names = {parameter.name: index for index, parameter in enumerate(self._passed)}
        self._constants = {parameter.name: parameter.value for parameter in abi.parameters if parameter.type is None}

    def _check_module(self) -> None:
        abi, info = self.abi, self._kernel.info
        told = abi.kernel, tuple(abi.workgroup_size)
        if (info.entry_point, info.local_size) != told:
            raise IncompatibleModule(
                f"kernel '{abi.kernel}': its JSON says {told}, its module {(info.entry_point, info.local_size)}"
            )
        if info.invocations > self._kernel.max_invocations:
            raise IncompatibleModule(
                f"kernel '{abi.kernel}' has workgroups of {info.invocations} invocations, "
                f"{self._context.device.name} runs at most {self._kernel.max_invocations}; "
                "compile it with a smaller --num-warps"
            )

    def _make_launcher(self) -> Callable[..., None]:
        abi = self.abi
        # A pointer has the name that the user gave it: that of its parameter, where that is a tensor descriptor.
        names = [
            argument.name
            if argument.parameter is None or not argument.type.startswith("*")
            else abi.parameters[argument.parameter].name
            for argument in abi.arguments
        ]
        entries = [
            ((position,), name, argument.type)
            for position, (name, argument) in enumerate(zip(names, abi.arguments, strict=True))
        ]
        block = ArgumentBlock(tuple(argument.offset for argument in abi.arguments), abi.block_bytes)
        if block != argument_block(entries):
            raise IncompatibleModule(
                f"kernel '{abi.kernel}': the offsets of its arguments in the JSON do not follow the ABI"
            )
        launch = make_launcher(
            self._context,
            abi.kernel,
            entries,
            abi.indirect_arguments,
            {name for name, argument in zip(names, abi.arguments, strict=True) if argument.written},
        )
        if abi.reports:
            try:
                launch = ReportingLauncher(self._context, abi.kernel, launch, list(abi.reports), entries)
            except (KeyError, IndexError, TypeError) as error:
                raise IncompatibleModule(
                    f"kernel '{abi.kernel}': the reports in its JSON are damaged: {type(error).__name__}: {error}"
                ) from None
        return launch

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.abi.kernel

    def __call__(self, *_: Any, **__: Any) -> None:
        """A launch needs a grid. Raises TypeError."""
        raise TypeError(f"kernel '{self.name}' is launched on a grid: kernel[grid](…), as in kernel[(64,)](x, y, n)")

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        """A callable that launches it on a grid of 1 to 3 sizes, or on what a function of its parameters gives."""
        return partial(self.run, grid)

    def run(self, grid: Grid, /, *arguments: Any, **named: Any) -> None:
        """Launch it; returns as docs/internals/abi.md says. Raises TypeError and ValueError on arguments that do not
        fit."""
        if self._unloaded:
            raise RuntimeError(f"kernel '{self.name}' was unloaded")
        values = self._bind(arguments, named)
        if callable(grid):
            grid = grid({**self._constants, **dict(zip(self._names, values, strict=True))})
        sizes = _sizes(grid, self.name)
        passed = [
            part
            for parameter, value in zip(self._passed, values, strict=True)
            for part in self._parts(parameter, value)
        ]
        self._launch(*sizes, 0, self._kernel.handle, None, None, None, None, *passed)

    def _bind(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
        """The arguments in the order of the parameters."""
        if not named and len(arguments) == len(self._passed):
            return arguments
        values = dict(enumerate(arguments))
        for name, value in named.items():
            if name in self._constants:
                if not _equal(value, self._constants[name]):
                    raise ValueError(
                        f"kernel '{self.name}' was compiled for {name}={self._constants[name]!r}, not {value!r}"
                    )
            elif name not in self._names:
                raise TypeError(f"kernel '{self.name}' has no parameter '{name}'; it has {self._signature()}")
            elif self._names[name] in values:
                raise TypeError(f"kernel '{self.name}': '{name}' was passed twice")
            else:
                values[self._names[name]] = value
        if sorted(values) != list(range(len(self._passed))):
            raise TypeError(
                f"kernel '{self.name}' takes {self._signature()}: {len(self._passed)} arguments, not {len(values)}"
            )
        return [values[index] for index in range(len(values))]

    def _signature(self) -> str:
        return f"({', '.join(f'{parameter.name}: {parameter.type}' for parameter in self._passed)})"

    def _parts(self, parameter: Parameter, value: Any) -> Sequence[Any]:
        """What is passed in the block for a parameter."""
        assert parameter.type is not None
        if parameter.type.startswith("tensordesc"):
            return self._descriptor(parameter, value)
        if parameter.type.startswith("*"):
            value = self._pointer(parameter, value)
        if parameter.divisible_by > 1:
            self._check_divisible(parameter, value)
        return (value,)

    def _check_divisible(self, parameter: Parameter, value: Any) -> None:
        assert parameter.type is not None
        pointer = parameter.type.startswith("*") and hasattr(value, "data_ptr")
        try:
            number = operator.index(value.data_ptr() if pointer else value)
        except TypeError:
            return  # the launcher says what it should be
        if number % parameter.divisible_by:
            what = f"a tensor at {number:#x}" if pointer else str(value)
            raise ValueError(
                f"kernel '{self.name}': '{parameter.name}' was compiled for multiples of "
                f"{parameter.divisible_by}, not {what}; compile it without ':{parameter.divisible_by}'"
            )

    def _descriptor(self, parameter: Parameter, value: Any) -> Sequence[Any]:
        missing = [name for name in ("base", "shape", "strides", "block_shape") if not hasattr(value, name)]
        if missing:
            raise TypeError(
                f"kernel '{self.name}': '{parameter.name}' ({parameter.type}) is a TensorDescriptor, not "
                f"{type(value).__name__}"
            )
        assert parameter.type is not None
        block = parameter.type[parameter.type.index("[") + 1 : parameter.type.rindex("]")].replace(" ", "")
        try:
            shape, strides, sizes = (tuple(of) for of in (value.shape, value.strides, value.block_shape))
        except TypeError:
            raise TypeError(
                f"kernel '{self.name}': '{parameter.name}': shape, strides and block_shape are tuples, not "
                f"{value.shape!r}, {value.strides!r} and {value.block_shape!r}"
            ) from None
        given = ",".join(map(str, sizes))
        if given != block or not len(shape) == len(strides) == len(sizes):
            raise ValueError(
                f"kernel '{self.name}': '{parameter.name}' was compiled for blocks of [{block}], not of "
                f"[{given}] in a tensor of shape {list(shape)}"
            )
        if strides[-1] != 1:
            raise ValueError(f"kernel '{self.name}': '{parameter.name}': the last stride is {strides[-1]}, not 1")
        padding = getattr(value, "padding", "zero")
        if padding not in ("zero", "nan"):
            raise ValueError(
                f"kernel '{self.name}': '{parameter.name}': the padding is 'zero' or 'nan', not {padding!r}"
            )
        layout = (*shape, *strides)
        base = self._pointer(parameter, value.base)
        return (base, *layout, padding == "nan", bool(getattr(value, "round_f32_to_tf32", False)), *layout)

    def _pointer(self, parameter: Parameter, value: Any) -> Any:
        """A NumPy array as a kernel argument; anything else as it is."""
        if not hasattr(value, "__array_interface__") or hasattr(value, "data_ptr"):
            return value
        try:
            return array(value)
        except TypeError as error:
            raise TypeError(f"kernel '{self.name}', argument '{parameter.name}': {error}") from None

    def unload(self) -> None:
        """Give it back once its launches are done; it cannot be launched afterwards."""
        self._unloaded = True
        self._kernel.unload()

    def __repr__(self) -> str:
        return f"LoadedKernel({self.name}{self._signature()} on {self._context.device.name})"


def _machine_module(abi: Abi) -> MachineModule:
    """What the ABI says of its machine code."""
    assert abi.machine_code is not None
    info = ModuleInfo(abi.kernel, abi.workgroup_size, abi.subgroup_size)
    return MachineModule(info, abi.machine_code.scratch_bytes)


def _equal(value: Any, constant: Any) -> bool:
    """Whether an argument is the constant that was compiled in, which may be there as text."""
    if str(value) == constant:
        return True
    try:
        return bool(value == constant)
    except (TypeError, ValueError, RuntimeError):  # an array of several elements, say
        return False


def _sizes(grid: Any, name: str) -> tuple[int, int, int]:
    sizes: tuple[int, ...]
    try:
        sizes = tuple(map(operator.index, grid if hasattr(grid, "__len__") else (grid,)))
    except TypeError:
        raise TypeError(f"kernel '{name}': a grid is an integer or a tuple of 1 to 3, not {grid!r}") from None
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"kernel '{name}': a grid has 1 to 3 sizes, not {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def refusal(abi: Abi, context: Context) -> str:
    """Why the device cannot run what was compiled for the ABI's target, '' if it can."""
    has, target, device = context.capabilities, Capabilities.parse(abi.target), context.device
    problems = []
    if target.driver != has.driver and (target.driver != ANY_DRIVER or has.traits.faults.own_modules):
        problems.append(f"it was compiled for the driver {target.driver}, not {has.driver}")
    if abi.subgroup_size != has.subgroup_size:
        problems.append(f"it needs subgroups of {abi.subgroup_size}, the device has {has.subgroup_size}")
    if target.driver == has.driver and (why := _code_refusal(abi, has)):
        problems.append(why)
    lacking = [feature for feature in abi.required_features if feature not in has.features]
    if lacking:
        problems.append(f"it needs {', '.join(lacking)}, which the device lacks")
    elif "matrices" in abi.required_features and not _has_matrices(target, device):
        problems.append("its matrices are held otherwise on the device")
    if abi.shared_bytes > has.shared_bytes:
        problems.append(f"it takes {abi.shared_bytes} bytes of shared memory, the device has {has.shared_bytes}")
    if not abi.indirect_arguments and abi.block_bytes > has.push_constant_bytes:
        problems.append(
            f"its arguments take {abi.block_bytes} bytes of push constants, the device has {has.push_constant_bytes}"
        )
    return "; ".join(problems)


def _code_refusal(abi: Abi, has: Capabilities) -> str:
    """Why a processor cannot run the machine code that the ABI describes, "" if it can, or if there is none."""
    code = abi.machine_code
    if code is None:
        return ""
    if code.launch != LAUNCH_VERSION:
        return f"its machine code is called in version {code.launch}, this runtime knows version {LAUNCH_VERSION}"
    if not runs(code.processor, has.processor):
        return f"its machine code is for {code.processor}, and this processor is {has.processor}"
    return ""


def check_target(abi: Abi, context: Context) -> None:
    """Raises IncompatibleModule if the device cannot run what was compiled for the ABI's target."""
    if problems := refusal(abi, context):
        raise IncompatibleModule(
            f"kernel '{abi.kernel}' cannot run on {context.device.name}: {problems}; compile "
            "it with `triton-spirv compile --target device` there, or for that device's profile"
        )


def _has_matrices(target: Capabilities, device: DeviceInfo) -> bool:
    has = capabilities_of(device)
    return has is not None and set(target.matrices) <= set(has.matrices)


def load(path: str | os.PathLike[str], context: Context | None = None) -> LoadedKernel:
    """The kernel in a module that `triton-spirv compile` wrote, with its JSON next to it.

    ``context``: of the device that it is to run on; None: the current one. Raises FileNotFoundError, IncompatibleModule
    where the files do not belong together or do not suit the device, KernelRejected and DeviceUnavailable. The path may
    also be that of the machine code of a kernel for a processor, a .o.
    """
    module = Path(path)
    if not module.is_file():
        raise FileNotFoundError(f"there is no module {module}; `triton-spirv compile` writes one")
    code = module.read_bytes()
    abi = read_abi(module, code)
    there = object_path(module)
    # Beside a module for a processor lies its machine code. Without it Triton makes the code.
    if module != there and abi.machine_code is not None and there.is_file():
        code = there.read_bytes()
        check_digest(abi, there, code)
        module = there
    return LoadedKernel(code, abi, context or current(), machine=module == there)
