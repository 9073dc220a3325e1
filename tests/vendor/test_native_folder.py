"""Environments of one interpreter share what CMake compiled: `pip install .`, `tools wheel`, and `tools dev`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from vendor_support import ROOT

# What each does about the native part, by its own environment's interpreter.
_BUILD = """
import sys
from pathlib import Path
from tools.packaging.native import build_native
from tools.packaging.plugins import load_plugin
(library,) = build_native(load_plugin(Path(sys.argv[1])), Path(sys.argv[2])).values()
print(library)
"""


def test_only_a_changed_source_is_compiled_again(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    shutil.copytree(ROOT / "tests/vendor/plugins/native-toy", plugin)
    packages, scripts = sysconfig.get_path("purelib"), sysconfig.get_path("scripts")
    environment = {"PATH": f"{scripts}:/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{packages}"}
    libraries, messages = set(), []
    for name, change in (("one", ""), ("other", ""), ("other", "// changed\n")):
        if not (tmp_path / name).is_dir():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / name)], check=True)
        with (plugin / "src/library.cc").open("a") as source:
            source.write(change)
        command = [str(tmp_path / name / "bin/python"), "-c", _BUILD, str(plugin), str(tmp_path / "build")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        libraries.add(done.stdout)
        messages.append("was up to date" in done.stderr)
    assert len(libraries) == 1
    assert messages == [False, True, False]
