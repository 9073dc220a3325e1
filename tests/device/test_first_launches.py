"""First launches that other threads make too, or that are interrupted: kernels are loaded once, and whole."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.compiler import CompiledKernel
from triton.runtime import driver

from tests.device.processes import run
from tests.device.threads import together

if not hasattr(CompiledKernel._init_handles, "__wrapped__"):
    pytest.skip("this triton lacks the patch 'whole-loads'", allow_module_level=True)

THREADS = 4


@triton.jit
def doubled(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * 2)


@pytest.fixture
def tensors() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    doubled.device_caches.clear()
    yield torch.arange(16, dtype=torch.float32), torch.zeros(16)
    doubled.device_caches.clear()


def replace_load(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> None:
    load = driver.active.utils.load_binary
    monkeypatch.setattr(driver.active.utils, "load_binary", lambda *args: function(load, *args))


def test_threads_wait_for_one_that_loads(
    monkeypatch: pytest.MonkeyPatch, tensors: tuple[torch.Tensor, torch.Tensor]
) -> None:
    x, _ = tensors
    kernel = doubled.warmup(x, x, BLOCK=16, grid=(1,))
    loads: list[int] = []

    def slow(load: Callable[..., Any], *args: Any) -> Any:
        loads.append(1)
        time.sleep(0.1)
        return load(*args)

    replace_load(monkeypatch, slow)
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> None:
        y = torch.zeros(16)
        barrier.wait()
        kernel[(1, 1, 1)](x, y, 16) if number % 2 else doubled[(1,)](x, y, BLOCK=16)
        assert torch.equal(y, 2 * x)

    together(work, range(THREADS))
    assert len(loads) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_a_load_that_failed_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tensors: tuple[torch.Tensor, torch.Tensor], kind: type[BaseException]
) -> None:
    x, y = tensors

    def fail(load: Callable[..., Any], *args: Any) -> Any:
        raise kind

    with monkeypatch.context() as patched:
        replace_load(patched, fail)
        for _ in range(2):
            with pytest.raises(kind):
                doubled[(1,)](x, y, BLOCK=16)
    doubled[(1,)](x, y, BLOCK=16)
    assert torch.equal(y, 2 * x)


_THREADS = """
import threading, torch
barrier, failed = threading.Barrier(6), []
def work():
    try:
        barrier.wait()
        for _ in range(5):
            assert (torch.ones(8).to("spirv:0") * 2).cpu().sum() == 16
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed or "right")
"""


def test_threads_that_make_the_first_tensors() -> None:
    done = run([sys.executable, "-c", _THREADS])
    assert done.returncode == 0 and done.stdout.strip() == "right", done.stdout + done.stderr
