"""Every function of Gluon's language works, or is refused by name: a walk over the module's own names."""

import importlib.util
import inspect
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from triton.experimental.gluon import language as gl

from tests.device.helpers import device_capabilities
from tests.surface.gluon_rows import ELSEWHERE, REFUSED, ROWS
from tests.surface.language_rows import INPUTS, SIZE, Inputs

HEAD = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def larger(a, b):
    return gl.maximum(a, b)

"""
KERNEL = """
@gluon.jit
def KERNEL(x_ptr, y_ptr, n_ptr, m_ptr, u_ptr, w_ptr, out, n_programs, LANES: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    T: gl.constexpr = gl.BlockedLayout([1, 2], [LANES, 1], [4, 1], [1, 0])
    Q: gl.constexpr = gl.BlockedLayout([1, 1], [LANES // 4, 4], [4, 1], [1, 0])
    i = gl.arange(0, 64, L)
    x, y, n = gl.load(x_ptr + i), gl.load(y_ptr + i), gl.load(n_ptr + i)
    m, u = gl.load(m_ptr + i), gl.load(u_ptr + i)
"""


def functions() -> set[str]:
    """What Gluon's language has that is called in kernels."""
    return {
        name
        for name in dir(gl)
        if not name.startswith("_") and callable(found := getattr(gl, name)) and not inspect.isclass(found)
    }


def kernel_of(number: int, rows: Any) -> str:
    """A kernel of some rows, each of which stores 64 results."""
    text = KERNEL.replace("KERNEL", f"kernel_{number}")
    for place, row in enumerate(rows):
        text += f"    w = w_ptr + {place * SIZE} + i\n" + textwrap.indent(row.body, "    ")
        text += f"\n    gl.store(out + {place * SIZE} + i, r.to(gl.float64))\n"
    return text


def loaded(path: Path, text: str) -> ModuleType:
    """The module of that source."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launched(kernel: Any, count: int) -> np.ndarray:
    """What the kernel of ``count`` rows gives, a row each."""
    out = torch.zeros((count, SIZE), dtype=torch.float64)
    given = [torch.from_numpy(INPUTS[name]) for name in "xynmu"]
    copies = torch.from_numpy(np.tile(INPUTS["m"], (count, 1)))
    kernel[(1,)](*given, copies, out, 1, LANES=device_capabilities().subgroup_size, num_warps=4)
    return out.numpy()


def test_every_function_has_a_row() -> None:
    named = {name for row in ROWS for name in row.names.split()}
    assert functions() - named == ELSEWHERE.keys() | REFUSED.keys()
    assert not named - functions()


GROUPS = [ROWS[first : first + 12] for first in range(0, len(ROWS), 12)]


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_functions_give_what_numpy_gives(number: int, tmp_path: Path) -> None:
    rows = GROUPS[number]
    module = loaded(tmp_path / f"gluon_{number}.py", HEAD + kernel_of(number, rows))
    found = launched(getattr(module, f"kernel_{number}"), len(rows))
    inputs = Inputs(**INPUTS, i=np.arange(SIZE, dtype=np.int32))
    for row, result in zip(rows, found, strict=True):
        wanted = np.asarray(row.reference(inputs)).astype(np.float64)
        np.testing.assert_allclose(result, wanted, rtol=row.tolerance, atol=row.tolerance, err_msg=row.names)


CALLS = {
    "inline_asm": "r = n\ngl.inline_asm('nop;')",
    "warp_specialize": "r = n\ngl.warp_specialize([(store_one, (w_ptr,)), (store_one, (w_ptr,))], [1], [24])",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_vulkan_does_not_have_is_refused_by_name(name: str, tmp_path: Path) -> None:
    row = ROWS[0]._replace(names=name, body=CALLS[name])
    module = loaded(tmp_path / f"gluon_{name}.py", HEAD + kernel_of(0, [row]))
    with pytest.raises(Exception, match=REFUSED[name]):
        launched(module.kernel_0, 1)
