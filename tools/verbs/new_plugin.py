"""`new-plugin NAME [FOLDER]`: write a plugin that builds, with its test: a starting point for your own backend.

It is examples/plugins/ttir-only under another name, with a pyproject.toml and a test.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from ..errors import ToolError
from ..project import ROOT, Project

EXAMPLE = ROOT / "examples" / "plugins" / "ttir-only"
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_TAKEN = ("nvidia", "amd", "spirv", "compiler", "driver", "registry")

_PYPROJECT = """\
# What a wheel of this plugin alone says of itself (`setup.py bdist_wheel --plugin-only`).
[project]
name = "triton-{dashed}"
version = "0.1.0"
description = "The {name} backend for Triton"
license = "MIT"
dependencies = []
"""

_README = """\
# The {name} backend for Triton

Build a Triton wheel with it, in a checkout of Triton for every Vulkan device:

    TRITON_PLUGIN_DIRS="{folder}" python3 -m tools wheel
    pip install dist/triton-*.whl
    TRITON_DEFAULT_BACKEND={name} python your_kernel.py

That wheel has no other plugin. `TRITON_PLUGIN_DIRS="$PWD;{folder}"` keeps the SPIR-V backend,
which is the checkout itself.

Test it in an environment with Triton and pytest: `python -m pytest {folder}`. docs/internals/writing-a-backend.md
there says what each method is for.
"""

_TEST = '''\
"""The backend, as an installed package as far as triton can tell: a kernel compiles."""

import os
import subprocess
import sys
from pathlib import Path

BACKEND = Path(__file__).resolve().parent.parent / "backend"

KERNEL = """
import triton, triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

floats = triton.MockTensor(tl.float32)  # a tensor for the compiler alone
compiled = add.warmup(floats, floats, floats, 1000, BLOCK=64, grid=(1,))
print(type(triton.runtime.driver.active).__name__, *compiled.asm)
print(compiled.asm["ttir"])
"""


def test_a_kernel_compiles(tmp_path: Path) -> None:
    (tmp_path / "{name}_plugin").symlink_to(BACKEND)
    info = tmp_path / "{name}_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}_plugin\\nVersion: 1.0\\n")
    (info / "entry_points.txt").write_text("[triton.backends]\\n{name} = {name}_plugin\\n")
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = {{key: value for key, value in os.environ.items() if not key.startswith("TRITON_")}}
    environment |= {{"PYTHONPATH": str(tmp_path), "TRITON_DEFAULT_BACKEND": "{name}"}}
    environment |= {{"TRITON_CACHE_DIR": str(tmp_path / "cache")}}
    command = [sys.executable, str(tmp_path / "kernel.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, *code = done.stdout.splitlines()
    assert first.split()[0] == "{camel}Driver" and "ttir" in first
    assert any("tt.func" in line for line in code)
'''


def run(project: Project, arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        raise ToolError("new-plugin needs a name, such as my_gpu, and may have a folder to put the plugin in")
    name = arguments[0]
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ToolError(f"{name!r} cannot be a backend's name: lower-case letters, digits and _ make one")
    if name in _TAKEN:
        raise ToolError(f"the name {name!r} is taken")
    folder = Path(arguments[1] if len(arguments) == 2 else name.replace("_", "-")).absolute()
    if folder.exists():
        raise ToolError(f"{folder} is there already")
    try:
        for path, text in files(name, folder).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    except OSError as error:
        raise ToolError(f"{folder} cannot be written: {error.strerror}") from None
    print(f"{folder} holds the backend {name}. Build a wheel with it:")
    print(f'    TRITON_PLUGIN_DIRS="{project.root};{folder}" python3 -m tools wheel')
    return 0


def files(name: str, folder: Path) -> dict[str, str]:
    """Path in the plugin's folder → text."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    found: dict[str, str] = {}
    for path in sorted(EXAMPLE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            relative = path.relative_to(EXAMPLE).as_posix().replace("ttir_only", name)
            found[relative] = path.read_text().replace("ttir_only", name).replace("TTIROnly", camel)
    words = {"name": name, "dashed": name.replace("_", "-"), "camel": camel, "folder": folder}
    texts = {"pyproject.toml": _PYPROJECT, "README.md": _README, "tests/test_backend.py": _TEST}
    return found | {path: text.format(**words) for path, text in texts.items()}
