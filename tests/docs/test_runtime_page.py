"""docs/runtime.md has every name that the runtime offers to users, as its docstring describes it."""

from triton.backends.spirv import runtime

from docs.generate_runtime import PAGE, PARTS, page

#: What only people who change the backend need.
_INTERNAL = {"Context"}


def test_the_page_is_as_the_docstrings_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.generate_runtime"


def test_every_name_for_users_is_on_the_page() -> None:
    named = {name for names in PARTS.values() for name in names.split()}
    assert set(runtime._MODULES) - _INTERNAL <= named
    assert all(f"### `{name}" in page() for name in named)
