"""Writes the page about every kernel of the examples for every device profile, without a device, and times it.

python -m benchmarks.example_pages FOLDER
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.example_kernels import KERNELS


def written(
    folder: Path, profiles: Iterable[str], kernels: Sequence[tuple[str, str, str]] = KERNELS
) -> Iterator[tuple[Path, int, float]]:
    """Writes the pages of ``kernels`` for ``profiles`` into ``folder``: path, exit status and seconds of each."""
    from triton.backends.spirv import cli

    for number, (example, kernel, signature) in enumerate(kernels):
        source = Path(__file__).parents[1] / "examples" / f"{example}.py"
        for profile in profiles:
            path = folder / f"{number:02}-{kernel}-{profile}.html"
            begin = time.perf_counter()
            request = ["inspect", f"{source}:{kernel}", "-s", signature, "-t", profile, "-o", str(path)]
            with contextlib.redirect_stdout(io.StringIO()):
                status = cli.main(request)
            yield path, status, time.perf_counter() - begin


def main() -> int:
    """A line a page; status 1 if one could not be written."""
    from triton.backends.spirv.capabilities import PROFILES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    start, failed = time.perf_counter(), 0
    for path, status, seconds in written(folder, sorted(PROFILES)):
        failed += status != 0
        print(f"{path.name:50} {seconds:6.2f} s{'' if status == 0 else '  failed'}", flush=True)
    print(f"{len(KERNELS) * len(PROFILES)} pages in {time.perf_counter() - start:.0f} s, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
