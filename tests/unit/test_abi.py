"""The ABI's tables against those who work by them: the C++ header, the lowering, upstream's launch arguments."""

import hashlib
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.abi import elements, header, report_buffer
from backend.abi.block import hidden_arguments, lay_out
from backend.abi.launch_arguments import LaunchArgument
from backend.abi.native_version import VERSION
from backend.abi.scalars import POINTEES, POINTER, SCALARS, argument_type, triton_name
from backend.layouts.element_sizes import bits_in_memory
from backend.runtime import native_module
from backend.runtime.errors import DeviceUnavailable
from backend.ttgir.types import FloatType, IntegerType, Type

#: (version, digest of the C++ code that says what Python may call).
NATIVE = (25, "b3d69686ddb76256")

FLOATS = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64"}


def test_the_header_is_current() -> None:
    assert header.PATH.read_text(encoding="utf-8") == header.text(), "run python -m backend.abi.header"


def test_the_native_version_stands_for_what_python_may_call() -> None:
    files = sorted((*header.PATH.parent.rglob("module.cpp"), *header.PATH.parent.rglob("bindings.cpp")))
    bindings = "".join(path.read_text(encoding="utf-8") for path in files)
    digest = hashlib.sha256((header.text() + bindings).encode()).hexdigest()[:16]
    assert (VERSION, digest) == NATIVE, (
        "what Python may call changed: raise VERSION in backend/abi/native_version.py where older Python code or an "
        "older module would go wrong, run python -m backend.abi.header, and write both here"
    )


def test_a_native_module_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_module, "import_module", lambda *_: SimpleNamespace(ABI_VERSION=VERSION + 1))
    with pytest.raises(DeviceUnavailable, match=f"ABI version {VERSION + 1}, the Python code of {VERSION}: install"):
        native_module.native()


@pytest.mark.parametrize("name", SCALARS)
def test_the_lowering_reads_as_many_bytes_as_are_passed(name: str) -> None:
    type_: Type = FloatType(FLOATS[name]) if name in FLOATS else IntegerType(int(name[1:]))
    assert bits_in_memory(type_) == 8 * SCALARS[name].bytes


def test_natural_alignment() -> None:
    block = lay_out((1, 8, 2, 4, 1))
    assert (block.offsets, block.bytes) == ((0, 8, 16, 20, 24), 28)
    assert (block.is_indirect(28), block.is_indirect(27)) == (False, True)
    assert lay_out(()).bytes == 0


def test_types_by_the_names_of_mlir() -> None:
    assert [triton_name(name) for name in ("f32", "*f16", "bf16", "**f64")] == ["fp32", "*fp16", "bf16", "**fp64"]
    assert argument_type("*f32") is POINTER and argument_type("f64").c_type == "double"
    with pytest.raises(KeyError):
        argument_type("fp8e5")


def test_hidden_arguments_are_addresses_in_their_order() -> None:
    assert [argument.role for argument in hidden_arguments(True, True)] == ["global_scratch", "reports"]
    assert {argument_type(argument.type).bytes for argument in hidden_arguments(True, True)} == {8}


def test_the_report_buffer_is_as_documented() -> None:
    """docs/internals/abi.md gives these offsets."""
    found = (
        report_buffer.HEADER.size,
        report_buffer.FIRST_OUTSIDE_AT,
        report_buffer.ZERO_AT,
        report_buffer.SPARE_AT,
        report_buffer.ROWS_AT,
        report_buffer.ROW.size,
        report_buffer.RECORD.size,
        report_buffer.bounds_bytes(2),
    )
    assert found == (16, 16, 32, 40, 48, 24, 32, 80)


def test_launch_arguments_are_where_triton_passes_them() -> None:
    from triton.runtime.jit import JITFunction

    call = inspect.getsource(JITFunction.run).partition("kernel.run(")[2].partition(")")[0]
    passed = [part.strip().split(".")[-1] for part in call.split(",")]
    expected = {
        "grid_0": LaunchArgument.GRID,
        "stream": LaunchArgument.STREAM,
        "function": LaunchArgument.FUNCTION,
        "packed_metadata": LaunchArgument.KERNEL_METADATA,
        "launch_metadata": LaunchArgument.LAUNCH_METADATA,
        "launch_enter_hook": LaunchArgument.ENTER_HOOK,
        "launch_exit_hook": LaunchArgument.EXIT_HOOK,
    }
    assert {name: passed.index(name) for name in expected} == expected
    assert passed[LaunchArgument.KERNEL_ARGUMENTS] == "values("


#: Triton's builder's names of types, where they are others than in signatures.
BUILDER = {"fp16": "half", "fp32": "float", "fp64": "double"}


def test_a_float_type_has_the_same_names_everywhere() -> None:
    """In MLIR, as Triton's builder makes it, in the C++ table of arrays' dtypes, and in signatures."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    builder = ir.builder(context)
    native = (Path(header.__file__).parents[1] / "native" / "arguments.cpp").read_text(encoding="utf-8")
    named = [one for one in elements.FLOATS.values() if one.triton]
    assert len(named) == 8
    for one in named:
        assert str(getattr(builder, f"get_{BUILDER.get(one.triton, one.triton)}_ty")()) == one.name
        assert f'{{"{one.array}", "{one.triton}"}}' in native
        assert one.triton in (*SCALARS, *POINTEES) and triton_name(f"*{one.name}") == f"*{one.triton}"
