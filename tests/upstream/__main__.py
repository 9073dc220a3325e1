"""Runs the tests of a checkout of upstream, or of a folder, and prints the rate; 1 where a test failed that no row of
expected.py explains, 2 where none ran."""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import recorder
from .results import RATE, classify, read, summary

ROOT = Path(__file__).parents[2]
#: Where upstream's checkout has the tests of its language.
LANGUAGE = ROOT / "upstream" / "python" / "test" / "unit" / "language"


def brings_fixtures(folder: Path) -> bool:
    """Whether a conftest.py in a folder, or above it, has upstream's option and fixtures."""
    places = [folder, *folder.resolve().parents]
    found = (place / "conftest.py" for place in places)
    return any(path.is_file() and "--device" in path.read_text(encoding="utf-8") for path in found)


def command(folders: Sequence[Path], device: str, processes: int, rest: Sequence[str]) -> list[str]:
    """pytest's, which reads nothing of this repository's configuration."""
    plugins = [] if all(map(brings_fixtures, folders)) else ["-p", "tests.upstream.fixtures"]
    plugins += ["-p", "tests.upstream.recorder", "-p", "no:cacheprovider"]
    options = ["-q", "--tb=line", "--no-header", f"--device={device}", "-n", str(processes), "-c", os.devnull]
    options += ["--rootdir", str(folders[0] if folders[0].is_dir() else folders[0].parent)]
    return [sys.executable, "-m", "pytest", *plugins, *options, *rest, *map(str, folders)]


def environment(device: str, backend: str, out: Path, options: argparse.Namespace, cache: str) -> dict[str, str]:
    """Of pytest's processes: kernels go to ``backend``, and tensors are on ``device``."""
    added = {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "TRITON_DEFAULT_BACKEND": backend,
        "TRITON_SPIRV_BACKEND": "",
        "TRITON_SPIRV_TORCH_DEVICE": "1" if device == "spirv" else "",
        "TRITON_CACHE_DIR": cache,
        recorder.OUT: str(out),
        recorder.SAMPLE: options.sample,
    }
    if options.seconds:
        added[recorder.UNTIL] = str(time.time() + options.seconds)
    if device == "cuda":
        added["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return os.environ | added


def default_device() -> str:
    """Where tensors are that kernels take in place."""
    import triton

    return str(triton.runtime.driver.active.get_active_torch_device().type)


def _part(text: str) -> str:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and int(number) < int(of)):
        raise argparse.ArgumentTypeError("must be N/OF with N below OF, as in 0/10")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print."""
    parser = argparse.ArgumentParser(prog="python3 -m tools upstream-tests", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="PATH", help=f"folders or files of tests ({LANGUAGE})")
    parser.add_argument("--device", help="torch's device of the tensors: the one that kernels take in place")
    parser.add_argument("--backend", default="spirv", help="whose kernels run, such as nvidia (spirv)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many run tests at once")
    parser.add_argument("--sample", type=_part, default="0/1", metavar="N/OF", help="a part of the shuffled tests")
    parser.add_argument("--seconds", type=float, default=0.0, help="start no test after this time")
    parser.add_argument("--out", type=Path, help="file for a line of JSON a test")
    parser.add_argument("--among", type=Path, metavar="OUT", help="count only tests that passed in this --out")
    parser.add_argument("--record", metavar="DEVICE", help="write the rate for docs/internals/surface.md, with the device's name")
    parser.add_argument("-k", metavar="NAMES", help="as pytest's", default="")
    options = parser.parse_args(arguments)
    folders = [path.resolve() for path in options.folders or [LANGUAGE]]
    for folder in folders:
        if not folder.exists():
            parser.error(f"there is no {folder}: name a folder of upstream's tests, or `git submodule update --init`")
    device = options.device or default_device()
    with tempfile.TemporaryDirectory() as cache:
        out = (options.out or Path(cache) / "out.jsonl").resolve()
        out.unlink(missing_ok=True)
        rest = ["-k", options.k] if options.k else []
        subprocess.run(
            command(folders, device, options.processes, rest),
            env=environment(device, options.backend, out, options, cache),
            cwd=cache,
            check=False,
        )
        outcomes = read(out) if out.exists() else {}
    among = None
    if options.among:
        among = [test for test, outcome in read(options.among).items() if outcome == "passed"]
    results = classify(outcomes, among)
    print(summary(results))
    if not results.ran:
        print("no test ran: see above")
        return 2
    if options.record:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        of = "that Triton's CUDA backend passes" if among is not None else "that ran"
        rate = {"date": today, "device": options.record, "passed": len(results.passed), "ran": results.ran, "of": of}
        RATE.write_text(json.dumps(rate, indent=2) + "\n", encoding="utf-8")
    return int(bool(results.failed))


if __name__ == "__main__":
    sys.exit(main())
