"""Where refused modules are saved: private files that nobody can foresee, and never in the way of the error."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from tests.device.processes import run_script

SPIRV = b"garbage!" * 9
SCRIPT = f"""
from triton.backends.spirv.runtime import KernelRejected
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.kernel import Kernel
for _ in range(2):
    try:
        Kernel(current(), "add", {SPIRV!r})
    except KernelRejected as error:
        print(error.path, "|", error)
"""


def foreseen(folder: Path) -> Path:
    """A name that is made of the kernel, the user and the module alone."""
    digest = hashlib.sha256(SPIRV).hexdigest()[:16]
    return folder / f"triton-spirv-{os.getuid()}-add-{digest}.spv"


@pytest.mark.parametrize("planted", ["link", "folder", "nothing"])
def test_a_module_goes_to_a_file_of_its_own(tmp_path: Path, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "temporary"
    folder.mkdir()
    if planted == "link":
        foreseen(folder).symlink_to(victim)
    elif planted == "folder":
        foreseen(folder).mkdir()
    done = run_script(SCRIPT, TMPDIR=str(folder))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    path = Path(first.split(" | ")[0])
    assert second == first  # a module is saved once
    assert "kernel 'add': " in first
    assert (path.parent, path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (folder, SPIRV, 0o600)
    assert path != foreseen(folder)
    assert victim.read_text() == "precious"


def test_a_module_that_cannot_be_saved_does_not_hide_the_error(tmp_path: Path) -> None:
    full = "import tempfile\ntempfile.tempdir = '/proc/self/no-such'\n"
    done = run_script(full + SCRIPT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith(" | kernel 'add': ")
    assert "could not be saved" in done.stdout
