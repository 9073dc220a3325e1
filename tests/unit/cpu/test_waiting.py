"""Loops in which a program waits for another one: it sleeps after a while."""

import threading
import time
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

INT = np.zeros(4, np.int32)


@triton.jit
def takes_a_lock(flag, out, n):
    while tl.atomic_cas(flag, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + n)
    tl.atomic_xchg(flag, 0)


@triton.jit
def exchanges(flag, out, n):
    while tl.atomic_xchg(flag, 1) == 1:
        pass
    tl.store(out, tl.load(out) + n)
    tl.atomic_xchg(flag, 0)


@triton.jit
def reads(flag, out, n):
    while tl.load(flag, volatile=True) == 1:
        pass
    tl.atomic_add(out, n)


@triton.jit
def adds_nothing(flag, out, n):
    while tl.atomic_add(flag + n, 0) == 1:
        pass
    tl.atomic_add(out, n)


@triton.jit
def takes_work(flag, out, n):
    """Each round changes memory."""
    while tl.atomic_add(flag, 1) < n:
        tl.atomic_add(out, 1)


@triton.jit
def probes(flag, out, n):
    """Each round looks at another place."""
    place = 0
    while tl.atomic_cas(flag + place, 0, 1) == 1:
        place += 1
    tl.store(out, place)


@triton.jit
def works_meanwhile(flag, out, n):
    while tl.load(flag, volatile=True) == 1:
        tl.store(out, tl.load(out) + n)


@triton.jit
def gives_up(flag, out, n):
    left = n
    while (tl.load(flag, volatile=True) == 1) & (left > 0):
        left -= 1
    tl.store(out, left)


WAIT = (takes_a_lock, exchanges, reads)


@pytest.mark.parametrize(
    "kernel", [*WAIT, adds_nothing, takes_work, probes, works_meanwhile, gives_up], ids=lambda k: k.fn.__name__
)
def test_only_what_polls_waits(kernel: Any) -> None:
    profile = PROFILES[PROFILES_HERE[-1]]
    spirv = compiled(PROFILES_HERE[-1], kernel, [INT, INT, 4], {}).asm["spv"]
    text = translate(spirv, host_of(profile.processor), profile.subgroup_size).text
    assert text.count("call void @triton_spirv_wait") == (kernel in (*WAIT, adds_nothing))


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("kernel", WAIT, ids=lambda kernel: kernel.fn.__name__)
def test_what_waits_goes_on_once_it_may(profile: str, kernel: Any) -> None:
    """A lock that this thread has, for longer than a program polls."""
    flag, out = np.ones(1, np.int32), np.zeros(1, np.int32)
    programs = threading.Thread(target=run, args=(profile, kernel, (3,), flag, out, 5))
    programs.start()
    time.sleep(0.1)
    assert out[0] == 0
    flag[0] = 0
    programs.join()
    assert (out[0], flag[0]) == (15, 0)
