"""Build the toy upstream: the plugin contract of triton's own setup.py in small, for the tests of the source form.

Reads TRITON_PLUGIN_DIRS, TRITON_WHEEL_NAME, TRITON_WHEEL_VERSION_SUFFIX, LLVM_SYSPATH and TRITON_OFFLINE_BUILD;
understands `bdist_wheel --dist-dir DIR` only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

TRITON_VERSION = "1.0"
IN_TREE = ("nvidia", "amd")
HERE = Path(__file__).resolve().parent
SEEN = ("TRITON_PLUGIN_DIRS", "TRITON_WHEEL_VERSION_SUFFIX", "LLVM_SYSPATH", "TRITON_OFFLINE_BUILD")


def plugins() -> dict[str, Path]:
    """Name → folder of each plugin."""
    found: dict[str, Path] = {}
    for entry in filter(None, os.environ.get("TRITON_PLUGIN_DIRS", "").split(";")):
        backend = Path(entry) / "backend"
        name = (backend / "name.conf").read_text().strip()
        for file in ("compiler.py", "driver.py"):
            assert (backend / file).exists(), f"{file} not found in {backend}"
        found[name] = Path(entry)
    return found


def compile_library(found: dict[str, Path], build: Path) -> Path:
    """Build libtriton.so with the plugins' parts in it."""
    native = [path for path in found.values() if (path / "CMakeLists.txt").exists()]
    names = [name for name, path in found.items() if path in native]
    settings = {
        "TRITON_PLUGIN_DIRS": ";".join(map(str, native)),
        "TRITON_PLUGIN_NAMES": ";".join(names),
        "TRITON_CODEGEN_BACKENDS": ";".join(IN_TREE),
        "Python_EXECUTABLE": sys.executable,
    }
    options = [f"-D{key}={value}" for key, value in settings.items()]
    subprocess.run(["cmake", "-G", "Ninja", "-S", str(HERE), "-B", str(build), *options], check=True)
    subprocess.run(["cmake", "--build", str(build)], check=True)
    return build / "libtriton.so"


def main() -> None:
    """Build the wheel."""
    assert sys.argv[1:3] == ["bdist_wheel", "--dist-dir"], sys.argv
    out = Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    found = plugins()
    library = compile_library(found, HERE / "build")
    stage = HERE / "build" / "stage"
    shutil.copytree(HERE / "python" / "triton", stage / "triton")
    (stage / "triton" / "_C").mkdir()
    shutil.copy(library, stage / "triton" / "_C")
    for name, folder in found.items():
        shutil.copytree(folder / "backend", stage / "triton" / "backends" / name)
        for part in ("language", "tools"):
            if (folder / part).is_dir():
                shutil.copytree(folder / part, stage / "triton" / part / "extra", dirs_exist_ok=True)
    name = os.environ.get("TRITON_WHEEL_NAME", "triton")
    version = TRITON_VERSION + os.environ.get("TRITON_WHEEL_VERSION_SUFFIX", "")
    info = f"{name}-{version}.dist-info"
    points = "".join(f"{name} = triton.backends.{name}\n" for name in (*IN_TREE, *found))
    files = {path.relative_to(stage).as_posix(): path.read_bytes() for path in stage.rglob("*") if path.is_file()}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: toy\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = f"[triton.backends]\n{points}".encode()
    files[f"{info}/seen.json"] = json.dumps({key: os.environ.get(key) for key in SEEN}).encode()
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(out / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)


if __name__ == "__main__":
    main()
