"""FileCheck, which upstream's wheel brings along, and files of sections whose patterns it reads."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import triton

FILECHECK = Path(triton.__file__).parent / "FileCheck"


def check(text: str, patterns: str) -> None:
    """Fails with FileCheck's own report where the patterns do not match."""
    with tempfile.TemporaryDirectory() as folder:
        pattern_file, text_file = Path(folder) / "patterns", Path(folder) / "text"
        pattern_file.write_text(patterns)
        text_file.write_text(text)
        result = subprocess.run(
            [FILECHECK, pattern_file, "--input-file", text_file, "--dump-input-context=20"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 0, result.stderr


def sections(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The name of each file of ``folder``, without its suffix, and its sections."""
    for path in sorted(folder.glob("*.ttgir")):
        yield path.stem, path.read_text("utf-8").split("// -----\n")


def title(section: str) -> str:
    """The first line of a section, which says what is tested."""
    return section.partition("\n")[0].removeprefix("// ")


def directives(section: str) -> dict[str, str]:
    """What a section says of itself in lines such as ``// DEVICES: plain``, but its patterns."""
    return dict(re.findall(r"^// ([A-Z]+): (.+)$", section, re.MULTILINE))


def numbers(text: str) -> dict[str, int]:
    """``name=1, other=2`` as a dictionary."""
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", text)}
