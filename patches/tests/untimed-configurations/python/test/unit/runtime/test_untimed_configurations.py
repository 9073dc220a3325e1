from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources


def autotuned(failing, **options):

    @triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (32, 64)], key=[], **options)
    @triton.jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    def bench(call, quantiles):
        call()
        return [1.0, 1.0, 1.0]

    def run(*args, BLOCK, **kwargs):
        if BLOCK in failing:
            raise OutOfResources(BLOCK, 1, "shared memory")

    kernel._do_bench, kernel.fn.run = bench, run
    return kernel


def test_a_choice_without_times_is_told_of():
    kernel = autotuned((32, 64))
    with pytest.warns(RuntimeWarning, match="'kernel': none of 2 .* is used: BLOCK: 32.* failed with: .*Required: 64"):
        with pytest.raises(OutOfResources):
            kernel[(1,)](None)


def test_one_time_is_enough(recwarn):
    kernel = autotuned((32,))
    kernel[(1,)](None)
    assert kernel.best_config.kwargs == {"BLOCK": 64}
    assert not [warning for warning in recwarn if "configurations" in str(warning.message)]


def test_a_choice_without_times_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    active = SimpleNamespace(get_current_target=lambda: None)
    monkeypatch.setattr("triton.runtime.autotuner.driver", SimpleNamespace(active=active))
    monkeypatch.setattr("triton.compiler.compiler.make_backend", lambda target: SimpleNamespace(hash=lambda: ""))
    out = SimpleNamespace(dtype="fp32")
    with pytest.warns(RuntimeWarning), pytest.raises(OutOfResources):
        autotuned((32, 64), cache_results=True)[(1,)](out)
    assert not list(tmp_path.rglob("*.autotune.json"))
    kernel = autotuned((), cache_results=True)
    kernel[(1,)](out)
    assert {times[0] for times in kernel.configs_timings.values()} == {1.0}
    assert list(tmp_path.rglob("*.autotune.json"))
