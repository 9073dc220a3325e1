"""Coefficients of the polynomials of the math functions (coefficients.txt), and the digits of 2/pi."""

from __future__ import annotations

from pathlib import Path


def _polynomials() -> dict[str, dict[int, tuple[float, ...]]]:
    """Name → width of float → the coefficients, lowest power first. A row without indentation begins a polynomial."""
    found: dict[str, dict[int, tuple[float, ...]]] = {}
    name, width = "", 0
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines():
        words = line.partition("#")[0].split()
        if line.startswith(" "):
            found[name][width] += tuple(map(float, words))
        elif words:
            name, width = words[0], int(words[1])
            found.setdefault(name, {})[width] = ()
    return found


POLYNOMIALS = _polynomials()

#: The first 1,248 bits of 2/pi after the binary point, most significant first.
TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc20",
    16,
)
