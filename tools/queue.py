"""The patch queue: patches/series, the patch files, and overlay/.

A patch file is
    From: Name <mail>
    Subject: one line
    <blank>
    Why: …
    Upstream-Status: …
    ---
    <git diff with a/ and b/ prefixes, three lines of context, no index lines>
Paths are as in upstream's source tree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import ToolError
from .project import Project

DEFAULT_AUTHOR = "Triton SPIR-V developers <triton-spirv@localhost>"

# What each patch says: why it is there, and what upstream thinks of it.
REQUIRED_HEADERS = ("Why", "Upstream-Status")

# What the release form has as text; see `is_tracked`.
TRACKED_SUFFIXES = (".py", ".pyi", ".md", ".txt", ".c", ".cpp", ".cc")
UNTRACKED_FOLDERS = ("include", "lib", "bin", "__pycache__")

_NAMES = re.compile(r"^(?:---|\+\+\+|rename from|rename to|copy from|copy to) (.*?)\t?$")
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def is_tracked(path: str) -> bool:
    """Whether a path of the source tree is in the release form's git repository.

    Only text that a patch can sensibly touch is: the compiled libraries, the third-party tools and the header
    trees of the wheel (1 GB) stay beside it, untracked.
    """
    parts = PurePosixPath(path).parts
    return path.endswith(TRACKED_SUFFIXES) and not any(part in UNTRACKED_FOLDERS for part in parts[:-1])


@dataclass(frozen=True)
class Patch:
    """One patch file, taken apart."""

    name: str
    author: str
    subject: str
    body: str
    diff: str

    def header(self, key: str) -> str:
        """The value of a `Key: …` paragraph of the body, '' if there is none."""
        found = re.search(rf"^{re.escape(key)}:[ \t]*(.*(?:\n(?![A-Z][A-Za-z-]*:).*)*)", self.body, re.MULTILINE)
        return found.group(1).strip() if found else ""

    def paths(self) -> tuple[str, ...]:
        """The source-tree paths that the diff names, wherever git reads one."""
        found: dict[str, None] = {}
        in_header = False
        for line in self.diff.splitlines():
            if match := re.match(r"^diff --git a/(.*) b/(.*)$", line):
                found.update(dict.fromkeys(match.groups()))
                in_header = True
            elif line.startswith("@@ "):
                in_header = False
            elif in_header and (match := _NAMES.match(line)) and match.group(1) != "/dev/null":
                found[re.sub(r"^[ab]/", "", match.group(1)) if line[:3] in ("---", "+++") else match.group(1)] = None
        return tuple(found)

    def hunks(self) -> dict[str, list[tuple[int, str]]]:
        """For each file the (first old line, `@@` line) of its hunks, in order."""
        result: dict[str, list[tuple[int, str]]] = {}
        path = ""
        for line in self.diff.splitlines():
            if line.startswith("diff --git a/"):
                path = line.split(" b/", 1)[-1]
            elif match := _HUNK.match(line):
                result.setdefault(path, []).append((int(match.group(1)), line))
        return result

    def old_lines(self, path: str, header: str) -> tuple[str, ...]:
        """The lines that the hunk of a file with that `@@` line expects to find."""
        found: list[str] = []
        here, inside = "", False
        for line in self.diff.splitlines():
            if line.startswith("diff --git a/"):
                here, inside = line.split(" b/", 1)[-1], False
            elif _HUNK.match(line):
                inside = here == path and line == header
            elif inside and line[:1] != "+" and not line.startswith("\\"):
                found.append(line[1:])
        return tuple(found)

    def missing_headers(self) -> list[str]:
        """Which of the paragraphs that each patch must have are not in its body."""
        return [key for key in REQUIRED_HEADERS if not self.header(key)]

    def message(self) -> str:
        """The commit message: subject, body, and the file name that export gives back."""
        body = f"{self.body}\n\n" if self.body else ""
        return f"{self.subject}\n\n{body}Patch-File: {self.name}\n"

    def text(self) -> str:
        """The patch file's content in the normal form."""
        body = f"{self.body}\n" if self.body else ""
        return f"From: {self.author}\nSubject: {self.subject}\n\n{body}---\n{self.diff}"


def parse_patch(name: str, text: str) -> Patch:
    """Take a patch file apart; a ToolError says what is missing."""
    head, separator, diff = text.partition("\n---\n")
    if not separator:
        raise ToolError(f"patch {name}: no `---` line between header and diff")
    start = diff.find("diff --git ")
    if start < 0:
        raise ToolError(f"patch {name}: no `diff --git` after the header")
    fields, _, body = head.partition("\n\n")
    # A subject may be folded over several lines, as in mail.
    fields = re.sub(r"\n[ \t]+", " ", fields)
    values: dict[str, str] = {}
    for line in fields.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            values[key.strip().lower()] = value.strip()
    if not values.get("subject"):
        raise ToolError(f"patch {name}: no `Subject:` line at its top")
    return Patch(name, values.get("from", DEFAULT_AUTHOR), values["subject"], body.strip("\n"), diff[start:])


