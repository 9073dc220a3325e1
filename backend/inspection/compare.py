"""``triton-spirv inspect --compare``: two pages about kernels side by side, and what differs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..ahead_of_time.errors import RequestError

_DATA = re.compile(r'<script id="data" type="application/json">(.*?)</script>', re.DOTALL)


def _words(text: str) -> str:
    """A text as HTML, with what stands between backticks as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text))


def read_page(path: Path) -> tuple[str, dict[str, Any]]:
    """A page that inspect wrote, and its data. Raises RequestError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RequestError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found = _DATA.search(text)
    if found is None:
        raise RequestError(f"{path} is not a page of `triton-spirv inspect`")
    known: dict[str, Any] = json.loads(found[1])
    return text, known


def _figures(known: Mapping[str, Any]) -> dict[str, Any]:
    """What two kernels are compared by."""
    widths = {what: [one["bits"] for one in known["accesses"] if one["what"] == what] for what in ("load", "store")}
    figures: dict[str, Any] = dict(known["facts"])
    figures |= {f"narrowest {what}, bits": min(bits) for what, bits in widths.items() if bits}
    figures["layout conversions that move elements"] = sum(one["lane"] > 0 for one in known["conversions"])
    figures["barriers"] = len(known["shared"]["barriers"])
    figures["steps of banks past the fewest"] = sum(one["steps"] - one["fewest"] for one in known["banks"])
    figures |= {f"instructions: {family}": count for family, count in known["mix"]}
    for name in ("registers", "spills"):
        figures[name] = known["driver"][name]
    speed = known.get("speed")
    figures["median, µs"] = f"{speed['seconds'] * 1e6:.1f}" if speed else None
    return figures


def compared(first: Path, second: Path) -> str:
    """The page about two pages. Raises RequestError."""
    pages = [read_page(path) for path in (first, second)]
    one, other = (_figures(known) for _, known in pages)
    rows = "".join(
        f"<tr><th scope=row>{html.escape(name)}</th>{_cell(one.get(name))}{_cell(other.get(name))}</tr>"
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    )
    frames = "".join(
        f'<figure><figcaption>{html.escape(path.name)}</figcaption><iframe title="{html.escape(path.name)}" '
        f'srcdoc="{html.escape(text)}"></iframe></figure>'
        for path, (text, _) in zip((first, second), pages, strict=True)
    )
    names = [html.escape(path.name) for path in (first, second)]
    verdicts = "".join(f"<td>{_words(known.get('verdict', ''))}</td>" for _, known in pages)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{names[0]} and {names[1]}</title><style>
:root {{ color-scheme: light dark; }} body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1rem; }}
.pages {{ display: grid; grid-template-columns: 1fr 1fr; gap: .6rem; }} figure {{ margin: 0; min-width: 0; }}
iframe {{ width: 100%; height: 90vh; border: 1px solid #8884; }} .scroll {{ overflow-x: auto; }}
td, th {{ text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; }}
@media (max-width: 800px) {{ .pages {{ grid-template-columns: 1fr; }} }}
</style></head><body><h1>{names[0]} and {names[1]}</h1>
<div class="scroll"><table id="differences"><thead><tr><th></th><th>{names[0]}</th><th>{names[1]}</th></tr></thead>
<tbody><tr><th scope=row>verdict</th>{verdicts}</tr>{rows}</tbody></table></div>
<div class="pages">{frames}</div></body></html>
"""


def _cell(value: object) -> str:
    return f"<td>{'–' if value is None else html.escape(str(value))}</td>"
