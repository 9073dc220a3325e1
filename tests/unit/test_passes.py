"""An upstream pass that is left out of a pipeline would have changed nothing."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv import cli, passes

from benchmarks.example_kernels import KERNELS
from tests.surface.compiling import compile_case
from tests.surface.operation_kernels import CASES
from tests.unit.ahead_of_time.words import arguments

PIPELINES = (passes.TTIR, passes.encodings(4, 8, 1), passes.LAYOUTS, passes.TTGIR, passes.LAST, passes.GLUON)
#: What makes every pass of every pipeline run.
EVERYTHING = frozenset().union(*(row.only_on for pipeline in PIPELINES for row in pipeline))

#: What upstream's pass says of a module that has no global scratch memory, and how attributes are put together.
NO_SCRATCH = re.compile(r"ttg\.(global|profile)_scratch_memory_(size = 0|alignment = 1) : i32|attributes|[{}, ]")


def _after(text: str, context: Any, pipeline: passes.Pipeline, names: frozenset[str]) -> str:
    module = passes.parse(text, context)
    RUN(module, pipeline, "compared", names)
    return NO_SCRATCH.sub("", module.str_nodebug())


RUN = passes.run


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every pipeline that runs is compared with the same one and all of its passes; the pipelines' names."""
    found: list[str] = []

    def run(
        module: Any, pipeline: passes.Pipeline, name: str, names: frozenset[str], without: tuple[str, ...] = ()
    ) -> None:
        text = str(module)
        context = module.context
        assert _after(text, context, pipeline, names) == _after(text, context, pipeline, EVERYTHING)
        found.append(name)
        RUN(module, pipeline, name, names, without)

    monkeypatch.setattr(passes, "run", run)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_of_an_operation(case: Any, compared: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        compile_case(case)
    assert "make_ttgir" in compared


#: One of each example's kernels, and on matrix units two that have dots.
EXAMPLES = [(kernel, "lavapipe") for kernel in {kernel[:2]: kernel for kernel in KERNELS}.values()]
EXAMPLES += [(kernel, "nvidia-hopper") for kernel, _ in EXAMPLES if kernel[1] in ("matmul_kernel", "forward_kernel")]


@pytest.mark.parametrize(
    ("kernel", "profile"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else value[1]
)
def test_of_an_example(kernel: tuple[str, str, str], profile: str, compared: list[str], tmp_path: Path) -> None:
    assert not cli.main(arguments(*kernel, profile, tmp_path / "kernel.spv"))
    assert "make_ttgir" in compared
