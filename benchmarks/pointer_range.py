"""What 32-bit pointer offsets are worth: the examples compiled with them and with 64-bit addresses.

Both variants run in this process, in turns. Prints for each example the instructions of the SPIR-V modules, how many
of them work on 64-bit integers, and the median time of a call.

    python -m benchmarks.pointer_range [--seconds S] [EXAMPLE ...]
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from typing import Any

from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.decode import instruction_words
from triton.runtime import driver
from triton.runtime.jit import JITFunction

EXAMPLES = ("vector_add", "fused_softmax", "layer_norm", "matmul", "flash_attention")

#: Instructions that take and give integers of one width.
INTEGER = frozenset({op.IAdd, op.ISub, op.IMul, op.ShiftLeftLogical, op.SConvert, op.UConvert, op.Phi})


def counts(spirv: bytes) -> tuple[int, int]:
    """(instructions of functions, those whose integer result has 64 bits)."""
    wide = -1
    total = wide_total = 0
    inside = False
    for opcode, operands in instruction_words(spirv):
        if opcode == op.TypeInt and operands[1] == 64:
            wide = operands[0]
        inside = inside or opcode == op.Function
        total += inside
        wide_total += inside and opcode in INTEGER and operands[0] == wide
    return total, wide_total


class Variants:
    """Launches with or without the property, and the modules that were launched."""

    def __init__(self) -> None:
        self._usual = SPIRVBackend(driver.active.get_current_target()).get_tensor_specialization
        self.modules: set[bytes] = set()
        run = JITFunction.run

        def recording(function: Any, *args: Any, **kwargs: Any) -> Any:
            kernel = run(function, *args, **kwargs)
            self.modules.add(kernel.asm["spv"])
            return kernel

        JITFunction.run = recording

    def _without_range(self, tensor: Any, align: bool = False) -> str:
        return self._usual(tensor, align=align).replace("S", "")

    def use(self, narrow: bool) -> None:
        """Compile for and launch the variant from now on."""
        specialization = self._usual if narrow else self._without_range
        SPIRVBackend.get_tensor_specialization = staticmethod(specialization)  # type: ignore[method-assign]
        self.modules = set()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("examples", nargs="*", default=EXAMPLES)
    parser.add_argument("--seconds", type=float, default=2.0, help="time a case is measured for")
    options = parser.parse_args()
    variants = Variants()
    print(f"{'example':34} {'instructions':>15} {'64-bit integer':>15} {'median µs':>21}  ratio")
    for name in options.examples:
        for case in importlib.import_module(f"examples.{name}").cases():
            sizes = []
            for narrow in (False, True):
                variants.use(narrow)
                case.run()
                sizes.append([sum(column) for column in zip(*map(counts, variants.modules), strict=True)])
            times: tuple[list[float], list[float]] = [], []
            end = time.perf_counter() + options.seconds
            while time.perf_counter() < end or len(times[1]) < 5:
                for narrow in (False, True):
                    variants.use(narrow)
                    start = time.perf_counter()
                    case.run()
                    times[narrow].append(time.perf_counter() - start)
            wide, narrow_time = (statistics.median(values) * 1e6 for values in times)
            print(
                f"{case.kernel + ' ' + case.size:34} {sizes[0][0]:6} → {sizes[1][0]:6} {sizes[0][1]:6} → "
                f"{sizes[1][1]:6} {wide:9.0f} → {narrow_time:9.0f}  {narrow_time / wide:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
