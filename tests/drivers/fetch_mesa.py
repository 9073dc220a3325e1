"""Unpacks the Mesa of another Debian release into a folder, with all that it needs; nothing is installed.

    python -m tests.drivers.fetch_mesa trixie FOLDER

On Debian or Ubuntu, without root. newer_mesa.py runs Python and all that it starts on that folder's libraries.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

#: The driver, the loader, and what validates modules and calls; apt adds what they depend on, the C library among it.
_PACKAGES = ("mesa-vulkan-drivers", "libvulkan1", "vulkan-validationlayers", "spirv-tools")


def fetch(release: str, folder: Path) -> None:
    """Unpacks the packages of a Debian release (``trixie``, ``sid``) into ``folder``. Raises CalledProcessError with
    apt's words on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        own = Path(name)
        for part in ("state/lists/partial", "cache/archives/partial"):
            (own / part).mkdir(parents=True)
        (own / "sources.list").write_text(f"deb http://deb.debian.org/debian {release} main\n", encoding="utf-8")
        settings = {
            "Dir::State": own / "state",
            "Dir::State::status": "/dev/null",  # as if nothing were installed
            "Dir::Cache": own / "cache",
            "Dir::Etc::sourcelist": own / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Debug::NoLocking": "true",
            "APT::Sandbox::User": "",
        }
        apt = ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
        subprocess.run([*apt, "update"], check=True)
        subprocess.run([*apt, "install", "-y", "--no-install-recommends", "--download-only", *_PACKAGES], check=True)
        for package in sorted((own / "cache/archives").glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, folder], check=True)


if __name__ == "__main__":
    fetch(sys.argv[1], Path(sys.argv[2]))
