"""Launches like earlier ones, without the work that Triton does for each.

Triton's JITFunction.run() binds and specialises the arguments, makes a key of text from them and the options, and finds
the compiled kernel by it: about half of a launch's cost. What leads to a kernel is remembered here instead: how the
call was written, the constants and options in it, and what specialising each other argument gave. A later call is
compared with that by native/relaunch.cpp, which asks Triton's own native_specialize_impl about the arguments, so that
its rules have one owner. Whatever is not known to be the same goes through Triton's binder: another driver or device, a
launch hook, a changed global or knob, a kernel that left Triton's cache, an argument that cannot be compared.

The wheel's patch ``relaunch`` asks ``JITFunction.relaunch`` first, and tells SPIRVDriver.remember_launch() of launches
that went through Triton's binder.
"""

from __future__ import annotations

import inspect
from typing import Any

from triton import knobs
from triton._C.libtriton import native_specialize_impl
from triton.language import dtype
from triton.runtime.driver import driver as config
from triton.runtime.jit import JITCallable

from ..runtime.native_module import native

#: What JITFunction.run() adds to the keywords of a call, last. If it adds something else, nothing is remembered: it
#: would not be compared.
_ADDED = ("debug", "instrumentation_mode", "fpsan_homomorphic_casts")

#: Constants of these types never change. Others are not compared, so that a call with one is not remembered.
_UNCHANGING = (bool, int, float, str, type(None), dtype, JITCallable)


def remember_launch(
    driver: Any, function: Any, device: int, key: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    """Remembers a launch of the JITFunction ``function`` that Triton's binder led to the kernel ``key`` of its cache.

    ``args`` and ``keywords`` are JITFunction.run()'s, at its end.
    """
    names = tuple(keywords)
    if names[-len(_ADDED) :] != _ADDED:
        return
    names = names[: -len(_ADDED)]
    relaunch = function.relaunch
    if relaunch is None:
        parameters = [(parameter.name, parameter.is_constexpr, *_flags(parameter)) for parameter in function.params]
        relaunch = native().Relaunch(
            config=config, driver=driver, knobs=knobs, specialize=native_specialize_impl, parameters=parameters
        )
        function.relaunch = relaunch
    if relaunch.gave_up or relaunch.knows(device, key, len(args), names):
        return
    read = relaunch.read_knobs(function)
    if not read or any(keywords[name] != value for name, value in zip(_ADDED, read, strict=True)):
        return
    sources = _sources(function, len(args), names)
    if sources is None:
        return
    backend = function.device_caches[device][3]
    conditions = []
    for parameter, (kind, place, default) in zip(function.params, sources, strict=True):
        value = args[place] if kind == "position" else keywords[names[place]] if kind == "keyword" else default
        condition = value if parameter.is_constexpr else native_specialize_impl(backend, value, *_flags(parameter))
        if not (isinstance(value, _UNCHANGING) if parameter.is_constexpr else _is_plain(condition)):
            return
        conditions.append((parameter.is_constexpr, condition))
    parameter_names = {parameter.name for parameter in function.params}
    options = [(place, keywords[name]) for place, name in enumerate(names) if name not in parameter_names]
    if all(isinstance(value, _UNCHANGING) for _, value in options):
        relaunch.add(
            device=device,
            key=key,
            positions=len(args),
            keywords=names,
            sources=sources,
            parameters=conditions,
            options=options,
            knobs=read,
        )


def _flags(parameter: Any) -> tuple[bool, bool, bool]:
    """What native_specialize_impl() takes behind an argument, as jit.create_function_from_signature() gives it."""
    return parameter.is_const, not parameter.do_not_specialize, not parameter.do_not_specialize_on_alignment


def _is_plain(specialization: Any) -> bool:
    """Whether it is (type, key), of text and numbers: of one argument, and not of a tuple of them."""
    return all(isinstance(part, (str, int, type(None))) for part in specialization)


def _sources(function: Any, positions: int, names: tuple[str, ...]) -> list[tuple[str, int, Any]] | None:
    """Where a call has the argument of each parameter; None if a parameter takes any number of them."""
    sources: list[tuple[str, int, Any]] = []
    places = {name: place for place, name in enumerate(names)}
    for number, parameter in enumerate(function.signature.parameters.values()):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return None
        if parameter.name in places:
            sources.append(("keyword", places[parameter.name], None))
        elif number < positions:
            sources.append(("position", number, None))
        else:
            sources.append(("default", 0, parameter.default))
    return sources
