"""The figures as a table and as a chart."""

from __future__ import annotations

from typing import Any

BACKENDS = {"spirv": "SPIR-V", "nvidia": "CUDA"}


def rows(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A line of the table for each kernel: its rates, and SPIR-V's as a multiple of CUDA's (of times: inverted)."""
    lines: dict[str, dict[str, Any]] = {}
    for backend, result in found.items():
        for entry in result["results"]:
            line = lines.setdefault(entry["name"], {"name": entry["name"], "unit": entry["unit"]})
            line[backend] = entry.get("rate")
            line[f"{backend}_warps"] = entry.get("by_warps")
            line[f"{backend}_note"] = entry.get("failure") or entry.get("config")
    for line in lines.values():
        ours, theirs = line.get("spirv"), line.get("nvidia")
        if ours and theirs:
            line["ratio"] = theirs / ours if line["unit"] == "µs" else ours / theirs
    return list(lines.values())


def table(lines: list[dict[str, Any]], found: dict[str, dict[str, Any]]) -> str:
    """The figures as text."""
    text = [
        "; ".join(f"{BACKENDS[name]}: {result['device'] or result.get('failure')}" for name, result in found.items()),
        f"{'':28}{'unit':>8}{'SPIR-V':>10}{'CUDA':>10}{'ratio':>8}",
    ]
    for line in lines:
        figures = "".join(f"{line[name]:>10.1f}" if line.get(name) else f"{'—':>10}" for name in BACKENDS)
        ratio = f"{line['ratio']:>8.2f}" if "ratio" in line else f"{'—':>8}"
        text.append(f"{line['name']:28}{line['unit']:>8}{figures}{ratio}")
        for name in BACKENDS:
            warps = "".join(f"; {count} warps {rate:.1f}" for count, rate in (line.get(f"{name}_warps") or {}).items())
            if line.get(f"{name}_note"):
                text.append(f"    {BACKENDS[name]}: {line[f'{name}_note']}{warps}")
    return "\n".join(text)


def chart(lines: list[dict[str, Any]]) -> str:
    """An SVG: the ratio to CUDA of each kernel as a bar; CUDA is the line at 1."""
    drawn = [line for line in lines if "ratio" in line]
    scale, left, height = 320, 220, 28
    right = max([1.2, *(line["ratio"] for line in drawn)]) * scale + left + 60
    bottom = height * len(drawn) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right:.0f}" height="{bottom}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{right:.0f}" height="{bottom}" fill="white"/>',
    ]
    for index, line in enumerate(drawn):
        top = index * height + 8
        width = line["ratio"] * scale
        parts.append(
            f'<text x="{left - 8}" y="{top + 14}" text-anchor="end">{line["name"]}</text>'
            f'<rect x="{left}" y="{top}" width="{width:.1f}" height="18" fill="#4878a8"/>'
            f'<text x="{left + width + 6:.1f}" y="{top + 14}">{line["ratio"]:.2f}</text>'
        )
    parts.append(
        f'<line x1="{left + scale}" x2="{left + scale}" y1="0" y2="{bottom - 20}" stroke="black" '
        f'stroke-dasharray="4 3"/><text x="{left + scale}" y="{bottom - 6}" text-anchor="middle">CUDA</text>'
        "</svg>\n"
    )
    return "\n".join(parts)
