"""The Python on the pages runs, in the wheel, as a reader would paste it."""

import os
import re
import sys
import textwrap
from pathlib import Path

import pytest

from tests.device.processes import run

from .pages import PAGES, ROOT, blocks, program

_TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
_RUN = [page for page, text in _TEXTS.items() if program(text)]


def printed(source: str, name: str, folder: Path) -> str:
    """What a program prints, run in ``folder`` with the checkout's examples at hand."""
    file = folder / name
    file.write_text(source, encoding="utf-8")
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = run([sys.executable, name], cwd=folder, PYTHONPATH=paths)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", _RUN)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    out = printed(program(_TEXTS[page]), f"page_{Path(page).stem.replace('-', '_')}.py", tmp_path)
    if page == "README.md":
        assert out == "largest error: 0.0\n" * 2


def test_a_fragment_of_a_file_is_in_that_file() -> None:
    named = [
        (page, text, match)
        for page, text in _TEXTS.items()
        for match in re.finditer("^ *<!-- fragment: of (.+) -->", text, re.MULTILINE)
    ]
    assert named
    for page, text, match in named:
        line = text[: match.start()].count("\n") + 1
        block = next(one for one in blocks(text) if one.first > line)
        assert "\n".join(block.lines) in (ROOT / match[1]).read_text(encoding="utf-8"), f"{page}:{line}"


def test_lines_keep_their_numbers_and_fragments_are_left_out() -> None:
    page = textwrap.dedent("""\
        <!-- python
        x = 1
        -->
        ```python
        y = x
        ```
        <!-- fragment: not whole -->
        ```python
        z = …
        ```
        1. In a list:
           ```python
           if y:
               z = y
           ```
        """)
    lines = program(page).splitlines()
    assert [(number, line) for number, line in enumerate(lines, 1) if line] == [
        (2, "x = 1"),
        (5, "y = x"),
        (13, "if y:"),
        (14, "    z = y"),
    ]
