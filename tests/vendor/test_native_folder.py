"""Environments of one interpreter share what CMake compiled: `pip install .`, and `tools wheel` or `tools dev` after
it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from vendor_support import ROOT

# What `pip install .` and `tools wheel` do about the native part, each by its own environment's interpreter.
_BUILD = """
import sys
from pathlib import Path
from tools.packaging.native import DEVELOPMENT, WHEEL, build_native
from tools.packaging.plugins import load_plugin
form = DEVELOPMENT if sys.argv[3:] else WHEEL
(library,) = build_native(load_plugin(Path(sys.argv[1])), Path(sys.argv[2]), form).values()
print(library)
"""


def test_a_second_environment_and_a_development_build_compile_nothing(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    shutil.copytree(ROOT / "tests/vendor/plugins/native-toy", plugin)
    packages, scripts = sysconfig.get_path("purelib"), sysconfig.get_path("scripts")
    environment = {"PATH": f"{scripts}:/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{packages}"}
    libraries, messages = [], []
    for name in ("one", "other"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / name)], check=True)
        command = [str(tmp_path / name / "bin/python"), "-c", _BUILD, str(plugin), str(tmp_path / "build")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        libraries.append(done.stdout)
        messages.append("was up to date" in done.stderr)
    assert libraries[0] == libraries[1]
    assert messages == [False, True]
    places = []
    for change in ("", "", "// changed\n"):
        with (plugin / "src/library.cc").open("a") as source:
            source.write(change)
        done = subprocess.run([*command, "dev"], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert ("build the native part" in done.stderr) == bool(change), done.stderr
        places.append(done.stdout)
    assert places[0] == places[1] == places[2] != libraries[0]
