"""The demo: vector add, fused softmax, layer norm and matmul on the best Vulkan device, checked against NumPy."""

from __future__ import annotations

import argparse
import sys
from itertools import chain

from examples import fused_softmax, layer_norm, matmul, vector_add
from examples.harness import report

EXAMPLES = (vector_add, fused_softmax, layer_norm, matmul)


def main() -> int:
    """Prints the table; 0 when every result is right."""
    return 0 if report(chain.from_iterable(example.cases() for example in EXAMPLES)) else 1


if __name__ == "__main__":
    argparse.ArgumentParser(prog="demo", description=__doc__).parse_args()
    sys.exit(main())
