"""A driver that repeats launches itself, and that nothing changes for those that do not."""

from __future__ import annotations

from pathlib import Path

from patched_tree import ROOT, run_ok

PRELUDE = """
import triton
import triton.language as tl
from triton.backends import Backend, backends
from triton.runtime.driver import driver
from registered import OpListBackend, OpListDriver, double_kernel

X = triton.MockTensor(tl.float32)
calls = []

class Plain(OpListDriver):
    def launcher_cls(self, src, metadata):
        return lambda *args: calls.append(args[:3] + args[9:])

class Remembers(Plain):
    told = []
    def remember_launch(self, function, device, key, args, keywords):
        assert function.device_caches[device][0][key] is not None
        self.told.append((args, dict(keywords)))
        function.relaunch = self.repeat
    def repeat(self, function, grid, args, keywords):
        if keywords != {"BLOCK": 256}:
            return None
        calls.append(("short", grid, args))
        return "the kernel"
"""


def run(code: str, tmp_path: Path) -> str:
    return run_ok(PRELUDE + code, tmp_path / "cache", env={}, path=(ROOT / "examples" / "plugins",))


def test_a_driver_is_told_and_asked(tmp_path: Path) -> None:
    output = run(
        """
backends["oplist"] = Backend(OpListBackend, Remembers)
active = Remembers()
driver.set_active(active)
kernel = double_kernel[(4,)](X, BLOCK=256)
print(len(active.told), active.told[0][0] == (X,), list(active.told[0][1])[0], double_kernel.relaunch == active.repeat)
print(double_kernel[(2, 3)](X, BLOCK=256), calls[-1] == ("short", (2, 3), (X,)))
print(double_kernel[(4,)](X, BLOCK=128) is not kernel, len(active.told), calls[-1][:3])
print(double_kernel.warmup(X, grid=(4,), BLOCK=256) is kernel, len(active.told), len(calls))
""",
        tmp_path,
    )
    assert output.splitlines() == ["1 True BLOCK True", "the kernel True", "True 2 (4, 1, 1)", "True 2 3"]


def test_another_driver_launches_as_before(tmp_path: Path) -> None:
    output = run(
        """
backends["oplist"] = Backend(OpListBackend, Plain)
driver.set_active(Plain())
kernels = {double_kernel[(grid,)](X, BLOCK=256) for grid in range(1, 4)}
print(len(kernels), double_kernel.relaunch, [call[0] for call in calls])
""",
        tmp_path,
    )
    assert output == "1 None [1, 2, 3]\n"


def test_an_error_of_the_shorter_way_is_the_launchs_own(tmp_path: Path) -> None:
    output = run(
        """
class Fails(Remembers):
    def repeat(self, *args):
        raise ValueError("the grid is too large")
backends["oplist"] = Backend(OpListBackend, Fails)
driver.set_active(Fails())
double_kernel[(1,)](X, BLOCK=256)
try:
    double_kernel[(1,)](X, BLOCK=256)
except ValueError as error:
    print(error, len(calls))
""",
        tmp_path,
    )
    assert output == "the grid is too large 1\n"
