"""The demo: vector add, fused softmax, layer norm and matmul on the best Vulkan device, checked against NumPy."""

from __future__ import annotations

import argparse
import os
import sys
from itertools import chain

from examples import fused_softmax, layer_norm, matmul, vector_add
from examples.harness import report

EXAMPLES = (vector_add, fused_softmax, layer_norm, matmul)

#: What to try next: a command, and what it shows.
NEXT = (
    ("triton-spirv inspect softmax_kernel -o softmax.html", "a page: what became of each line of the softmax"),
    ("triton-spirv profile -m examples.matmul", "where the device's time goes"),
    ("triton-spirv doctor", "what this machine can do"),
)


def next_steps() -> str:
    """What to type after the demo, in the folder that it was started in."""
    lines = ["", "try next:"]
    if sys.prefix != sys.base_prefix:
        lines.append(f"  . {os.path.relpath(sys.prefix)}/bin/activate")
    width = max(len(command) for command, _ in NEXT)
    lines += [f"  {command:{width}}   # {what}" for command, what in NEXT]
    lines.append("  README.md has a kernel to start from, docs/inspecting.md what the page shows")
    return "\n".join(lines)


def main() -> int:
    """Prints the table, and what to try next; 0 when every result is right."""
    if not report(chain.from_iterable(example.cases() for example in EXAMPLES)):
        return 1
    print(next_steps())
    return 0


if __name__ == "__main__":
    argparse.ArgumentParser(prog="demo", description=__doc__).parse_args()
    sys.exit(main())
