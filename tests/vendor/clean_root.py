"""A Debian or Ubuntu with nothing but its base system, in a folder: what a runner or container of a workflow has.

It needs root, debootstrap's package and the network. Programs run there behind chroot, in a mount namespace of their
own, with the certificates and pip's configuration of this machine, but no other file of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_MIRRORS = {"noble": "http://archive.ubuntu.com/ubuntu"}
_DEBIAN = "http://deb.debian.org/debian"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

#: Mounts what programs need, and goes on as the command behind the folders of pip's.
_ENTER = """
set -e
root=$1 folders=$2; shift 2
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for folder in $folders; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Root:
    """``folder`` holds the system. ``folders``: of this machine, with packages that pip is to find."""

    folder: Path
    folders: tuple[str, ...] = ()

    def run(self, script: str, cwd: str = "/", **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of bash as a runner does: it ends at the first command that fails."""
        found = {f"PIP_{name}": value for name, value in _pip_settings().items()}
        found |= {name: "/certificates.crt" for name in ("SSL_CERT_FILE", "PIP_CERT", "GIT_SSL_CAINFO")}
        found |= {"HOME": "/root", "CI": "true", "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
        found["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", f"cd {cwd}\n{script}"]
        command = ["unshare", "-m", "bash", "-c", _ENTER, "enter", str(self.folder), " ".join(self.folders), *shell]
        return subprocess.run(
            command, env=found | environment, capture_output=True, text=True, errors="replace", check=False
        )


def make_root(release: str, folder: Path) -> Root:
    """The base system of ``noble``, ``bookworm``, ``sid`` … in ``folder``, about 20 s. Raises CalledProcessError."""
    scratch = folder.parent / f".{folder.name}"
    scratch.mkdir()
    subprocess.run(["apt-get", "download", "-qq", "debootstrap"], cwd=scratch, check=True)
    (package,) = scratch.glob("debootstrap_*.deb")
    subprocess.run(["dpkg", "-x", package, scratch], check=True)
    scripts = scratch / "usr/share/debootstrap"
    if not (scripts / "scripts" / release).exists():
        (scripts / "scripts" / release).symlink_to("gutsy")  # of every Ubuntu
    ubuntu = ["--no-check-gpg", "--components=main,universe"] if release in _MIRRORS else []
    program = [str(scratch / "usr/sbin/debootstrap"), "--variant=minbase", *ubuntu, release, str(folder)]
    environment = {**os.environ, "DEBOOTSTRAP_DIR": str(scripts)}
    subprocess.run([*program, _MIRRORS.get(release, _DEBIAN)], env=environment, stdout=subprocess.DEVNULL, check=True)
    (folder / "certificates.crt").write_bytes(_CERTIFICATES.read_bytes())
    for name in ("resolv.conf", "hosts"):
        (folder / "etc" / name).write_bytes(Path("/etc", name).read_bytes())
    # A mirror may be a snapshot, whose list of packages is old.
    (folder / "etc/apt/apt.conf.d/99snapshot").write_text('Acquire::Check-Valid-Until "false";\n')
    words = [word.removeprefix("file://") for value in _pip_settings().values() for word in value.split()]
    named = [Path(word) for word in words if word.startswith("/")]
    for path in filter(Path.is_file, named):  # constraints
        copy = folder / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    found = list(filter(Path.is_dir, named))
    # The pages of an index name files beside it.
    return Root(folder, tuple(str(path.parent if path.name == "simple" else path) for path in found))


def _pip_settings() -> dict[str, str]:
    """pip's configuration on this machine: EXTRA_INDEX_URL and the like → value."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(?:global|:env:)\.([\w-]+)='(.*)'$", lines, re.MULTILINE)
    return {name.upper().replace("-", "_"): value for name, value in found}
