"""Writes docs/internals/surface.md: what of Triton's public interface works on this backend, as tests/surface/ runs it.

``python -m docs.generate_surface`` writes the page, with ``--check`` it only says whether the page is current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import triton.language as tl
import triton.language.semantic  # noqa: F401  (a name of triton.language once a kernel was compiled)
from triton.backends.spirv.functions.cuda_symbols import CUDA_SYMBOLS
from triton.backends.spirv.functions.forms import FORMS
from triton.backends.spirv.functions.hip_symbols import HIP_SYMBOLS
from triton.backends.spirv.options import FOREIGN

from docs import pages
from tests.surface import language_names as names
from tests.surface.language_rows import METHODS, ROWS
from tests.upstream.expected import EXPECTED
from tests.upstream.results import RATE

PAGE = Path(__file__).parent / "internals/surface.md"

_HEADER = """# Triton's public interface

`python -m docs.generate_surface` generates this page from the tables of tests/surface/. Each name in them is run
against NumPy or refused with a reason. The tests walk upstream's own modules, so a name that a new release adds fails
them until it is in a table.

"""


def _upstreams_tests() -> str:
    rate = json.loads(RATE.read_text(encoding="utf-8"))
    rows = "".join(f"| `{row.tests}` | {row.reason} |\n" for row in EXPECTED)
    share = f"{rate['passed']:,} of {rate['ran']:,} passed ({100 * rate['passed'] / rate['ran']:.1f} %)"
    return (
        f"\n## Upstream's own tests\n\nOf the tests of upstream's language {rate['of']},\n{share} on an "
        f"{rate['device']} ({rate['date']}). `python3 -m tools upstream-tests` runs\nthose of the checkout in "
        "`upstream/`. These may fail:\n\n| tests | why |\n| --- | --- |\n" + rows
    )


def _functions() -> set[str]:
    return {name for row in ROWS for name in row.names.split()}


def page() -> str:
    """The text of docs/internals/surface.md."""
    public = [name for name in dir(tl) if not name.startswith("_")]
    methods = [name for name in dir(tl.tensor) if not name.startswith("_")]
    dtypes = [name for name in names.DTYPES if name not in names.REFUSED]
    refused = {**names.REFUSED, **{f"tensor.{name}": why for name, why in names.REFUSED_METHODS.items()}}
    refused |= names.REFUSED_VALUES | {
        f"tensor.{name}": "upstream does not define it" for name in names.UNDEFINED_METHODS
    }
    lines = [
        _HEADER,
        "| what | names | |\n| --- | --- | --- |\n",
        f"| `triton.language` | {len(public)} | {len(_functions())} functions and classes in {len(ROWS)} kernels, "
        f"each optional parameter passed by name; {len(dtypes)} element types; {len(names.FRONT_END)} modules and "
        f"types of the front end; {len(names.REFUSED)} refused |\n",
        f"| methods of `tl.tensor` | {len(methods)} | and its operators, in the same kernels and {len(METHODS)} more; "
        f"upstream itself has ended {len(names.REFUSED_METHODS) + len(names.UNDEFINED_METHODS)} |\n",
        f"| `tl.extra.libdevice` | {len(FORMS)} | {sum(map(len, FORMS.values()))} forms (docs/internals/math.md) |\n",
        f"| `tl.extra.cuda.libdevice` | {len({form.name for form in CUDA_SYMBOLS.values()})} | {len(CUDA_SYMBOLS)} "
        "forms, computed as in `tl.extra.libdevice` |\n",
        f"| `tl.extra.hip.libdevice` | {len({form.name for forms in HIP_SYMBOLS.values() for form in forms})} | "
        f"{sum(map(len, HIP_SYMBOLS.values()))} forms, likewise |\n",
        f"| launch options without effect | {len(FOREIGN)} | options of other backends, accepted without effect |\n",
        _upstreams_tests(),
        "\n## Refused\n\n| name | why |\n| --- | --- |\n",
        *(f"| `{name}` | {why} |\n" for name, why in sorted(refused.items())),
        "\n## Launch options without effect\n\nThey are accepted, and logged once per process by the logger "
        "`triton.backends.spirv.options` at level INFO.\n\n| option | why it has no effect |\n| --- | --- |\n",
        *(f"| `{name}` | {why} |\n" for name, why in FOREIGN.items()),
    ]
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, page))
