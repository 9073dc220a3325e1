"""`index OUT URL=SHA256SUMS…`: write the pages of a package index (PEP 503 and 691) for the wheels of releases.

Of each release, URL is the folder that its files are served from, and SHA256SUMS the file that `release` wrote. Any
server of plain files can serve OUT: pip's `--index-url` is the address of OUT/simple/. Wheels without some of the
backends have an index of their own, such as OUT/only-spirv/simple/: by the order of versions pip would take
`1.0+spirv.0.1.0.only.spirv` for newer than `1.0+spirv.0.1.0`.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import quote

from ..errors import ToolError
from ..project import Project, replace_file

_ONLY = re.compile(r"\.(only(?:\.[a-z][a-z0-9_]*)+?)(?:\.h[0-9a-f]{8})?$")
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+\.whl)")
_PAGE = """<!DOCTYPE html>
<html><head><meta name="pypi:repository-version" content="1.1"><title>{title}</title></head><body>
{rows}
</body></html>
"""


def run(project: Project, arguments: list[str]) -> int:
    if len(arguments) < 2:
        raise ToolError("index needs a folder to write to, and URL=SHA256SUMS of one release or more")
    files: dict[str, tuple[str, str]] = {}
    for word in arguments[1:]:
        url, _, sums = word.rpartition("=")
        if not url:
            raise ToolError(f"{word!r} is not of the form URL=SHA256SUMS")
        for name, digest in _listed(Path(sums)).items():
            if name in files:
                raise ToolError(f"two releases have a file {name}")
            files[name] = (f"{url.rstrip('/')}/{quote(name)}", digest)
    out = Path(arguments[0])
    for folder in sorted({place(name) for name in files}):
        count = write_index(out / folder, {name: facts for name, facts in files.items() if place(name) == folder})
        wheels = sum(place(name) == folder for name in files)
        print(f"{out / folder}: {wheels} wheels of {count} distributions")
    return 0


def place(wheel: str) -> str:
    """The folder in OUT of the index that lists a wheel: '' for whole ones, else such as `only-spirv`."""
    found = _ONLY.search(wheel.split("-")[1])
    return found[1].replace(".", "-") if found else ""


def _listed(sums: Path) -> dict[str, str]:
    """File → digest of the wheels that a file of sums names."""
    if not sums.is_file():
        raise ToolError(f"there is no file {sums}")
    found = {}
    for line in sums.read_text().splitlines():
        match = _LINE.fullmatch(line)
        if not match or "/" in match[2]:
            raise ToolError(f"{sums}: {line!r} is not a sha256 and the name of a wheel")
        found[match[2]] = match[1]
    return found


def write_index(out: Path, files: dict[str, tuple[str, str]]) -> int:
    """Write the pages for files, by name their URL and sha256; how many distributions there are."""
    distributions: dict[str, list[str]] = {}
    for name in sorted(files):
        distributions.setdefault(re.sub(r"[-_.]+", "-", name.split("-")[0]).lower(), []).append(name)
    meta = {"api-version": "1.1"}
    _write(out / "simple", "packages", [f'<a href="{name}/">{name}</a>' for name in distributions])
    projects = [{"name": name} for name in distributions]
    _json(out / "simple", {"meta": meta, "projects": projects})
    for distribution, names in distributions.items():
        rows = [
            f'<a href="{html.escape(files[name][0])}#sha256={files[name][1]}">{html.escape(name)}</a><br>'
            for name in names
        ]
        _write(out / "simple" / distribution, distribution, rows)
        entries = [{"filename": name, "url": files[name][0], "hashes": {"sha256": files[name][1]}} for name in names]
        versions = sorted({name.split("-")[1] for name in names})
        _json(
            out / "simple" / distribution, {"meta": meta, "name": distribution, "versions": versions, "files": entries}
        )
    return len(distributions)


def _write(folder: Path, title: str, rows: list[str]) -> None:
    replace_file(folder / "index.html", _PAGE.format(title=title, rows="\n".join(rows)).encode())


def _json(folder: Path, content: object) -> None:
    replace_file(folder / "index.json", (json.dumps(content, indent=1) + "\n").encode())
