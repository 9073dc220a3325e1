"""How the generated pages are written, and checked against what is there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def main(path: Path, page: Callable[[], str]) -> int:
    """Writes what ``page`` gives to ``path``, or with ``--check`` says whether that is there; 1 where it is not."""
    module = f"docs.generate_{path.stem.replace('-', '_')}"
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where the page is not current")
    if not parser.parse_args().check:
        path.write_text(page(), encoding="utf-8")
        return 0
    current = path.read_text(encoding="utf-8") == page()
    name = path.relative_to(Path(__file__).parent.parent)
    print(f"{name} is {'current' if current else f'not current: run python -m {module}'}")
    return 0 if current else 1
