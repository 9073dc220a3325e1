"""The C++ of the runtime."""

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


def test_what_changes_headers_is_compiled_alone() -> None:
    """A file that defines or undefines macros before its first header: behind another file in one compilation, the
    headers have been read. With _FORTIFY_SOURCE, a fault in an emulated subgroup would end the process."""
    cmake = (NATIVE.parents[1] / "CMakeLists.txt").read_text()
    alone = re.findall(r'"\$\{TRITON_SPIRV_NATIVE\}/(\S+)" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON', cmake)
    listed = re.findall(r'^ +"\$\{TRITON_SPIRV_NATIVE\}/(\S+\.cpp)"', cmake, re.MULTILINE)
    first = {
        one: (NATIVE / one).read_text().partition("#include")[0] for one in set(listed) - {"cpu/windows_faults.cpp"}
    }
    assert sorted(alone) == [one for one, text in sorted(first.items()) if re.search(r"^#(un|)def", text, re.MULTILINE)]
