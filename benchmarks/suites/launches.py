"""Which kernels a test launches, and which of these launches TRITON_SPIRV_CHECK_VALUES compares."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

#: Where the kernels of the device's own operations are.
_OWN = "triton.backends.spirv."
#: How much of a digest is kept.
_DIGITS = 12


def name_of(function: Any) -> str:
    """Where a kernel is, and what it is called; empty for one of the device's own operations. A kernel of torch's
    compiler that another process compiled has no function."""
    of = getattr(function, "fn", None)
    place, name = getattr(of, "__module__", None) or "", getattr(of, "__qualname__", "of torch's compiler")
    return "" if place.startswith(_OWN) else f"{place}.{name}"


class Launches:
    """How often code launches a kernel that is not one of this device's own operations (``count``), and the names of
    these ``kernels``, without those in functions that torch compiles. The counter stays in Triton."""

    def __init__(self) -> None:
        from triton.runtime.jit import JITFunction

        run = JITFunction.run
        self.begin()

        def counted(function: Any, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
            launched = run(function, *args, grid=grid, warmup=warmup, **keywords)
            if not warmup and (name := name_of(function)):
                self.count += 1
                self.kernels.add(name)
            return launched

        JITFunction.run = counted

    def begin(self) -> None:
        """Forgets what was launched."""
        self.count, self.kernels = 0, set[str]()


class Comparisons:
    """Has TRITON_SPIRV_CHECK_VALUES compare what was not compared before: not the device's own operations, and of
    launches that differ in the values of their tensors alone the first. ``known``: digests of launches that were.
    ``compared``: kernels by name, and the digests of their launches that were, or are equal to one of these;
    ``not_compared``: kernels, and why they are not."""

    def __init__(self, known: Iterable[str]) -> None:
        from triton.backends.spirv.abi.launch_arguments import FIRST_ARGUMENT, LaunchArgument
        from triton.backends.spirv.launching.values import values_launcher as values

        self.known = set(known)
        self.begin()
        launcher_type, comparing = values.ValuesLauncher, values._COMPARING
        call, say = launcher_type.__call__, launcher_type._say

        def first(launcher: Any, *args: Any) -> None:
            name = name_of(getattr(launcher._source, "fn", None))
            if comparing.get():
                return call(launcher, *args)
            digest = f"{launcher._metadata.hash} {args[: LaunchArgument.STREAM]} {_forms(args[FIRST_ARGUMENT:], {})}"
            digest = hashlib.sha256(digest.encode()).hexdigest()[:_DIGITS]
            is_new, before = bool(name) and digest not in self.known, values.compared_here
            self._said = ""
            # What is not compared is launched from a frame of Triton's all the same (as_cuda(types=True)).
            token = comparing.set(not is_new)
            try:
                call(launcher, *args)
            finally:
                comparing.reset(token)
            if self._said:
                self.not_compared[name] = self._said
            elif name and (digest in self.known or values.compared_here > before):
                self.known.add(digest)
                self.compared[name].add(digest)

        def heard(launcher: Any, reason: str) -> None:
            self._said = reason
            say(launcher, reason)

        launcher_type.__call__, launcher_type._say = first, heard  # type: ignore[method-assign]

    def begin(self) -> None:
        """Forgets which kernels were launched, not which launches are known."""
        self.compared: dict[str, set[str]] = defaultdict(set)
        self.not_compared: dict[str, str] = {}


def _forms(argument: Any, seen: dict[int, int]) -> str:
    """What a launch's arguments are but for their tensors' values; tensors that begin at the same address are told from
    others by those ``seen`` before."""
    if isinstance(argument, tuple | list):
        return f"({','.join(_forms(one, seen) for one in argument)})"
    if hasattr(argument, "data_ptr"):
        place = seen.setdefault(argument.data_ptr(), len(seen))
        shape, strides = (getattr(argument, name, None) for name in ("shape", "stride"))
        return f"{getattr(argument, 'dtype', '')}{shape}{strides() if callable(strides) else strides}@{place}"
    if hasattr(argument, "base"):  # a tensor descriptor
        return _forms((argument.base, *map(str, (argument.shape, argument.strides, argument.block_shape))), seen)
    return repr(argument) if isinstance(argument, bool | int | float | str | None) else type(argument).__name__
