"""benchmarks/inductor_compile.py: what it times is what Inductor compiled, for both targets."""

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import triton  # noqa: E402

from benchmarks import inductor_compile  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


def test_a_graph_is_timed_and_its_kernels_compile_for_both_targets() -> None:
    compile_kernel = triton.compile
    seconds, recorder = inductor_compile.first_call(inductor_compile.GRAPHS["softmax"], "spirv")
    assert triton.compile is compile_kernel
    assert 0 < recorder.seconds < seconds
    (kernel,) = recorder.kernels
    assert kernel.target.backend == "spirv"
    assert kernel.seconds(kernel.target) > 0 and kernel.seconds(inductor_compile.CUDA) > 0


def test_unknown_graphs_are_refused(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["inductor_compile", "softmax", "soft max"])
    with pytest.raises(SystemExit) as caught:
        inductor_compile.main()
    assert caught.value.code == 2 and "there is no graph soft max" in capsys.readouterr().err
