"""A backend whose binary upstream has not heard of: stored alone, and overridden."""

from __future__ import annotations

from pathlib import Path

from patched_tree import ROOT, run_ok

PLUGINS = ROOT / "examples" / "plugins"

PRELUDE = """
import triton, triton.language as tl
from triton.backends import Backend, backends
from triton.runtime.driver import driver
from registered import OpListBackend, OpListDriver, double_kernel

class Launches(OpListDriver):
    def launcher_cls(self, src, metadata):
        return lambda *args: None

backends["oplist"] = Backend(OpListBackend, Launches)
driver.set_active(Launches())
kernel = double_kernel[(4,)](triton.MockTensor(tl.float32), BLOCK=256)
"""


def files(folder: Path) -> dict[str, Path]:
    return {path.suffix: path for path in folder.rglob("double_kernel.*")}


def test_the_binary_is_stored_where_nothing_else_is(tmp_path: Path) -> None:
    code = PRELUDE + "print(sorted(kernel.asm), kernel.asm['ops'] == kernel.kernel, len(kernel.kernel) > 20)"
    for _ in range(2):  # compiled, then from the cache
        output = run_ok(code, tmp_path / "cache", env={"TRITON_STORE_BINARY_ONLY": "1"}, path=(PLUGINS,))
        assert output == "['ops', 'source'] True True\n"
    assert set(files(tmp_path / "cache")) == {".source", ".ops", ".json"}


def test_the_binary_can_be_overridden(tmp_path: Path) -> None:
    dump, override = tmp_path / "dump", tmp_path / "override"
    run_ok(PRELUDE, tmp_path / "cache", env={"TRITON_KERNEL_DUMP": "1", "TRITON_DUMP_DIR": str(dump)}, path=(PLUGINS,))
    dumped = files(dump)[".ops"]
    target = override / dumped.relative_to(dump)
    target.parent.mkdir(parents=True)
    target.write_bytes(b"mine\r\n")
    env = {"TRITON_KERNEL_OVERRIDE": "1", "TRITON_OVERRIDE_DIR": str(override), "TRITON_ALWAYS_COMPILE": "1"}
    output = run_ok(PRELUDE + "print(kernel.asm['ops'])", tmp_path / "cache", env=env, path=(PLUGINS,))
    assert output.splitlines()[-1] == r"b'mine\r\n'"


def test_upstreams_own_suffixes_are_read_as_before(tmp_path: Path) -> None:
    text, binary = tmp_path / "k.ptx", tmp_path / "k.cubin"
    text.write_text("text")
    binary.write_bytes(b"\xff")
    code = (
        PRELUDE
        + f"""
from triton.compiler.compiler import parse
print(parse({str(text)!r}, "ptx", None), parse({str(binary)!r}, "cubin", None))
"""
    )
    assert run_ok(code, tmp_path / "cache", path=(PLUGINS,)).splitlines()[-1] == r"text b'\xff'"
