"""What LLVM optimises: nothing of a reference, all of other kernels, whatever other threads translate."""

import os
import threading

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.codegen_level import CodegenLevel
from triton.backends.spirv.cpu.objects import machine_code, make
from triton.backends.spirv.system import WINDOWS

from tests.unit.cpu.kernels import PROFILES_HERE, compiled

PROFILE = PROFILES_HERE[0]
VARIABLE = "DISABLE_LLVM_OPT"


@triton.jit
def summed(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(n):
        total += tl.load(x + k * B + i) * k
    tl.store(o + i, total)


def spirv(**options: bool) -> bytes:
    arguments = [np.zeros(1, np.float32)] * 2 + [3]
    return bytes(compiled(PROFILE, summed, arguments, {"B": 64}, **options).asm["spv"])


def code(module: bytes) -> bytes:
    return make(module, PROFILES[PROFILE].subgroup_size, PROFILES[PROFILE].processor).code


def test_the_code_of_a_reference_is_not_optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    usual, reference = spirv(), spirv(reference=True)
    optimised, quick = code(usual), code(reference)
    assert VARIABLE not in os.environ
    monkeypatch.setenv(VARIABLE, "1")
    assert code(usual) != optimised
    assert code(reference) == quick
    assert os.environ[VARIABLE] == "1"


def test_code_that_the_environment_asked_for_is_not_taken_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept() -> bytes:
        return machine_code(module, PROFILES[PROFILE].subgroup_size, PROFILES[PROFILE].processor).code

    monkeypatch.delenv(VARIABLE, raising=False)
    module = spirv()
    usual = kept()
    monkeypatch.setenv(VARIABLE, "1")
    slow = kept()
    monkeypatch.delenv(VARIABLE)
    assert kept() == usual != slow


def test_levels_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "disable-lsr")
    level, seen = CodegenLevel(), list[tuple[bool, str]]()
    inside, leave, third = threading.Event(), threading.Event(), threading.Event()

    def translate(quick: bool, entered: threading.Event) -> None:
        with level.quick(quick):
            seen.append((quick, os.environ[VARIABLE]))
            entered.set()
            assert leave.wait(60)

    def started(quick: bool, entered: threading.Event) -> threading.Thread:
        thread = threading.Thread(target=translate, args=(quick, entered))
        thread.start()
        return thread

    threads = [started(True, inside)]
    assert inside.wait(60)
    waiting = threading.Event()
    threads += [started(False, waiting), started(True, third)]
    assert third.wait(60)
    assert not waiting.wait(0.2) and level.asked == "disable-lsr"
    leave.set()
    for thread in threads:
        thread.join()
    assert seen == [(True, "1"), (True, "1"), (False, "disable-lsr")]
    assert os.environ[VARIABLE] == "disable-lsr"


@pytest.mark.skipif(WINDOWS, reason="Windows has no fork()")
def test_a_forked_child_has_no_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    level = CodegenLevel()
    with level.quick(True):
        child = os.fork()
        if child == 0:
            right = VARIABLE not in os.environ
            with level.quick(False):
                os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0 and VARIABLE not in os.environ
