"""The C++ of the runtime."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "backend" / "native"
#: Headers whose functions ask the process's std::locale for facets. A process may have two C++ libraries, because a
#: driver or a layer brings its own: the facets are then those of the other one, and a call of them crashes.
OF_LOCALES = ("fstream", "iomanip", "iostream", "istream", "locale", "ostream", "regex", "sstream")


@pytest.mark.parametrize("path", sorted(NATIVE.rglob("*.[ch]*")), ids=lambda path: path.relative_to(NATIVE).as_posix())
def test_locales_are_not_asked(path: Path) -> None:
    included = re.findall(r"^#include <(\w+)>", path.read_text(), re.MULTILINE)
    assert not set(included) & set(OF_LOCALES)
