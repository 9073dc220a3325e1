"""Writes the tables of variables in docs/settings.md and docs/internals/building.md, from backend/settings.py.

``python -m docs.generate_settings`` writes them, with ``--check`` it only says whether they are current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from backend.settings import DEVELOPERS, USERS, table

ROOT = Path(__file__).resolve().parents[1]
PAGES = {ROOT / "docs/settings.md": USERS, ROOT / "docs/internals/building.md": DEVELOPERS}
START = "<!-- settings: written by python -m docs.generate_settings -->\n"
END = "<!-- end of settings -->\n"


def current(path: Path, audience: str) -> str:
    """A page's text with its table as it must be. Raises ValueError if the page has no place for one."""
    text = path.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{path} has no lines {START.strip()!r} and {END.strip()!r}")
    return f"{before}{START}{table(audience)}\n{END}{after}"


def stale() -> dict[Path, str]:
    """The pages that are not current, with the text that they must have."""
    pages = {path: current(path, audience) for path, audience in PAGES.items()}
    return {path: text for path, text in pages.items() if path.read_text(encoding="utf-8") != text}


def main() -> int:
    """Writes the tables, or checks them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the tables are current")
    check = parser.parse_args().check
    pages = stale()
    for path, text in pages.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)} {'is not current' if check else 'was written'}")
    return 1 if check and pages else 0


if __name__ == "__main__":
    sys.exit(main())
