"""Which tests of which libraries are run, and which of their failures are not this project's.

A row of ``known`` is an expression that ``test: message`` is searched for, with the reason. Wheels carry no tests; of
the libraries' source distributions these do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """``files``: patterns of the test files in the source distribution. ``without``: files that test no kernel, with
    the reason. ``replaced``: text to replace in each file, so that tests that ask for CUDA tensors get CPU tensors."""

    package: str
    version: str
    files: str
    without: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    known: tuple[tuple[str, str], ...] = ()


SUITES = (
    Suite(
        "liger-kernel",
        "0.8.5",
        "test/transformers/test_*.py",
        # how models of transformers are patched, which needs these models, and torch's own flex attention
        without=("auto_model", "monkey_patch", "trainer_integration", "transformers", "flex_attention", "utils"),
        known=(
            ("variable 'NUM_SMS'", "it counts the multiprocessors of GPUs only"),
            ("'torch.cpu' has no attribute 'get_device_properties'", "the file asks for the properties of a GPU"),
            (r"AssertionError: +\(mlp\.py:", "it asserts that its tensors are CUDA's"),
            ("test_group_norm.* grads? different", "PyTorch's gradient on the CPU is further from float64"),
            (r"test_liger_layer_norm\[dtype1", "PyTorch's gradient in bfloat16 on the CPU is further from float64"),
        ),
    ),
    Suite("conch-triton-kernels", "1.3", "tests/*_test.py"),
    Suite(
        "cut-cross-entropy",
        "25.1.1",
        "tests/test_*.py",
        known=(
            (r"test_indexed_dot.*-5e-07\]", "5e-7 is less than sums of their size, in another order, may differ by"),
        ),
        replaced=(("not torch.cuda.is_available()", "False"), ('device="cuda"', 'device="cpu"')),
    ),
)
