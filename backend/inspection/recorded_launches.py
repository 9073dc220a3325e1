"""What each launch of a script got and left in its arguments, so that two runs of the script can be compared launch by
launch: as kernels are compiled, and as Triton's interpreter runs them.

Numbers that torch, NumPy and Python draw are those of seed 0, unless the script seeds them, and memory that nobody has
written is filled, so that two runs do the same.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..autoload.after_import import after_import

#: So many launches, and bytes of their arguments, are recorded.
_MOST_LAUNCHES, _MOST_BYTES = 1000, 1 << 28
#: How far results may be apart, of their own value and this part of the largest: the interpreter rounds elsewhere.
_NEAR, _OF_LARGEST = 2e-2, 0.1
_KERNELS, _OWN = "kernels.json", "triton."


@dataclass(frozen=True)
class DifferentLaunch:
    """A launch whose arguments were the same in two runs and whose results are not. ``place``: FILE:LINE of the first
    store to the argument, else of the kernel. ``usual``, ``interpreted``: the element at ``index``; ``count``: how many
    elements differ. ``depends``: why the results may depend on the order of programs; empty if they may not."""

    kernel: str
    place: str
    argument: str
    index: int
    usual: Any
    interpreted: Any
    count: int
    depends: str
    facts: dict[str, Any]

    def __str__(self) -> str:
        return (
            f"{self.place}: kernel '{self.kernel}': {self.argument}[{self.index}] is {self.usual:.6g} as compiled and "
            f"{self.interpreted:.6g} under the interpreter; {self.count} such elements"
        )


class LaunchRecorder:
    """Records the launches of this process into ``folder``, until its end."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._bytes, self._tuning = folder, 0, False
        self._launches: list[dict[str, Any]] = []
        self._places: dict[Any, dict[str, Any]] = {}

    def start(self) -> None:
        """Records from now on."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        _seed()
        for kind in (JITFunction, InterpretedFunction):
            kind.run = self._recorded(kind.run)
        bench = Autotuner._bench

        def untold(*args: Any, **keywords: Any) -> Any:
            self._tuning = True
            try:
                return bench(*args, **keywords)
            finally:
                self._tuning = False

        Autotuner._bench = untold

    def write(self) -> None:
        """Writes what the launches were of."""
        (self._folder / _KERNELS).write_text(json.dumps(self._launches, default=str), encoding="utf-8")

    def _recorded(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def launch(function: Any, *args: Any, **keywords: Any) -> Any:
            own = function.fn.__module__.startswith(_OWN)
            if own or keywords.get("warmup") or self._tuning or self._bytes > _MOST_BYTES:
                return run(function, *args, **keywords)
            named = {**dict(zip(function.arg_names, args, strict=False)), **keywords}
            before = _arrays(named)
            number = len(self._launches)
            code = function.fn.__code__
            told = {
                "kernel": function.fn.__name__,
                "place": f"{Path(code.co_filename).name}:{code.co_firstlineno}",
                "arguments": {name: _described(value) for name, value in named.items() if name in function.arg_names},
            }
            self._launches.append(told)
            compiled = run(function, *args, **keywords)
            after = _arrays(named)
            self._bytes += sum(one.nbytes for one in (*before.values(), *after.values()))
            if self._bytes <= _MOST_BYTES and number < _MOST_LAUNCHES:
                import numpy

                numpy.savez(
                    self._folder / f"{number}.npz",
                    **{f"before {name}": one for name, one in before.items()},
                    **{f"after {name}": one for name, one in after.items()},
                )
            if hasattr(compiled, "asm"):
                told |= self._of_code(compiled)
            return compiled

        return launch

    def _of_code(self, compiled: Any) -> dict[str, Any]:
        """What a kernel's TTGIR tells: where arguments are stored to, and whether its results depend on an order."""
        from ..launching.values.skipped import why_not, writing_place
        from ..ttgir.parser import parse_module

        if compiled.hash not in self._places:
            found: dict[str, Any] = {"ttir": str(compiled.asm.get("ttir", "")), "stores": {}, "depends": ""}
            module = parse_module(compiled.asm["ttgir"], f"{compiled.name}.ttgir")
            found["depends"] = why_not(module)
            passed = [name for name, type_ in compiled.src.signature.items() if type_ != "constexpr"]
            for number, name in enumerate(passed):
                if place := writing_place(module, number):
                    found["stores"][name] = f"{Path(place[0]).name}:{place[1]}"
            self._places[compiled.hash] = found
        return self._places[compiled.hash]