def hunk_ranges(diff: str) -> dict[str, list[tuple[str, int, int]]]:
    """For each file of a diff the (`@@` line, first and last changed line in the new file) of its hunks, in order."""
    result: dict[str, list[tuple[str, int, int]]] = {}
    path, line_number = "", 0
    for line in diff.splitlines():
        if line.startswith("diff --git a/"):
            path, line_number = line.split(" b/", 1)[-1], 0
        elif _HUNK.match(line):
            line_number = int(_HUNK.match(line).group(2))  # type: ignore[union-attr]
            result.setdefault(path, []).append((line, 0, 0))
        elif line_number and line[:1] in ("+", "-", " "):
            if line[0] != " ":
                header, first, _ = result[path][-1]
                result[path][-1] = (header, first or line_number, line_number)
            line_number += line[0] != "-"
    return result


def uses_module(text: str, path: str) -> bool:
    """Whether a text (of a patch, or of a Python file) names an overlay file, or imports the module that it is."""
    module = re.escape(PurePosixPath(path).stem)
    imports = (
        rf"^[+ ]?\s*(?:from\s+[\w.]*\b{module}\s+import|from\s+[\w.]+\s+import\s.*\b{module}\b|import\s.*\b{module}\b)"
    )
    return path in text or bool(re.search(imports, text, re.MULTILINE))


def series_names(project: Project) -> list[str]:
    """The patch file names of patches/series, in order; blank lines and `#` comments are skipped."""
    series = project.patches / "series"
    if not series.exists():
        return []
    names = [line.split("#", 1)[0].strip() for line in series.read_text().splitlines()]
    return [name for name in names if name]


def load_series(project: Project, compiled: bool = False) -> list[Patch]:
    """Read the whole series; a ToolError names the first patch that is missing, doubled or unsafe.

    With `compiled` a patch may touch any file of the source tree: that is what the source form builds from.
    """
    patches: list[Patch] = []
    seen: set[str] = set()
    for name in series_names(project):
        if name in seen:
            raise ToolError(f"patches/series names {name} twice")
        seen.add(name)
        if "/" in name or name.startswith("."):
            raise ToolError(f"patches/series: {name} is not a plain file name")
        path = project.patches / name
        if not path.is_file():
            raise ToolError(f"patches/series names {name}, which is not in patches/")
        patch = parse_patch(name, path.read_text())
        refuse_unsafe(patch, compiled)
        patches.append(patch)
    return patches


def refuse_unsafe(patch: Patch, compiled: bool = False) -> None:
    """Refuse a patch that would write outside the tree, make a link, or (unless `compiled`) change compiled code."""
    for path in patch.paths():
        where = PurePosixPath(path)
        if where.is_absolute() or ".." in where.parts or ".git" in where.parts or path.startswith('"'):
            raise ToolError(f"patch {patch.name}: {path} is not a plain path inside the source tree")
        if not compiled and (not path.startswith("python/triton/") or not is_tracked(path)):
            raise ToolError(
                f"patch {patch.name}: {path} is not among the text files of the release wheel (python/triton/**); "
                "a change of compiled code needs the source form (--source)"
            )
    if re.search(r"^(new file mode|new mode) 1[26]0000$", patch.diff, re.MULTILINE):
        raise ToolError(f"patch {patch.name}: adds a link; only plain files are allowed")


def overlay_files(project: Project) -> dict[str, Path]:
    """Source-tree path → file of overlay/, sorted by path."""
    if not project.overlay.is_dir():
        return {}
    files: dict[str, Path] = {}
    for path in sorted(project.overlay.rglob("*")):
        relative = path.relative_to(project.overlay).as_posix()
        if "__pycache__" in path.parts or path.name.startswith(".") or path.is_dir() and not path.is_symlink():
            continue
        if path.is_symlink():
            raise ToolError(f"overlay/{relative} is a link; only plain files are laid over the tree")
        if not relative.startswith("python/triton/"):
            if "/" in relative:
                raise ToolError(f"overlay/{relative}: only python/triton/** is laid over the tree")
            continue  # a note beside python/, such as a README
        if not is_tracked(relative):
            raise ToolError(f"overlay/{relative}: only text files ({' '.join(TRACKED_SUFFIXES)}) can be laid over")
        files[relative] = path
    return files


def queue_digest(patches: Mapping[str, bytes], overlay: Mapping[str, bytes]) -> str:
    """sha256 over the series, every patch in it (in order) and every overlay file: names, lengths and bytes."""
    digest = hashlib.sha256()

    def feed(kind: str, name: str, data: bytes) -> None:
        digest.update(f"{kind} {name} {len(data)}\n".encode())
        digest.update(data)

    feed("series", "series", series_text(list(patches)))
    for name, data in patches.items():
        feed("patch", name, data)
    for relative, data in sorted(overlay.items()):
        feed("overlay", relative, data)
    return digest.hexdigest()


def series_text(names: list[str]) -> bytes:
    """The content of patches/series."""
    return "".join(f"{name}\n" for name in names).encode()


def queue_hash(project: Project) -> str:
    """`queue_digest` of what is in patches/ and overlay/."""
    patches: dict[str, bytes] = {}
    for name in series_names(project):
        path = project.patches / name
        if not path.is_file():
            raise ToolError(f"patches/series names {name}, which is not in patches/")
        patches[name] = path.read_bytes()
    return queue_digest(patches, {name: path.read_bytes() for name, path in overlay_files(project).items()})
