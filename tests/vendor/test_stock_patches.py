"""Fixes that the plugin brings along for stock Triton: there kernels are right, and where Triton's source is another
one, they are refused. The last test changes the environment of those before it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from beside_older_triton import environment
from vendor_support import ROOT, Venv

from tools.packaging.plugin_patches import PATCHES
from tools.project import ReleaseWheel

PROBE = Path(__file__).parent / "stock_patches_probe.py"
RIGHT = {"bf16 1.0": 1.0, "bf16 1.52587890625e-05": 2.0**-16, "constant 0.0": 0.0, "constant -0.0": -0.0}
RIGHT |= {"text 1": 1.0, "text '1'": 2.0, "rounds": 5.0}


@pytest.fixture(scope="module")
def stock(plugin_wheel: Path, release: tuple[ReleaseWheel, Path], tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """Stock Triton and the plugin."""
    return environment(tmp_path_factory.mktemp("stock"), str(release[1]), plugin_wheel)


def results(venv: Venv, cache: Path) -> tuple[dict[str, float | str], str]:
    """What each kernel of the probe stored, and what was printed beside."""
    settings = {"TRITON_DEFAULT_BACKEND": "spirv", "TRITON_SPIRV_DEVICE": "cpu", "TRITON_DEFAULT_FP_FUSION": "1"}
    done = venv.run(PROBE, TRITON_CACHE_DIR=str(cache), **settings)
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout)
    return found, done.stderr


def damage(cache: Path, name: str) -> None:
    """Cut metadata of a kernel off, or change a bit of its code."""
    (path,) = cache.glob(f"*/{name}")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data if name.endswith(".spv") else data[:40])


def test_kernels_are_right_beside_stock_triton(stock: Venv, tmp_path: Path) -> None:
    for name in ("", "rounds.json", "rounds.spv"):
        if name:
            damage(tmp_path, name)
        found, told = results(stock, tmp_path)
        assert found.pop("bf16 1e-09") == pytest.approx(1e-9, rel=2**-8)
        assert [str(value) for value in found.values()] == [str(value) for value in RIGHT.values()], name
        assert found.keys() == RIGHT.keys() and told == ""


@pytest.mark.parametrize("name", PATCHES)
def test_upstream_s_test_of_the_patch_passes(name: str, stock: Venv, tmp_path: Path) -> None:
    """It fails without the patch, as test_mail.py has it."""
    tests = [shutil.copy(path, tmp_path) for path in (ROOT / "patches/tests" / name).rglob("test_*.py")]
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "PYTEST", "PYTHON"))}
    settings |= {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [str(stock.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), *tests]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


#: File of stock Triton → a line of a function that is replaced there, which another version has otherwise.
OTHERWISE = {
    "runtime/jit.py": "    key = (tuple(specialization), str(options))",
    "language/semantic.py": '            get_value_fn = getattr(self.builder, f"get_{dtype.name}")',
    "compiler/compiler.py": "    always_compile = knobs.compilation.always_compile",
}


def test_what_would_be_wrong_beside_another_version_is_refused(stock: Venv, tmp_path: Path) -> None:
    for name, line in OTHERWISE.items():
        path = stock.site_packages / "triton" / name
        assert path.read_text().count(f"\n{line}\n") == 1
        path.write_text(path.read_text().replace(f"\n{line}\n", f"\n{line}  # otherwise\n"))
    found, told = results(stock, tmp_path)
    (line,) = told.splitlines()
    assert "this is not stock Triton 3.9.0" in line
    assert "left out: bf16-constants, damaged-metadata, equal-constants." in line
    refused = {name: str(found[name]) for name in RIGHT if found[name] != RIGHT[name]}
    assert "six decimal places of 1.52587890625e-05 in bfloat16" in refused.pop("bf16 1.52587890625e-05")
    assert "six decimal places of 1e-09 in bfloat16" in str(found["bf16 1e-09"])
    assert "takes constants that compare equal for one" in refused.pop("constant -0.0")
    assert refused == {}
    damage(tmp_path, "rounds.spv")
    found, _ = results(stock, tmp_path)
    assert "the .spv of kernel 'rounds' is damaged: remove" in str(found["rounds"])
