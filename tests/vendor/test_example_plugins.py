"""The example plugins: one that a program adds while it runs, and one that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from patched_tree import ROOT, run_ok, run_python, stock_tree

PLUGINS = ROOT / "examples" / "plugins"


def test_a_registered_backend_is_found_by_target_and_by_name(tmp_path: Path) -> None:
    code = """
import triton
from triton.backends import get_backend, register_backend
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from registered import OpListBackend, OpListDriver

made = register_backend("oplist", OpListBackend, OpListDriver)
assert get_backend("oplist") is made
print(type(make_backend(GPUTarget("oplist", "any", 1))).__name__)
OpListDriver.is_active = classmethod(lambda cls: True)
print(type(triton.runtime.driver.active).__name__)
"""
    output = run_ok(code, tmp_path / "cache", env={"TRITON_DEFAULT_BACKEND": "oplist"}, path=(PLUGINS,))
    assert output == "OpListBackend\nOpListDriver\n"


def test_the_example_script(tmp_path: Path) -> None:
    output = run_ok("", tmp_path / "cache", script=PLUGINS / "registered.py")
    assert output.startswith("double_kernel on 4x1x1 programs with 2 arguments: ")
    assert "tt.load arith.mulf tt.store tt.return" in output


@pytest.mark.parametrize("path", sorted(PLUGINS.rglob("*.py")), ids=lambda path: str(path.relative_to(PLUGINS)))
def test_examples_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 120


# What a distribution of the plugin installs: the backend folder under the name of name.conf, and the entry point.
def install_ttir_only(target: Path) -> Path:
    name = (PLUGINS / "ttir-only/backend/name.conf").read_text().strip()
    shutil.copytree(PLUGINS / "ttir-only/backend", target / name)
    info = target / f"triton_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: triton-{name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[triton.backends]\n{name} = {name}\n")
    return target


TTIR_ONLY = """
import warnings
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(x_ptr + offsets, tl.where(x > 0, x, -x), mask=offsets < n)

X = triton.MockTensor(tl.float32)
"""


def run_ttir_only(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    plugin = install_ttir_only(tmp_path / "plugin")
    return run_python(TTIR_ONLY + code, tmp_path / "cache", env={"TRITON_DEFAULT_BACKEND": "ttir_only"}, path=(plugin,))


def test_the_ttir_only_plugin_compiles_by_entry_point(tmp_path: Path) -> None:
    result = run_ttir_only(
        """
kernel = add_kernel.warmup(X, 1000, BLOCK=256, grid=(4,))
assert kernel.asm["ttir"].decode().count("tt.load") == 1 and "ttgir" not in kernel.asm
assert 'tt.divisibility = 16' in kernel.asm["ttir"].decode()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    add_kernel[(4,)](X, 1000, BLOCK=256, num_warps=8)
print(seen[0].message)
""",
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert "'add_kernel' is compiled but not run: ttir_only stops at TTIR, which no device runs." in result.stdout
    files = {path.suffix for path in (tmp_path / "cache").rglob("add_kernel.*")}
    assert files == {".source", ".ttir", ".json"}


def test_the_ttir_only_plugin_takes_part_in_autotuning(tmp_path: Path) -> None:
    result = run_ttir_only(
        """
warnings.simplefilter("ignore")
configs = [triton.Config({"BLOCK": block}) for block in (64, 128)]
tuned = triton.autotune(configs, key=["n"])(add_kernel)
tuned[(4,)](X, 1000)
print(tuned.best_config.kwargs["BLOCK"])
""",
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "64\n"
    assert len(list((tmp_path / "cache").rglob("add_kernel.ttir"))) == 2


def test_the_ttir_only_plugin_is_inactive_unasked(tmp_path: Path) -> None:
    plugin = install_ttir_only(tmp_path / "plugin")
    output = run_ok(
        "from triton.backends import backends\n"
        "driver = backends['ttir_only'].driver\n"
        "print(driver.is_active(), driver.unavailable_reason())\n",
        tmp_path / "cache",
        path=(plugin,),
    )
    assert output == "False needs TRITON_DEFAULT_BACKEND=ttir_only\n"


def test_the_ttir_only_plugin_in_a_stock_tree(tmp_path: Path) -> None:
    stock_tree(tmp_path)
    package = tmp_path / "python" / "triton"
    shutil.copytree(PLUGINS / "ttir-only/backend", package / "backends/ttir_only")
    shutil.copytree(PLUGINS / "ttir-only/language/ttir_only", package / "language/extra/ttir_only")
    result = run_python(
        """
import triton
import triton.language as tl
from triton.language.extra.ttir_only import clamp_to_unit

@triton.jit
def clamp_kernel(x_ptr):
    tl.store(x_ptr, clamp_to_unit(tl.load(x_ptr)))

X = triton.MockTensor(tl.float32)
ttir = clamp_kernel.warmup(X, grid=(1,)).asm["ttir"].decode()
print([op for op in ("arith.maxnumf", "arith.minnumf", "tt.call") if op in ttir])
clamp_kernel[(1,)](X)
""",
        tmp_path / "cache",
        path=(tmp_path / "python",),
        env={"TRITON_BACKENDS_IN_TREE": "1", "TRITON_DEFAULT_BACKEND": "ttir_only"},
    )
    assert result.stdout == "['arith.maxnumf', 'arith.minnumf']\n", result.stderr
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "RuntimeError: cannot launch 'clamp_kernel': ttir_only stops at TTIR, which no device runs; "
        "compile it with kernel.warmup(..., grid=(1,))"
    )


def test_a_change_of_the_plugins_sources_compiles_anew(tmp_path: Path) -> None:
    code = TTIR_ONLY + "print(add_kernel.warmup(X, 1000, BLOCK=256, grid=(4,)).hash)\n"
    plugin = install_ttir_only(tmp_path / "plugin")

    def key() -> str:
        return run_ok(code, tmp_path / "cache", env={"TRITON_DEFAULT_BACKEND": "ttir_only"}, path=(plugin,))

    first = key()
    assert key() == first
    with (plugin / "ttir_only" / "compiler.py").open("a") as file:
        file.write("\n# changed\n")
    assert key() != first
