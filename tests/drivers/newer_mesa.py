"""Runs Python, and all that it starts, under the Mesa of a newer Debian, without installing it.

    python -m tests.drivers.fetch_mesa sid FOLDER
    python -m tests.drivers.newer_mesa FOLDER -m pytest -n0 tests/device/test_dot_fragments.py

FOLDER holds ``usr/lib/x86_64-linux-gnu`` with libvulkan_lvp.so, libvulkan.so.1, all that they need, and the C library
that they were built against, whose loader starts every program. If the validation layer and SPIRV-Tools are unpacked
there too, modules and calls are validated; the installed ones are older than the driver and refuse its extensions.
"""

import os
import shlex
import sys
import sysconfig
from pathlib import Path

from triton.backends.spirv.inspection.offline import newer_interpreter, newer_manifest
from triton.backends.spirv.runtime.vulkan import manifests

_LIBRARY = "libvulkan_lvp.so"
_CHECKOUT = Path(__file__).parents[2]


def interpreter(folder: Path, where: Path) -> Path:
    """The interpreter that runs on the libraries of ``folder``: a script in ``where``, which becomes an environment
    with the packages of this one. It is the ``sys.executable`` of what it runs, so that child processes are started by
    it as well. Raises NoMesa."""
    loader, flag, _, *libraries, program = newer_interpreter(folder, _LIBRARY)
    bin_folder = where / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    made = bin_folder / "python"
    _write(made, _exec([loader, flag, _AS_CALLED, *libraries, program]))
    (where / "pyvenv.cfg").write_text(
        f"home = {Path(program).parent}\ninclude-system-site-packages = false\nversion = {sys.version.split()[0]}\n",
        encoding="utf-8",
    )
    _link(where / "lib", Path(sys.prefix) / "lib")
    for file in Path(sysconfig.get_path("scripts")).iterdir():
        if file.name.startswith("python") or file.is_dir():  # __pycache__
            continue
        with file.open("rb") as opened:
            first, rest = opened.readline(), opened.read()
        if first.startswith(b"#!") and b"python" in first:
            _write(bin_folder / file.name, f"#!{made}\n".encode() + rest)
        else:
            _link(bin_folder / file.name, file)
    for file in (folder / "usr" / "bin").glob("spirv-*"):
        _write(bin_folder / file.name, _exec([loader, *libraries, str(file)]))
    return made


#: How a script was called, and where its user has libraries searched first, as words of a shell.
_AS_CALLED, _USERS_OWN = '"$0"', '"${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}"'


def _exec(words: list[str]) -> bytes:
    """A script that goes on as ``words``. The loader's option replaces LD_LIBRARY_PATH, which keeps its rank here."""
    quoted = [word if word == _AS_CALLED else shlex.quote(word) for word in words]
    libraries = quoted.index("--library-path") + 1
    quoted[libraries] = _USERS_OWN + quoted[libraries]
    return f'#!/bin/sh\nexec {" ".join(quoted)} "$@"\n'.encode()


def _write(path: Path, content: bytes) -> None:
    """Writes a program in one step: another process may be running the old one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(path)


def _link(path: Path, to: Path) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.symlink_to(to)
    fresh.replace(path)


def environment(folder: Path, where: Path) -> dict[str, str]:
    """What such a process needs in its environment: the driver's manifest, which is written to ``where``, the programs
    there, and the validation layer. Without that layer nothing is validated."""
    manifest = str(newer_manifest(folder, _LIBRARY, where))
    made = {**os.environ, **dict.fromkeys(manifests.REPLACING, manifest), "TRITON_SPIRV_DEVICE": "llvmpipe"}
    made["PATH"] = f"{where / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    layers = folder / "usr" / "share" / "vulkan" / "explicit_layer.d"
    if (layers / "VkLayer_khronos_validation.json").exists() and any((folder / "usr" / "bin").glob("spirv-val")):
        made["VK_LAYER_PATH"] = str(layers)
    else:
        made["TRITON_SPIRV_VALIDATE"] = "0"
    return made


def main() -> None:
    """The command line: see above."""
    folder = Path(sys.argv[1]).resolve()
    where = _CHECKOUT / "build" / "newer-mesa"
    program = str(interpreter(folder, where))
    os.execve(program, [program, *sys.argv[2:]], environment(folder, where))


if __name__ == "__main__":
    main()
