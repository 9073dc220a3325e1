"""Writes what others report of drivers into docs/devices.md, from backend/field_reports.py.

``python -m docs.generate_devices`` writes it, with ``--check`` it only says whether it is current.
"""

from __future__ import annotations

import sys
from pathlib import Path

from backend.field_reports import table

from .pages import main

PAGE = Path(__file__).parent / "devices.md"
START = "<!-- reports: written by python -m docs.generate_devices -->\n"
END = "<!-- end of reports -->\n"


def page() -> str:
    """The page with its table as it must be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{table()}\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main(PAGE, page))
