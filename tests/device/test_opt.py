"""``triton-spirv opt``: TTIR and TTGIR after all that the compiler does, without some of it, and after one pass."""

from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv import cli

from tests.unit.cpu.kernels import compiled


@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % n, mask=i < n), mask=i < n)


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the TTIR and the TTGIR of a kernel for a CPU."""
    folder = tmp_path_factory.mktemp("stages")
    x = np.ones(64, np.int32)
    found = compiled("cpu-x86-64-v3", scaled, [x, x, 64], {"BLOCK": 64}, divisible=True)
    for stage in ("ttir", "ttgir"):
        (folder / f"k.{stage}").write_text(found.asm[stage])
    return folder


def _printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["opt", *map(str, arguments), "--target", "cpu-x86-64-v3"]) == 0
    return capsys.readouterr().out


def test_all_that_the_compiler_does(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stage in ("ttir", "ttgir"):
        text = _printed(capsys, stages / f"k.{stage}")
        assert "alike" in text and "ttg.num-warps" in text, stage


def test_without_one_item(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = _printed(capsys, stages / "k.ttgir", "--without", "divide once for all lanes")
    assert "alike" not in text and "arith.remsi" in text


def test_one_item_alone(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = _printed(capsys, stages / "k.ttgir", "--only", "canonicalizer")
    assert "alike" not in before and "arith.remsi" in before
    assert "alike" in _printed(capsys, stages / "k.ttgir", "--only", "divide once for all lanes")


def test_the_items_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _printed(capsys, "--list").splitlines()
    assert lines[0] == "canonicalizer: upstream's pass"
    assert lines[-1] == "LLVM's optimisation: the machine code's"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "coalesse"], "'coalesse' is no pass, rewrite or analysis that can be left out; did you mean"),
        (["--only", "value numbering"], "'value numbering' changes no TTGIR"),
        (["--target", "nothing"], "there is no device profile 'nothing'"),
    ],
)
def test_what_cannot_be_done(
    stages: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["opt", str(stages / "k.ttgir"), *arguments]) == 1
    assert f"triton-spirv: {message}" in capsys.readouterr().err


def test_what_is_no_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["opt"]) == 1 and "name the FILE" in capsys.readouterr().err
    (tmp_path / "k.ttgir").write_text("nonsense")
    assert cli.main(["opt", str(tmp_path / "k.ttgir")]) == 1
    assert "cannot be read" in capsys.readouterr().err
