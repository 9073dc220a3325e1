"""tl.extra.libdevice has every function that upstream declares, each with an emitter."""

import ast
from pathlib import Path

import pytest
import triton
from triton.backends.spirv import libdevice
from triton.backends.spirv.functions.forms import FORMS, SYMBOLS
from triton.backends.spirv.lowering.externs import EMITTERS


def declared() -> set[str]:
    """The functions of upstream's own stub."""
    stub = Path(triton.__file__).parent / "language" / "extra" / "libdevice.py"
    return {node.name for node in ast.parse(stub.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_declared_function_is_there():
    assert declared() - set(libdevice.__all__) == set()
    assert all(callable(getattr(libdevice, name)) for name in libdevice.__all__)


def test_every_form_has_an_emitter_and_a_symbol_of_its_own():
    assert set(FORMS) - set(EMITTERS) == set()
    assert len(SYMBOLS) == sum(map(len, FORMS.values()))


def test_the_number_of_arguments_is_checked():
    with pytest.raises(TypeError, match="libdevice.pow takes 2 arguments, not 1"):
        libdevice.pow(1.0, _semantic=object())
