"""What `python3 -m tools windows` runs on the processor itself: kernels against NumPy in float64, print and assert, and
what goes wrong, after which the process goes on.

A line for each that was right; an assertion for the first that was not. TRITON_SPIRV_DEVICE=cpu is set.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime, system
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.machine import assemble
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.native_module import native

if TYPE_CHECKING:
    from . import windows_probe
else:  # a script of its own, beside that one
    import windows_probe

_SECONDS = 600
_N = 100_003


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def show(x):  # type: ignore[no-untyped-def]
    tl.device_print("the value is", tl.load(x))


@triton.jit
def demand(x):  # type: ignore[no-untyped-def]
    tl.device_assert(tl.load(x) < 10, "the value is too large")


@triton.jit
def store_at(address, out):  # type: ignore[no-untyped-def]
    tl.store(address.to(tl.int64).to(tl.pointer_type(tl.int32)) + tl.arange(0, 64), tl.arange(0, 64))
    tl.store(out, 1)


@triton.jit
def wait(flag):  # type: ignore[no-untyped-def]
    while tl.load(flag, volatile=True) == 0:
        pass


#: Kernels in LLVM IR, for what no kernel of Triton does.
_LOOP = """
{extra}
define void @k(ptr %block, i64 %first, i64 %last, ptr %grid, ptr %scratch, ptr %stop) nounwind {attributes} {{
entry:
{body}
  ret void
}}
"""
_DIVIDE = """
  store volatile i64 0, ptr %scratch
  %zero = load volatile i64, ptr %scratch
  %quotient = sdiv i64 1000, %zero
  store i64 %quotient, ptr %scratch"""
_TRAP = "  call void @llvm.trap()"
_SPIN = '  br label %spin\nspin:\n  call void asm sideeffect "", ""()\n  br i1 true, label %spin, label %end\nend:'
_DEEP = "  call void @deeper(i64 0)"
_DEEPER = """
define void @deeper(i64 %depth) noinline {attributes} {{
  %array = alloca [40000 x i8]
  call void asm sideeffect "", "r"(ptr %array)
  %next = add i64 %depth, 1
  call void @deeper(i64 %next)
  call void asm sideeffect "", "r"(ptr %array)
  ret void
}}
"""


def fault(call: Callable[[], object], *expected: str) -> None:
    """The call raises an error with these words, and kernels still run, on this thread and on the device's."""
    try:
        call()
    except RuntimeError as error:
        assert all(re.search(words, str(error)) for words in expected), error
    else:
        raise AssertionError(f"nothing was raised: {expected}")
    assert added() == 0


def added() -> float:
    """The largest error of a sum of arrays that are used in place, with room behind them that stays as it is."""
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(_N).astype(np.float32) for _ in range(2))
    out = np.full(_N + 7, 5, np.float32)
    add[(triton.cdiv(_N, 1024),)](*map(runtime.array, (x, y, out)), _N, BLOCK=1024)
    assert (out[_N:] == 5).all()
    return float(np.abs(out[:_N] - (x + y)).max())


def launched(body: str, extra: str = "") -> Callable[[], object]:
    """A launch of a kernel in LLVM IR."""
    level = native().processor_level()
    host = host_of(level)
    text = _LOOP.format(body=body, extra=extra.format(attributes=host.attributes), attributes=host.attributes)
    code = native().CpuObject(assemble(text, host))
    kernel = native().CpuKernel(code, "k", 64)
    device = current().native
    return lambda: (device.launch(kernel, b"", (1, 1, 1), name="in LLVM IR"), code)


def on_a_thread(call: Callable[[], None]) -> None:
    """Calls it in another thread."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def faults() -> None:
    """Each is an exception, twice, on the main thread and on another one."""
    out, trap = runtime.array(np.zeros(1, np.int32)), "declare void @llvm.trap()"
    cases: tuple[tuple[str, Callable[[], object], tuple[str, ...]], ...] = (
        ("a wild store", lambda: store_at[(1,)](4096, out), ("store_at.*wrote to address 0x1000", r"probe\.py:\d+")),
        ("an address of no process", lambda: store_at[(1,)](1 << 60, out), ("address that no process can have",)),
        ("memory for other uses", lambda: store_at[(1,)](_code(), out), ("may not do so",)),
        ("a division by zero", launched(_DIVIDE), ("divided an integer by zero",)),
        ("an unknown instruction", launched(_TRAP, trap), ("processor does not have",)),
        ("a full stack", launched(_DEEP, _DEEPER), ("more stack than its thread has",)),
    )
    for what, call, words in cases:
        for _ in range(2):
            fault(call, *words)
            on_a_thread(partial(fault, call, *words))
        print(f"{what}: an exception, and the process goes on", flush=True)


_CODE: list[Any] = []


def _code() -> int:
    """An address of machine code, which may not be written."""
    if not _CODE:
        host = host_of(native().processor_level())
        _CODE.append(native().CpuObject(assemble(_LOOP.format(body="", extra="", attributes=""), host)))
    return int(_CODE[0].address)


def child(*arguments: str, **environment: str) -> str:
    """What this program prints in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def endless() -> None:
    """With a time limit of a second: a loop in a kernel, for one program and for many, and one that never looks whether
    it has to stop."""
    flag = runtime.array(np.zeros(1, np.int32))
    for programs in (1, 1000, 1):
        fault(partial(wait[(programs,)], flag), "did not end within the time limit", r"probe\.py:\d+")
    for _ in range(2):
        fault(launched(_SPIN), "did not end within the time limit")
    print("endless loops ended")


def interrupted() -> None:
    """Ctrl-C ends a loop in a kernel. It is sent to a console of this process's own."""
    kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.FreeConsole()
    assert kernel.AllocConsole()
    flag = runtime.array(np.zeros(1, np.int32))
    wait.warmup(flag, grid=(1,))
    for programs in (1, 1000):
        threading.Timer(1, kernel.GenerateConsoleCtrlEvent, (0, 0)).start()
        try:
            wait[(programs,)](flag)
        except KeyboardInterrupt:
            assert added() == 0
            print("Ctrl-C ended it")


def show_77() -> None:
    """Prints a value of a kernel."""
    show[(1,)](runtime.array(np.array([77], np.int32)))


def main(arguments: list[str]) -> None:
    """One part, or all of it."""
    parts = {"faults": faults, "endless": endless, "interrupted": interrupted, "show": show_77}
    if arguments:
        parts[arguments[0]]()
        return
    assert current().device.kind == "cpu"
    print(f"on {current().device.name}", flush=True)
    if system.WINDOWS:  # it is tried out on Linux, too
        windows_probe.main()
    windows_probe.report("arrays in place", added(), 0)
    assert re.search("the value is.*77", child("show")), child("show")
    print("print: it was printed", flush=True)
    demand[(1,)](runtime.array(np.array([9], np.int32)), debug=True)
    fault(lambda: demand[(1,)](runtime.array(np.array([10], np.int32)), debug=True), "the value is too large")
    print("assert: an exception, and the process goes on", flush=True)
    faults()
    if system.WINDOWS:
        assert child("interrupted").count("Ctrl-C ended it") == 2
        print("Ctrl-C: KeyboardInterrupt, and the process goes on", flush=True)
    assert "endless loops ended" in child("endless", TRITON_SPIRV_TIMEOUT="1")
    print("a time limit: endless loops ended, and the process goes on", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
