"""The notebook of the first kernel runs, in a process of its own, and prints what it says."""

import json
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "docs" / "first-kernel.ipynb"

#: Runs cells as IPython does: each is a source that ``inspect`` finds, and all share one namespace.
_RUN = """
import json, linecache, sys, types
module = sys.modules["__main__"]
for number, source in enumerate(json.load(sys.stdin)):
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), vars(module))
    print("--- end of the cell", flush=True)
"""


def test_the_notebook_prints_what_it_shows(tmp_path: Path) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in code]
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("--- end of the cell\n")[:-1]
    shown = ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in code]
    assert printed == shown
