"""register_backend and get_backend, and the example plugins that use or need no registration."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from patched_tree import ROOT, run_ok, run_python, stock_tree

PLUGINS = ROOT / "examples" / "plugins"

PRELUDE = """
import triton
from triton.backends import backends, get_backend, register_backend
from triton.backends.registry import unregister_backend
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import make_backend
from registered import OpListBackend, OpListDriver

def refused(error, *args, function=register_backend):
    before = dict(backends)
    try:
        function(*args)
    except error as e:
        assert backends == before
        return print(e)
    raise AssertionError("not refused")
"""


def run(code: str, tmp_path: Path, **env: str) -> list[str]:
    return run_ok(PRELUDE + code, tmp_path / "cache", env=env, path=(PLUGINS,)).splitlines()


def test_a_registered_backend_is_found_by_target_and_by_name(tmp_path: Path) -> None:
    lines = run(
        """
entry = register_backend("oplist", OpListBackend, OpListDriver)
print(get_backend("oplist") is entry, entry.compiler.__name__, entry.driver.__name__)
print(type(make_backend(GPUTarget("oplist", "any", 1))).__name__)
OpListDriver.is_active = classmethod(lambda cls: True)
print(type(triton.runtime.driver.active).__name__)
unregister_backend("oplist")
refused(ValueError, "oplist", function=get_backend)
register_backend("oplist", OpListBackend, OpListDriver)
""",
        tmp_path,
        TRITON_DEFAULT_BACKEND="oplist",
    )
    assert lines[:3] == ["True OpListBackend OpListDriver", "OpListBackend", "OpListDriver"]
    assert lines[3].startswith("no backend is named 'oplist' (available: ")


def test_installed_backends_are_given_too(tmp_path: Path) -> None:
    assert run("print(get_backend('nvidia').compiler.__name__)", tmp_path) == ["CUDABackend"]


def test_names_that_are_refused(tmp_path: Path) -> None:
    lines = run(
        """
for name in ("", "op-list", "2d", "op list", "größe", "class", None):
    refused(ValueError, name, OpListBackend, OpListDriver)
register_backend("oplist", OpListBackend, OpListDriver)
refused(ValueError, "oplist", OpListBackend, OpListDriver)
refused(ValueError, "nvidia", OpListBackend, OpListDriver)
refused(ValueError, "nvidia", function=unregister_backend)
""",
        tmp_path,
    )
    assert len(lines) == 10
    assert all("is no C identifier" in line for line in lines[:7])
    assert lines[7] == "backend name 'oplist' is taken by registered: unregister_backend it first"
    assert lines[8] == (
        "backend name 'nvidia' is taken by triton.backends.nvidia.compiler: it is installed; choose another name"
    )
    assert lines[9].startswith("backend 'nvidia' was not registered at run time")


def test_classes_that_are_refused(tmp_path: Path) -> None:
    lines = run(
        """
class Half(BaseBackend):
    def hash(self): return ""
    def parse_options(self, options): return options
    def get_module_map(self): return {}

refused(TypeError, "b", Half, OpListDriver)
refused(TypeError, "b", OpListBackend, DriverBase)
refused(TypeError, "b", OpListDriver, OpListDriver)
refused(TypeError, "b", OpListBackend, OpListBackend)
refused(TypeError, "b", "OpListBackend", OpListDriver)
refused(TypeError, "b", OpListBackend, OpListDriver())
""",
        tmp_path,
    )
    assert lines[0] == (
        "backend 'b': compiler Half is abstract; it must define add_stages, load_dialects, supports_target"
    )
    assert lines[1].startswith("backend 'b': driver DriverBase is abstract; it must define get_active_torch_device, ")
    assert lines[2] == "backend 'b': compiler OpListDriver is not a subclass of triton.backends.compiler.BaseBackend"
    assert lines[3] == "backend 'b': driver OpListBackend is not a subclass of triton.backends.driver.DriverBase"
    assert lines[4] == "backend 'b': compiler must be a class, not an object of type str"
    assert lines[5] == "backend 'b': driver must be a class, not an object of type OpListDriver"


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
from triton.backends import get_backend

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
        "from triton.backends import get_backend\n"
        "driver = get_backend('ttir_only').driver\n"
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
