"""Random well-formed kernels: what they compute here is what upstream's interpreter computes.

Every value is an integer, also the floats, and is kept small, so that results are exact and must be equal.
"""

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.written import imported

SEEDS = range(40)

HEADER = '''"""Generated kernels."""
import sys

import numpy as np
import torch
import triton
import triton.language as tl

LAUNCHES = {}

'''

FOOTER = '''

def run(seed):
    """The outputs of kernel ``seed``: int32 and float32."""
    kernel, shape, warps = LAUNCHES[seed]
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.integers(-2**31, 2**31, shape, dtype=np.int64).astype(np.int32))
    y = torch.from_numpy(rng.integers(-500, 500, shape).astype(np.float32))
    outputs = torch.zeros(shape, dtype=torch.int32), torch.zeros(shape)
    kernel[(1,)](x, y, *outputs, 3, num_warps=warps)
    return [output.numpy() for output in outputs]


if __name__ == "__main__":
    np.savez(sys.argv[1], **{f"{seed}_{index}": output for seed in LAUNCHES for index, output in enumerate(run(seed))})
'''

#: Expressions of int32 tensors a, b, c, of the scalar n and a constant k from 1 to 31.
INTEGER = (
    "a + b",
    "a - b",
    "a * b",
    "a & b",
    "a | b",
    "a ^ b",
    "a >> k",
    "a << k",
    "~a",
    "tl.minimum(a, b)",
    "tl.maximum(a, b)",
    "tl.where(a < b, c, a)",
    "tl.where(a > n, b, c)",
    "a * n + k",
    "tl.abs(a)",
    "a // (k + (b & 7))",
    "a % (k + (b & 15))",
    "a.to(tl.int8).to(tl.int32)",
    "(a.to(tl.uint32) >> k).to(tl.int32)",
    "(a.to(tl.int64) * b.to(tl.int64) >> k).to(tl.int32)",
    "tl.umulhi(a, b)",
    "tl.cdiv(a & 0xffff, k)",
)

#: Expressions of float32 tensors f, g and of the int32 tensor a; bounded by the caller. bfloat16 is left out: the
#: interpreter does not round ties to even.
FLOAT = (
    "f + g",
    "f - g",
    "tl.floor(f * 0.5)",
    "tl.maximum(f, g)",
    "tl.minimum(f, g)",
    "tl.where(f < g, f, -g)",
    "tl.abs(f)",
    "-f",
    "(a & 255).to(tl.float32)",
    "f * k",
    "tl.where(a > b, f, g)",
    "tl.ceil(g * 0.25)",
    "f.to(tl.float16).to(tl.float32)",
    "tl.fma(f, g, f)",
    "tl.clamp(f, -k, k)",
    "tl.sqrt(f * f)",
)

#: From float to int32, exact because floats are whole.
TO_INTEGER = ("f.to(tl.int32)", "(f > g).to(tl.int32)", "(f == g).to(tl.int32) * n")

#: Expressions of one tensor v that move elements or combine them along an axis.
SHAPE = (
    "v + tl.sum(v, {axis}, keep_dims=True)",
    "v - tl.max(v, {axis}, keep_dims=True)",
    "v + tl.min(v, {axis})[{index}]",
    "tl.trans(tl.reshape(v, [N, M]))",
    "tl.reshape(tl.trans(v), [M, N])",
    "tl.cumsum(v, {axis})",
    "tl.reshape(tl.ravel(v), [M, N])",
    "v + tl.sum(v)",
)


def kernel_source(seed: int) -> str:
    """A kernel of a dozen random steps."""
    rng = random.Random(seed)
    M, N = 1 << rng.randint(0, 5), 1 << rng.randint(0, 5)
    integers, floats = ["x"], ["y"]
    lines = [
        "@triton.jit",
        f"def kernel_{seed}(x_ptr, y_ptr, i_ptr, f_ptr, n, M: tl.constexpr = {M}, N: tl.constexpr = {N}):",
        "    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]",
        "    x = tl.load(x_ptr + at)",
        "    y = tl.load(y_ptr + at)",
    ]
    for step in range(rng.randint(6, 16)):
        kind = rng.choice(("integer", "integer", "float", "float", "convert", "shape", "shape"))
        names = {name: rng.choice(integers) for name in "abc"} | {name: rng.choice(floats) for name in "fg"}
        names["k"] = str(rng.randint(1, 31))
        if kind == "shape":
            axis = rng.randint(0, 1)
            pool = rng.choice((integers, floats))
            text = rng.choice(SHAPE).format(axis=axis, index="None, :" if axis == 0 else ":, None")
            names["v"] = rng.choice(pool[-3:])
        else:
            text, pool = {
                "integer": (rng.choice(INTEGER), integers),
                "float": (rng.choice(FLOAT), floats),
                "convert": (rng.choice(TO_INTEGER), integers),
            }[kind]
        words = _substitute(text, names)
        name = f"v{step}"
        lines.append(f"    {name} = {words}")
        if pool is floats:
            lines.append(f"    {name} = tl.minimum(tl.maximum({name}, -1000.0), 1000.0)")
        pool.append(name)
    lines += [
        f"    tl.store(i_ptr + at, {' ^ '.join(integers[-3:])})",
        f"    tl.store(f_ptr + at, {' + '.join(floats[-3:])})",
        "",
        "",
        f"LAUNCHES[{seed}] = kernel_{seed}, ({M}, {N}), {rng.choice((1, 2, 4, 8))}",
        "",
        "",
    ]
    return "\n".join(lines)


def _substitute(text: str, names: dict[str, str]) -> str:
    return re.sub(r"(?<![\w.])([abcfgkv])(?!\w)", lambda match: names[match.group(1)], text)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, dict[str, np.ndarray]]:
    """The generated module, and what the interpreter gives for every kernel."""
    folder: Path = tmp_path_factory.mktemp("programs")
    path, results = folder / "programs.py", folder / "results.npz"
    path.write_text(HEADER + "".join(map(kernel_source, SEEDS)) + FOOTER)
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, str(path), str(results)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return imported(path, "generated_programs"), dict(np.load(results))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(programs, seed):
    module, expected = programs
    for index, output in enumerate(module.run(seed)):
        np.testing.assert_array_equal(output, expected[f"{seed}_{index}"], err_msg=kernel_source(seed))
