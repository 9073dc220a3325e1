"""A figure that stands on several pages is the same on each: docs/speed.md has it, or docs/internals/performance.md."""

import re
from pathlib import Path

import pytest

from benchmarks.library_model_shapes import MODELS

ROOT = Path(__file__).parents[2]
SPEED, NOTEBOOK = "docs/speed.md", "docs/internals/performance.md"


def text_of(page: str) -> str:
    """A page with its lines joined, so that a sentence is one line."""
    return re.sub(r"\n(?=[^\n#|-])", " ", (ROOT / page).read_text(encoding="utf-8"))


def table(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the tables below a heading: the first cell → the others."""
    part = text_of(page).split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    return {name: cells for name, *cells in rows if cells and "---" not in name}


def span(*cells: str) -> str:
    """The least and the greatest of all figures in cells, as text."""
    figures = sorted((found for cell in cells for found in re.findall(r"\d+\.\d+", cell)), key=float)
    return f"{figures[0]} to {figures[-1]}"


_KERNELS = {name: cells[0] for name, cells in table(SPEED, "Kernels on an NVIDIA H100").items()}
_TRAINED = [cell for name, row in table(SPEED, "torch on an NVIDIA H100").items() if "," in name for cell in row]
_CPU = {name: span(*cells) for name, cells in table(SPEED, "On a CPU").items() if name in ("matmul, fp32", "attention")}
_TRAINED_ON_CPU = re.search(r"Transformer blocks in fp32 train at (\S+ to \S+) of", text_of(SPEED))
_FP32 = span(*(_KERNELS[name] for name in ("vector add, fp32", "softmax, fp32", "layer norm, fp32", "matmul, fp32")))
_HALF = span(_KERNELS["matmul, fp16"], _KERNELS["matmul, bf16"])


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("README.md", f"On an H100, fp32 kernels run at {_FP32} of the speed of Triton's CUDA backend"),
        ("README.md", f"half-precision matmul at {_HALF}; models"),
        ("README.md", f"torch train at {span(*_TRAINED)} of their speed on CUDA"),
        ("README.md", f"| vector add, softmax, layer norm and matmul in fp32 on an H100 | {_FP32} |"),
        ("README.md", f"| matmul in fp16 and bf16 on an H100 | {_HALF} |"),
        ("README.md", f"| attention in fp16 on an H100 | {_KERNELS['attention, fp16']} |"),
        ("README.md", f"| training models of torch on an H100 | {span(*_TRAINED)} |"),
        ("README.md", f"matmul in fp32; attention | {_CPU['matmul, fp32']}; {_CPU['attention']} |"),
        ("backend/torch/ops/launching.py", f'"CPU": "{_TRAINED_ON_CPU and _TRAINED_ON_CPU[1]}"'),
        ("CHANGELOG.md", f"On an H100 models train at {span(*_TRAINED)} of the speed of torch on CUDA"),
        ("CHANGELOG.md", f"{len(MODELS)} small models of transformers"),
        ("docs/internals/torch-models.md", f"Of {len(MODELS)} models, "),
    ],
)
def test_a_figure_is_that_of_the_page_of_results(page: str, sentence: str) -> None:
    assert sentence in text_of(page)


#: A row of the page of results → the beginnings of the notebook's rows that it sums up.
_NOTEBOOK_ROWS = {
    "vector add, fp32": ["vector add"],
    "softmax, fp32": ["softmax"],
    "layer norm, fp32": ["layer norm"],
    "matmul, fp32": ["matmul, 4096³ fp32"],
    "matmul, fp16": ["matmul, 4096³ fp16", "matmul, 8192³ fp16"],
    "matmul, bf16": ["matmul, 4096³ bf16"],
    "matmul, int8": ["matmul, 4096³ int8"],
    "matmul, tf32": ["matmul, 4096³ tf32"],
    "attention, fp16": ["attention"],
    "gradients of attention, fp16": ["gradients of attention"],
    "asynchronous launch": ["asynchronous launch"],
    "synchronous launch": ["synchronous launch"],
}


@pytest.mark.parametrize("row", [name for name in _KERNELS if name != "kernel"])
def test_a_kernels_result_is_that_of_the_notebook(row: str) -> None:
    part = (
        text_of(NOTEBOOK)
        .split("## NVIDIA H100, compared with upstream's CUDA backend\n", 1)[1]
        .split("\n Each row but", 1)[0]
    )
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| ")]
    found = [cells[3] for cells in rows for begin in _NOTEBOOK_ROWS[row] if cells[0].strip().startswith(begin)]
    figures = {float(figure) for cell in found for figure in re.findall(r"\d+\.\d+", cell)}
    said = [float(figure) for figure in re.findall(r"\d+\.\d+", _KERNELS[row])]
    assert (min(said), max(said)) == (min(figures), max(figures))


@pytest.mark.parametrize(
    ("row", "cells"), [(name, row) for name, row in table(SPEED, "torch on an NVIDIA H100").items() if "," in name]
)
def test_a_models_result_is_that_of_the_notebook(row: str, cells: list[str]) -> None:
    notebook = (
        text_of(NOTEBOOK)
        .split("## Training on an NVIDIA H100", 1)[1]
        .split("`python -m benchmarks.memory_bound`", 1)[0]
    )
    for figure in filter(None, cells):
        assert re.search(rf"\| {figure} \|", notebook), f"{row}: {figure}"
