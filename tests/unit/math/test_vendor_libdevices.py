"""Every function of CUDA's and of HIP's libdevice is one of tl.extra.libdevice's, for the same types."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from triton.backends.spirv import cuda_extras
from triton.backends.spirv.functions.cuda_symbols import CUDA_SYMBOLS
from triton.backends.spirv.functions.hip_symbols import HIP_SYMBOLS
from triton.backends.spirv.functions.symbols import form_of
from triton.backends.spirv.ttgir.types import FloatType, IntegerType, Type
from triton.language import core
from triton.language.extra import cuda
from triton.language.extra.cuda import libdevice
from triton.language.extra.hip import libdevice as hip_libdevice

CODES = {"fp32": "f32", "fp64": "f64", "int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64"}


class _Result:
    def to(self, *_: Any, **__: Any) -> _Result:
        return self


def tables(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> Iterator[tuple[str, dict[Any, Any]]]:
    """(function, argument types → symbol and result type) of an upstream module."""
    seen: list[dict[Any, Any]] = []

    def record(_: str, __: str, ___: list[Any], table: dict[Any, Any], **____: Any) -> _Result:
        seen.append(table)
        return _Result()

    monkeypatch.setattr(core, "extern_elementwise", record)
    for name, function in vars(module).items():
        if getattr(function, "__module__", None) != module.__name__:
            continue
        count = len([name for name in inspect.signature(function).parameters if name != "_semantic"])
        seen.clear()
        function(*[None] * count, _semantic=object())
        for table in seen:
            yield name, table


def test_every_symbol_has_the_form_of_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = set()
    for name, table in tables(monkeypatch, libdevice):
        for types, (symbol, result) in table.items():
            form = CUDA_SYMBOLS[symbol]
            assert (form.name, form.arguments) == (name, tuple(CODES[str(type_)] for type_ in types)) or (
                (form.name, types) == ("uint_as_float", (core.uint32,))
            ), symbol
            assert form.result == CODES[str(result)], symbol
            symbols.add(symbol)
    assert len(symbols) > 300 and symbols == CUDA_SYMBOLS.keys()


def _type(code: str) -> Type:
    return FloatType(code) if code[0] == "f" else IntegerType(int(code[1:]))


def test_every_symbol_of_hip_has_the_form_of_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = set()
    for name, table in tables(monkeypatch, hip_libdevice):
        for types, (symbol, result) in table.items():
            codes = [CODES[str(type_)] for type_ in types]
            form = form_of(symbol, [_type(code) for code in codes])
            assert form is not None and (form.name, list(form.arguments)) == (name, codes), symbol
            assert (symbol, form.result) == ("__ockl_clz_u64", "i32") or form.result == CODES[str(result)], symbol
            symbols.add(symbol)
    assert len(symbols) > 100 and symbols == HIP_SYMBOLS.keys()
    assert form_of("__ocml_round_f32", [FloatType("f64")]) is None and form_of("__ocml_none", []) is None


def test_the_module_has_the_names_of_upstream() -> None:
    assert set(cuda.__all__) == set(cuda_extras.__all__)
