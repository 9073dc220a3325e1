"""Kernels that are compiled and not run, and that nothing changes for those that are."""

from __future__ import annotations

from pathlib import Path

from patched_tree import ROOT, run_ok, run_python

PLUGINS = ROOT / "examples" / "plugins"

PRELUDE = """
import warnings
import triton
import triton.language as tl
from triton import knobs
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.driver import driver
from registered import OpListBackend, OpListDriver, double_kernel

X = triton.MockTensor(tl.float32)
calls = []

class NoLaunch(OpListDriver):
    can_launch = False
    why_no_launch = staticmethod(lambda: "TRITON_SPIRV_COMPILE_ONLY=1 is set.")
    def launcher_cls(self, src, metadata):
        raise AssertionError("no launcher may be made")

class Launches(OpListDriver):
    def launcher_cls(self, src, metadata):
        return lambda *args: calls.append(args)

@triton.jit
def other_kernel(x_ptr):
    tl.store(x_ptr, 1.0)
"""


def run(code: str, tmp_path: Path, **env: str) -> str:
    return run_ok(PRELUDE + code, tmp_path / "cache", env=env, path=(PLUGINS,))


def stages(tmp_path: Path, kernel: str) -> set[str]:
    return {path.suffix for path in (tmp_path / "cache").rglob(f"{kernel}.*")}


def test_a_launch_compiles_warns_once_and_returns(tmp_path: Path) -> None:
    output = run(
        """
backends["oplist"] = Backend(OpListBackend, NoLaunch)
driver.set_active(NoLaunch())
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    compiled = double_kernel[(4,)](X, BLOCK=256)
    line = __import__("inspect").currentframe().f_lineno - 1
    double_kernel[(4,)](X, BLOCK=256)
    double_kernel[(4, 2)](X, BLOCK=128)
    other_kernel[(1,)](X)
    compiled[(4, 1, 1)](X)
    compiled[(4, 1, 1)](X, stream=0)
print(len(seen), seen[0].category.__name__, seen[0].filename == __file__, seen[0].lineno == line)
print(seen[0].message)
print(compiled.asm["ops"].decode().split()[-1], compiled.n_regs, compiled.n_spills, compiled.module)
""",
        tmp_path,
    )
    lines = output.splitlines()
    assert lines[0] == "1 RuntimeWarning True True"
    assert lines[1] == (
        "kernel 'double_kernel' is compiled but not run: TRITON_SPIRV_COMPILE_ONLY=1 is set. "
        "Its outputs are left as they were; further launches are skipped silently."
    )
    assert lines[2] == "builtin.module None None None"
    for kernel in ("double_kernel", "other_kernel"):
        assert stages(tmp_path, kernel) == {".source", ".ttir", ".ops", ".json"}


def test_warmup_needs_no_launch_and_does_not_warn(tmp_path: Path) -> None:
    output = run(
        """
warnings.simplefilter("error")
backends["oplist"] = Backend(OpListBackend, NoLaunch)
driver.set_active(NoLaunch())
compiled = double_kernel.warmup(X, BLOCK=256, grid=(4,))
compiled._init_handles()  # what users call to read registers
print(compiled.name, compiled.n_regs)
""",
        tmp_path,
    )
    assert output == "double_kernel None\n"
    assert stages(tmp_path, "double_kernel") == {".source", ".ttir", ".ops", ".json"}


def test_launch_hooks_see_no_launch(tmp_path: Path) -> None:
    output = run(
        """
warnings.simplefilter("ignore")
backends["oplist"] = Backend(OpListBackend, NoLaunch)
driver.set_active(NoLaunch())
knobs.runtime.launch_enter_hook.add(calls.append)
double_kernel[(4,)](X, BLOCK=256)
print(calls)
""",
        tmp_path,
    )
    assert output == "[]\n"


def test_an_explicit_target_without_any_driver(tmp_path: Path) -> None:
    # The driver's class says why it is inactive, so the kernel counts as compiled for another machine.
    output = run(
        """
class Absent(OpListDriver):
    unavailable_reason = classmethod(lambda cls: "no Vulkan device was found")

backends.clear()
backends["oplist"] = Backend(OpListBackend, Absent)
source = ASTSource(double_kernel, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64})
compiled = triton.compile(source, target=GPUTarget("oplist", "any", 1))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    compiled[(1, 1, 1)](X)
    compiled[(1, 1, 1)](X)
print(len(seen), seen[0].message)
""",
        tmp_path,
    )
    assert output.startswith("1 kernel 'double_kernel' is compiled but not run: no Vulkan device was found. ")
    assert stages(tmp_path, "double_kernel") == {".source", ".ttir", ".ops", ".json"}


def test_without_a_reason_a_missing_driver_stays_an_error(tmp_path: Path) -> None:
    result = run_python(
        PRELUDE
        + """
backends.clear()
backends["oplist"] = Backend(OpListBackend, OpListDriver)
source = ASTSource(double_kernel, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64})
triton.compile(source, target=GPUTarget("oplist", "any", 1))[(1, 1, 1)](X)
""",
        tmp_path / "cache",
        path=(PLUGINS,),
    )
    assert result.returncode == 1
    assert "RuntimeError: 0 active drivers ([]). There should only be one." in result.stderr


def test_an_active_driver_that_was_not_chosen_is_no_reason_to_skip(tmp_path: Path) -> None:
    result = run_python(
        PRELUDE
        + """
class Present(OpListDriver):
    is_active = classmethod(lambda cls: True)
    unavailable_reason = classmethod(lambda cls: None)

backends.clear()
for name in ("one", "two"):
    backends[name] = Backend(type(name, (OpListBackend,), {
        "supports_target": staticmethod(lambda target, name=name: target.backend == name)}), Present)
source = ASTSource(double_kernel, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64})
triton.compile(source, target=GPUTarget("one", "any", 1))[(1, 1, 1)](X)
""",
        tmp_path / "cache",
        path=(PLUGINS,),
    )
    assert result.returncode == 1
    assert "RuntimeError: 2 active drivers (" in result.stderr


def test_drivers_that_launch_are_asked_once_a_kernel(tmp_path: Path) -> None:
    output = run(
        """
from triton.compiler import compiler
asked = []
launchable = compiler.launchable
compiler.launchable = lambda kernel: asked.append(kernel.name) or launchable(kernel)
warnings.simplefilter("error")
backends["oplist"] = Backend(OpListBackend, Launches)
driver.set_active(Launches())
for _ in range(10):
    compiled = double_kernel[(4,)](X, BLOCK=256)
compiled[(2, 1, 1)](X, 256)
print(asked, len(calls), compiled.module)
""",
        tmp_path,
    )
    assert output == "['double_kernel'] 11 1\n"
