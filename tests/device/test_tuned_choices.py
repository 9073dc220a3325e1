"""Choices of autotuning in a file (TRITON_SPIRV_TUNED), in eager launches and in compiled functions, and ``triton-spirv
tuned``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv import cli
from triton.backends.spirv.launching import tuned_file
from triton.backends.spirv.launching.tuned_file import NotTuned, TunedFileError
from triton.backends.spirv.runtime.context import current

CONFIGS = [triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((64, 1), (128, 4), (256, 4))]
measured: list[int] = []


def bench(call: Callable[[], None], quantiles: Any) -> list[float]:
    """The first configuration takes longest, the second the least."""
    call()
    measured.append(len(measured))
    return [(3.0, 1.0, 2.0)[measured[-1] % 3]] * 3


@triton.autotune(configs=CONFIGS, key=["n"], do_bench=bench)
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@pytest.fixture(autouse=True)
def tuned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "tuned.json"
    monkeypatch.setenv("TRITON_SPIRV_TUNED", str(file))
    _new_process()
    return file


def _new_process() -> None:
    double.cache.clear()
    measured.clear()


def _launch(n: int, dtype: torch.dtype = torch.float32) -> int:
    """The block that was chosen."""
    x, out = torch.arange(n).to(dtype), torch.zeros(n, dtype=dtype)
    double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    assert torch.equal(out, 2 * x)
    return double.best_config.kwargs["BLOCK"]


def _choices(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text())["choices"]


def _change(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    told = json.loads(file.read_text())
    for one in told["choices"]:
        change(one)
    file.write_text(json.dumps(told))
    _new_process()


def test_what_was_measured_is_not_measured_again(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _launch(300) == 128 and len(measured) == 3
    first = tuned.read_text()
    (choice,) = _choices(tuned)
    assert choice["kernel"] == "double" and choice["config"] == {
        "BLOCK": 128,
        "num_ctas": 1,
        "num_stages": 3,
        "num_warps": 4,
    }
    assert choice["key"] == {"n": 300, "x.dtype": "torch.float32", "out.dtype": "torch.float32"}
    _new_process()
    monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "refuse")
    assert _launch(300) == 128 and measured == []
    assert tuned.read_text() == first


def test_what_the_driver_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    device = type(current().opened)
    loads = iter([Mock(side_effect=RuntimeError("VK_ERROR_UNKNOWN (-13)")), device.load, device.load])
    monkeypatch.setattr(device, "load", lambda *load: next(loads)(*load))
    double.fn.device_caches.clear()
    assert _launch(1003) == 256
    (told,) = double.failures.values()
    assert "VK_ERROR_UNKNOWN" in told and "too many values" in told and "smaller blocks" in told


def test_what_the_file_says_is_used(tuned: Path) -> None:
    _launch(300)
    _change(tuned, lambda one: one["config"].update(BLOCK=256))
    assert _launch(300) == 256 and measured == []


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(device="another one"),
        lambda one: one.update(source="another text"),
        lambda one: one["key"].update({"x.dtype": "torch.float16"}),
        lambda one: one["config"].update(BLOCK=512),
    ],
    ids=["device", "source", "type", "configuration"],
)
def test_what_is_missing_is_measured_or_refused(
    tuned: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], Any]
) -> None:
    _launch(300)
    _change(tuned, change)
    before = tuned.read_text()
    monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "refuse")
    with pytest.raises(
        NotTuned, match=r"kernel 'double' \(n=300, x.dtype=torch.float32, .*TRITON_SPIRV_TUNED_MISSING=m"
    ):
        _launch(300)
    assert tuned.read_text() == before
    monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "measure")
    assert _launch(300) == 128 and len(measured) == 3
    assert any(one["config"]["BLOCK"] == 128 and one["key"]["n"] == 300 for one in _choices(tuned))


def test_a_file_does_not_depend_on_the_order_of_launches(tuned: Path) -> None:
    files = []
    for sizes in ((300, 70), (70, 300)):
        for n in sizes:
            _launch(n)
        files.append(tuned.read_bytes())
        tuned.unlink()
        _new_process()
    assert files[0] == files[1] and files[0].count(b'"kernel"') == 2


def test_a_file_that_is_none_is_told(tuned: Path) -> None:
    for text in ("no JSON", '{"format": 9, "choices": []}', '{"choices": 1}'):
        tuned.write_text(text)
        with pytest.raises(TunedFileError, match="tuned.json"):
            _launch(300)


def test_kernels_in_compiled_functions_are_tuned_by_the_same_file(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _launch(300)
    _change(tuned, lambda one: one["config"].update(BLOCK=256))
    monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "refuse")

    def both(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        double[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)
        return out + 1

    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    measure, kernels = CachingAutotuner.benchmark_all_configs, []

    def measured_by_inductor(self: Any, *args: Any, **options: Any) -> Any:
        kernels.append(self.fn.__name__)
        return measure(self, *args, **options)

    monkeypatch.setattr(CachingAutotuner, "benchmark_all_configs", measured_by_inductor)
    x = torch.rand(300, device="spirv")
    # By its own patch(): the undoing of monkeypatch's would leave no such setting to the tests that come later.
    with torch._inductor.config.patch(force_disable_caches=True):
        torch.testing.assert_close(torch.compile(both)(x), 2 * x + 1)
        assert "double" not in kernels

        tuned.unlink()
        torch.compiler.reset()
        with pytest.raises(NotTuned, match=r"kernel 'double' \(n=300"):
            torch.compile(both)(x)
        monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "measure")
        torch.compiler.reset()
        torch.testing.assert_close(torch.compile(both)(x), 2 * x + 1)
        assert "double" in kernels
    (choice,) = _choices(tuned)
    assert choice["key"] == {"n": 300, "x.dtype": "torch.float32", "out.dtype": "torch.float32"}
    _new_process()
    monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "refuse")
    assert _launch(300) == choice["config"]["BLOCK"]


def test_the_verb_shows_checks_and_merges(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _launch(300)
    assert cli.main(["tuned", str(tuned)]) == 0
    assert "double (n=300, " in (shown := capsys.readouterr().out) and "BLOCK=128" in shown
    assert cli.main(["tuned", str(tuned), "--check"]) == 0
    assert capsys.readouterr().out.strip() == ""
    other = tmp_path / "other.json"
    (choice,) = tuned_file.read(tuned)
    told = json.loads(choice.line())
    changed = {"config": {**told["config"], "BLOCK": 64}}
    elsewhere = {"device": "another one", "versions": {"triton": "3.0.0"}}
    tuned_file.write(other, [tuned_file.TunedConfig(**(told | changed)), tuned_file.TunedConfig(**(told | elsewhere))])
    assert cli.main(["tuned", str(tuned), str(other), "-o", str(tmp_path / "both.json")]) == 0
    assert capsys.readouterr().out.count("double (n=300, ") == 2
    blocks = {one.device: one.config["BLOCK"] for one in tuned_file.read(tmp_path / "both.json")}
    assert blocks == {choice.device: 64, "another one": 128}
    assert cli.main(["tuned", str(other), "--check"]) == 1
    assert "on another one: BLOCK=128, num_ctas=1, num_stages=3, num_warps=4: no device of" in capsys.readouterr().out
    assert cli.main(["tuned", str(tmp_path / "none.json")]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_what_inductor_measured_before_does_not_hide_the_file(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tuned.parent))
    monkeypatch.setattr(CachingAutotuner, "bench", lambda self, launcher, *args, **options: 1.0)

    @torch.compile(fullgraph=True)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        double[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)
        return out

    def run() -> None:
        torch.compiler.reset()
        PyCodeCache.cache_clear()  # as in a new process
        x = torch.rand(300, device="spirv")
        torch.testing.assert_close(doubled(x), 2 * x)

    with torch._inductor.config.patch(compile_threads=1, fx_graph_cache=False):
        monkeypatch.delenv("TRITON_SPIRV_TUNED")
        run()
        assert list(tuned.parent.rglob("*.best_config")), "Inductor keeps what it measured"
        monkeypatch.setenv("TRITON_SPIRV_TUNED", str(tuned))
        monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "refuse")
        with pytest.raises(NotTuned, match="kernel 'double'"):
            run()
        monkeypatch.setenv("TRITON_SPIRV_TUNED_MISSING", "measure")
        run()
        assert [one["kernel"] for one in _choices(tuned)] == ["double"]
    torch.compiler.reset()