class Recording:
    """What a LaunchRecorder has written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / _KERNELS
        self.launches: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []

    def arrays(self, number: int, when: str) -> dict[str, Any]:
        """The arguments of a launch, ``when``: "before" it or "after" it; none if they were not recorded."""
        import numpy

        path = self._folder / f"{number}.npz"
        if not path.exists():
            return {}
        with numpy.load(path) as stored:
            return {key.partition(" ")[2]: stored[key] for key in stored.files if key.startswith(when)}

    def unwritten(self) -> str:
        """The first memory that nobody had written before a launch with a store to it, and of which a part is still so
        after the last launch that got it; empty if there is none. A sum with such memory is so, too."""
        last = {
            one["address"]: (number, name)
            for number, told in enumerate(self.launches)
            for name, one in told["arguments"].items()
            if isinstance(one, dict) and one.get("address")
        }
        for number, told in enumerate(self.launches):
            for name, before in self.arrays(number, "before").items():
                line = told.get("stores", {}).get(name)
                end = last.get((told["arguments"].get(name) or {}).get("address"))
                after = self.arrays(end[0], "after").get(end[1]) if end and line else None
                if after is None or after.shape != before.shape or not before.size or not _filled(before).all():
                    continue
                left = _filled(after)
                if left.any():
                    return (
                        f"{line}: kernel '{told['kernel']}' leaves {left.sum()} of {before.size} elements of '{name}' "
                        f"as nobody has written them, the first at {int(left.argmax())}"
                    )
        return ""


def first_difference(usual: Recording, other: Recording) -> DifferentLaunch | None | str:
    """The first launch with the same arguments and other results; a string that says why none can be told; None if
    there is none."""
    for number, (mine, theirs) in enumerate(zip(usual.launches, other.launches, strict=False)):
        if mine["kernel"] != theirs["kernel"]:
            return f"the script launches '{mine['kernel']}' in one run, and '{theirs['kernel']}' there in the other"
        for name, *_ in _differing(usual.arrays(number, "before"), other.arrays(number, "before")):
            return f"argument '{name}' of kernel '{mine['kernel']}' ({mine['place']}) is another one in each run"
        for name, index, x, y, count in _differing(usual.arrays(number, "after"), other.arrays(number, "after")):
            place = mine.get("stores", {}).get(name, mine["place"])
            facts = {"launch": number, "arguments": mine["arguments"], "ttir": mine.get("ttir", "")}
            return DifferentLaunch(mine["kernel"], place, name, index, x, y, count, mine.get("depends", ""), facts)
    return None


def _differing(mine: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, int, Any, Any, int]]:
    """Arguments that differ by more than rounding: name, index, both elements, how many."""
    import numpy

    from ..launching.values.differences import apart, largest

    for name in mine.keys() & other.keys():
        x, y = mine[name], other[name]
        if x.shape != y.shape or x.dtype != y.dtype or numpy.array_equal(x, y):
            continue
        unequal = x != y
        if x.dtype.kind == "f":
            unequal &= apart(x, y, _NEAR, largest(y), _OF_LARGEST)
        places = numpy.flatnonzero(unequal)
        if len(places):
            yield name, int(places[0]), x.flat[places[0]].item(), y.flat[places[0]].item(), len(places)


def _filled(values: Any) -> Any:
    """Which elements are what torch fills memory with that nobody has written."""
    import numpy

    if values.dtype.kind == "f":
        return numpy.isnan(values)
    return values == numpy.iinfo(values.dtype).max if values.dtype.kind in "iu" else numpy.zeros(values.shape, bool)


def _arrays(named: dict[str, Any]) -> dict[str, Any]:
    """Name of a tensor among the arguments → its values, floats in fp64."""
    found = {}
    for name, value in named.items():
        for path, one in _leaves(name, value):
            array = _array(one)
            if array is not None:
                found[path] = array
    return found


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for index, one in enumerate(value):
            yield from _leaves(f"{name}.{index}", one)
    else:
        yield name, getattr(value, "base", value)  # of a descriptor, or a tensor of another type


def _array(value: Any) -> Any:
    """A copy of an array's values; None of what is none."""
    import numpy

    if hasattr(value, "untyped_storage") and hasattr(value, "is_floating_point"):
        value = value.detach().cpu().clone()
        return (value.double() if value.is_floating_point() else value).numpy()
    value = value.to_numpy() if hasattr(value, "to_numpy") else getattr(value, "array", value)
    if not isinstance(value, numpy.ndarray):
        return None
    return value.astype(numpy.float64) if value.dtype.kind == "f" else value.copy()


def _described(value: Any) -> Any:
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    told: dict[str, Any] = {key: str(getattr(value, key)) for key in ("dtype", "shape") if hasattr(value, key)}
    if hasattr(value, "data_ptr"):
        told["address"] = value.data_ptr()
    return told or str(value)


def _seed() -> None:
    random.seed(0)
    os.environ.setdefault("TORCHINDUCTOR_DETERMINISTIC", "1")  # Inductor reads it when it is imported
    after_import("numpy", lambda numpy: numpy.random.seed(0))
    after_import("torch", _seed_torch)  # not before the script does: it may set what torch reads then


def _seed_torch(torch: Any) -> None:
    torch.manual_seed(0)
    # Memory that nobody has written is filled. use_deterministic_algorithms would import Inductor, which takes 2 s.
    torch.set_deterministic_debug_mode("warn")
