"""Every example runs as a program and is right on the device that the tests run on."""

import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import examples
from tests.device.forks import run_python
from tests.device.processes import on_path, run

ROOT = Path(examples.__file__).parents[1]

#: Modules of the package that are no examples of kernels.
OTHERS = {"harness", "plugins", "train_gpt"}
EXAMPLES = sorted({module.name for module in pkgutil.iter_modules(examples.__path__)} - OTHERS)


def test_examples_are_found() -> None:
    assert {"demo", "vector_add", "flash_attention", "block_scaled_matmul", "gluon_transpose"} <= set(EXAMPLES)


@pytest.mark.slow
def test_a_small_gpt_is_trained(tmp_path: Path) -> None:
    """Compiled, with the sizes that a CPU takes a minute for; the loss of it is compared in torch_compile/."""
    pytest.importorskip("torch")
    sizes = ["--steps", "20", "--batch", "2", "--length", "16", "--width", "16", "--layers", "1"]
    command = [sys.executable, "-m", "examples.train_gpt", *sizes, "--chart", str(tmp_path / "loss.svg")]
    done = run(command, seconds=500, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    first, last = re.search(r"loss ([\d.]+) to ([\d.]+), [\d,]+ tokens a second", done.stdout).groups()
    assert float(last) < float(first) - 0.2
    assert (tmp_path / "loss.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("example", [example for example in EXAMPLES if example != "demo"])  # it runs below
def test_example(example: str) -> None:
    """Run as a user runs it, in a fork: the exit status is 0 only where every result is within its tolerance."""
    done = run_python(["-m", f"examples.{example}"], cwd=ROOT)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "max error" in done.stdout and "WRONG" not in done.stdout


def test_the_demo_is_right_and_what_it_says_to_try_next_works(tmp_path: Path) -> None:
    """Each command as it is printed, with the kernels that the demo has left in the cache."""
    cache = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": on_path(ROOT)}
    done = run([sys.executable, "-m", "examples.demo"], seconds=300, cwd=tmp_path, **cache)
    assert done.returncode == 0, done.stderr
    assert "max error" in done.stdout and "WRONG" not in done.stdout
    _, _, after = done.stdout.partition("\ntry next:\n")
    commands = re.findall(r"^  (triton-spirv .*?) +#", after, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        arguments = [sys.executable, "-m", "triton.backends.spirv.cli", *command.split()[1:]]
        done = run(arguments, seconds=300, cwd=tmp_path, **cache)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert (tmp_path / "softmax.html").is_file()


def _two_ranks(*program: str) -> subprocess.CompletedProcess[str]:
    """Under torchrun, which finds a free port for the ranks to meet at."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *program]
    return run(command, seconds=240, cwd=ROOT, OMP_NUM_THREADS="1", PYTHONPATH=_search_path())


def _search_path() -> str:
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


def test_data_parallel_with_two_ranks() -> None:
    done = _two_ranks("-m", "examples.data_parallel")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert all(f"rank {rank} of 2: " in done.stdout for rank in range(2))
    assert done.stdout.count("max error") == 2 and "WRONG" not in done.stdout


def test_data_parallel_notices_gradients_that_were_not_added_up(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nimport torch.distributed\nfrom examples import data_parallel\n"
        "torch.distributed.all_reduce = lambda tensor: None\nsys.exit(data_parallel.main())\n"
    )
    done = _two_ranks(str(program))
    assert done.returncode != 0
    assert done.stdout.count("WRONG") == 2, f"{done.stdout}\n{done.stderr}"
