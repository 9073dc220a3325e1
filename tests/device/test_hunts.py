"""The hunts of docs/debugging.md say what the page says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.device.forks import run_python
from tests.device.helpers import device_capabilities

HUNTS = Path(__file__).parents[2] / "docs" / "hunts"


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_python([str(HUNTS / script), *arguments], os.environ | variables)


def test_the_bug_hunt() -> None:
    # The last row is wrong only where something other than zeros lies behind the tensor.
    said = re.compile(r"6[34] of 64 rows are wrong; the first is 1024 instead of 1000\n")
    assert said.fullmatch(run("wrong_sums.py").stdout)
    assert said.fullmatch(run("wrong_sums.py", TRITON_INTERPRET="1").stdout)
    checked = run("wrong_sums.py", TRITON_SPIRV_CHECK_BOUNDS="1")
    assert re.search(
        r"OutOfBounds: .*wrong_sums\.py:16: kernel 'row_sums': load out of bounds: argument 'x' at index 640[01]\d, "
        r"but it has 64000 elements; program \(63, 0, 0\); 24 such accesses",
        checked.stderr,
    ), checked.stderr
    assert "total += tl.load" in (HUNTS / "wrong_sums.py").read_text().splitlines()[15]
    assert run("wrong_sums.py", "--mended").stdout == "0 of 64 rows are wrong; the first is 1000 instead of 1000\n"


def test_the_speed_hunt(tmp_path: Path) -> None:
    cache = {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    widths = {}
    for name, arguments in (("column_max", []), ("column_max_mended", ["--mended"])):
        done = run("slow_columns.py", *arguments, **cache)
        assert done.returncode == 0, done.stderr
        page = tmp_path / f"{name}.html"
        command = [sys.executable, "-m", "triton.backends.spirv.cli", "inspect", name, "-o", str(page)]
        subprocess.run(command, env=os.environ | cache, check=True, capture_output=True)
        found = re.search(r'type="application/json">(.*?)</script>', page.read_text(), re.S)
        assert found is not None
        widths[name] = next(entry for entry in json.loads(found[1])["accesses"] if entry["what"] == "load")
    assert widths["column_max"]["places"][0].endswith("slow_columns.py:21")
    if device_capabilities().processor:
        assert re.match(r"\d+ gathers or scatters", widths["column_max"]["why"])
        assert widths["column_max_mended"]["bits"] >= 128 > widths["column_max"]["bits"]
        return
    # With subgroups of 32 and more each lane has one element of the tile.
    wide = 128 if device_capabilities().subgroup_size <= 8 else 32
    assert widths["column_max"]["bits"] == 32 and widths["column_max_mended"]["bits"] == wide
    assert "consecutive only for 1 element" in widths["column_max"]["why"]
