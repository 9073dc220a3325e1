"""``tl.extra.libdevice`` for this backend: every function is a ``tt.extern_elementwise`` with its own symbol,
which lowering/externs.py computes. Error bounds are in docs/internals/math.md."""

from __future__ import annotations

from typing import Any

from triton.language import core

from .functions.forms import FORMS, Form

_TYPES = {
    code: core.dtype(name)
    for code, name in (
        ("f32", "fp32"),
        ("f64", "fp64"),
        ("i32", "int32"),
        ("i64", "int64"),
        ("u32", "uint32"),
        ("u64", "uint64"),
    )
}


def _function(name: str, forms: tuple[Form, ...]) -> Any:
    table = {tuple(_TYPES[code] for code in form.arguments): (form.symbol, _TYPES[form.result]) for form in forms}
    count = len(forms[0].arguments)
    accepted = ", ".join("(" + ", ".join(str(type_) for type_ in types) + ")" for types in table)

    def function(*args: Any, _semantic: Any = None) -> Any:
        if len(args) != count:
            raise TypeError(f"libdevice.{name} takes {count} argument{'s' * (count > 1)}, not {len(args)}")
        tensors = [_semantic.to_tensor(value) for value in args]
        types = tuple(tensor.dtype for tensor in tensors)
        if types not in table:
            raise TypeError(f"libdevice.{name} takes {accepted}, not ({', '.join(map(str, types))}); cast with .to()")
        result = core.extern_elementwise("", "", tensors, table, is_pure=True, _semantic=_semantic)
        return result.to(core.int1, _semantic=_semantic) if forms[0].predicate else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of {accepted}."
    function.__module__ = __name__
    return core.extern(function)


for _name, _forms in FORMS.items():
    globals()[_name] = _function(_name, _forms)

__all__ = list(FORMS)
