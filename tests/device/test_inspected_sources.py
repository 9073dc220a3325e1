"""The lines of Python on a page of ``inspect``: found from any folder, and told where they have changed since."""

import json
import os
import re
import time
from pathlib import Path

from tests.device.forks import run_python

KERNEL = """
import torch, triton, triton.language as tl
@triton.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < n, other=0), 0))
row_sum[(1,)](torch.randn(1000), torch.empty(1), 1000, BLOCK=1024)
"""


def _run(folder: Path, cache: Path, *arguments: str) -> None:
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"}
    done = run_python(["-m", "triton.backends.spirv.cli", *arguments], environment, folder)
    assert done.returncode == 0, done.stderr


def _page(folder: Path, cache: Path) -> tuple[str, str]:
    """What the page says first, and the lines of Python on it."""
    _run(folder, cache, "inspect", "row_sum", "-o", "page.html")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', (folder / "page.html").read_text())
    assert found is not None
    data = json.loads(found[1])
    lines = next(stage["lines"] for stage in data["stages"] if stage["id"] == "source")
    return data["note"], "\n".join(text for text, _ in lines)


def test_sources_are_found_and_what_changed_is_told(tmp_path: Path) -> None:
    folder, cache = tmp_path / "sub", tmp_path / "cache"
    folder.mkdir()
    script = folder / "kernels.py"
    script.write_text(KERNEL)
    _run(tmp_path, cache, "profile", "sub/kernels.py")
    note, source = _page(folder, cache)
    assert note == "" and "def row_sum" in source
    os.utime(script, (time.time() + 10, time.time() + 10))  # as a checkout of the same text leaves it
    assert _page(folder, cache) == ("", source)
    script.write_text("# a new line\n" + KERNEL)
    os.utime(script, (0, 0))
    note, _ = _page(folder, cache)
    assert note == f"{script} was changed after the kernel was compiled: its lines may be others by now."
    script.unlink()
    note, source = _page(folder, cache)
    assert note == f"{script} is not there, so that its lines are not shown." and "def row_sum" not in source
