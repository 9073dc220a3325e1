"""A tiny kernel, compiled and run in its own process: ``python -m triton.backends.spirv.inspection.trial``.

Prints JSON: the device's name, seconds to the first result, seconds of a second launch. A driver that ends the process,
or never answers, ends or delays only this one.
"""

from __future__ import annotations

import json
import time

import triton
import triton.language as tl

COUNT, BLOCK = 1000, 256


@triton.jit
def add_one(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out[i] = x[i] + 1, int32."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def main() -> None:
    """Run it, and compare every element."""
    import numpy

    from ..runtime import context
    from ..runtime.buffer import from_numpy, zeros

    x, out = from_numpy(numpy.arange(COUNT + 24, dtype=numpy.int32)), zeros(COUNT + 24, "int32")
    times = []
    for _ in range(2):
        start = time.perf_counter()
        add_one[(triton.cdiv(COUNT, BLOCK),)](x, out, COUNT, BLOCK=BLOCK)
        result = out.to_numpy()
        times.append(time.perf_counter() - start)
    expected = numpy.where(numpy.arange(COUNT + 24) < COUNT, numpy.arange(COUNT + 24) + 1, 0)
    wrong = int((result != expected).sum())
    print(json.dumps({"device": context.current().device.name, "wrong": wrong, "first": times[0], "second": times[1]}))


if __name__ == "__main__":
    main()
