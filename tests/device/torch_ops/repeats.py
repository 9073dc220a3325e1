"""Operators of torch's database called again and again, each time in another way, and compared with the CPU.

Calls like earlier ones are repeated without the work that led to their launches (ops/prepared.py), so that what tells
calls apart must be all that they depend on. Each sample is called with its tensors in each of _PLACES, until that call
is recorded, and then with each tensor in a storage of its own; and the other way around. Then it is called with other
numbers, and with a second tensor of other types. Each call has other values. Results, gradients and all memory that was
passed are compared.

``python -m tests.device.torch_ops.repeats [NAME …]`` runs all operators, or those. It prints what is not as on the CPU,
beginning with "repeated" where a call that is not repeated gives something else, and ends with 1 if one is.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.utils import _pytree as pytree
from triton import knobs
from triton.backends.spirv.torch import registration

from .op_database import DEVICE, cotangent, difference, entries, samples

_MOST_TENSORS = 6
#: What operators' names begin with whose integers are places in an order.
_IN_ORDER = ("nn.functional.embedding_bag", "segment_reduce", "_segment_reduce", "nn.functional.ctc_loss", "lu_")
_IN_ORDER += ("linalg.lu", "linalg.ldl", "searchsorted", "split", "unravel_index", "nn.functional.max_unpool")
_NUMBERS = (0, 1, -1, 3, True, 0.5, -0.0, 2.0, math.inf)
_TYPES = (torch.float64, torch.float16, torch.int32, torch.bool, torch.uint8)
_Tensors = list[torch.Tensor]


def _dense(shape: Sequence[int], step: int = 1) -> list[int]:
    return [step * math.prod(max(n, 1) for n in shape[d + 1 :]) for d in range(len(shape))]


def _ones(like: torch.Tensor, elements: int) -> torch.Tensor:
    return torch.ones(elements + 16, dtype=like.dtype)


def _alone(given: _Tensors, before: int = 0, step: int = 1) -> _Tensors:
    """Each behind so many elements, ``step`` elements from one to the next."""
    memory = [_ones(x, before + step * x.numel()) for x in given]
    return [m.as_strided(x.shape, _dense(x.shape, step), before).copy_(x) for m, x in zip(memory, given, strict=True)]


def _turned(given: _Tensors) -> _Tensors:
    return [_ones(x, x.numel()).as_strided(x.shape, _dense(x.shape[::-1])[::-1], 0).copy_(x) for x in given]


def _rows(given: _Tensors, gap: int, order: int = 1, step: int = 1) -> _Tensors:
    """Those of a type in one storage, in this order, ``gap`` elements apart; of step 2 each between the last's."""
    made: dict[int, torch.Tensor] = {}
    for kind in {x.dtype for x in given}:
        same = [(at, x) for at, x in enumerate(given) if x.dtype == kind][::order]
        memory, start = _ones(same[0][1], sum(step * (x.numel() + gap + 16) for _, x in same)), 0
        for at, x in same:
            made[at] = memory.as_strided(x.shape, _dense(x.shape, step), start).copy_(x)
            start += 1 if step > 1 else x.numel() + gap + (-(x.numel() + gap) % 16 if gap else 0)
    return [made[at] for at in range(len(given))]


def _overlapping(given: _Tensors, by: int) -> _Tensors:
    """Those of a type in one storage, each ``by`` elements behind the last."""
    made: _Tensors = []
    for at, x in enumerate(given):
        same = [one for one in given[: at + 1] if one.dtype == x.dtype]
        if len(same) == 1:
            most = max(one.numel() for one in given if one.dtype == x.dtype)
            base = _ones(x, most + by * len(given))
            base[: x.numel()] = x.flatten()
            made.append(base.as_strided(x.shape, _dense(x.shape), 0))
            continue
        base = next(one for one in made if one.dtype == x.dtype)
        made.append(base.as_strided(x.shape, _dense(x.shape), by * (len(same) - 1)))
    return made


def _twice(given: _Tensors, as_views: bool = False) -> _Tensors:
    """Those of one shape and type as the same tensor, or as views of it."""
    made: _Tensors = []
    for x in given:
        like = next((one for one in made if one.shape == x.shape and one.dtype == x.dtype), None)
        made.append(x.clone() if like is None else like.view(x.shape) if as_views else like)
    return made


def _expanded(given: _Tensors) -> _Tensors:
    return [x.narrow(0, 0, 1).clone().expand_as(x) if x.dim() and x.numel() else x.clone() for x in given]


#: Where tensors are, and how they lie in memory.
_PLACES: dict[str, Callable[[_Tensors], _Tensors]] = {
    "behind 64 elements": partial(_alone, before=64),
    "behind 1 element": partial(_alone, before=1),
    "with gaps": partial(_alone, step=2),
    "turned": _turned,
    "expanded": _expanded,
    "behind one another": partial(_rows, gap=0),
    "in one storage": partial(_rows, gap=16),
    "in one storage, backwards": partial(_rows, gap=32, order=-1),
    "between one another": partial(_rows, gap=0, step=2),
    "the same twice": _twice,
    "views of one": partial(_twice, as_views=True),
    "4 elements apart": partial(_overlapping, by=4),
    "1 element apart": partial(_overlapping, by=1),
    "alone": _alone,
}
#: (whether each tensor is in a storage of its own; elements before each storage, so that calls are of another kind) of
#: calls in a place. A call is recorded when it comes again, and repeated from then on.
_CALLS = ((False, 0), (False, 0), (True, 0), (False, 0), (True, 1), (True, 1), (False, 1))
_TIMES = 3  # of what is called in one way
_OF_ONE = frozenset(("alone", "behind 64 elements", "behind 1 element", "with gaps", "turned", "expanded"))


def _again(made: _Tensors, apart: bool, before: int) -> _Tensors:
    """The same tensors in other storages."""
    lines: dict[int, torch.Tensor] = {}
    copies: dict[int, torch.Tensor] = {}
    for x in made:
        storage = x.untyped_storage()
        key = id(x) if apart else storage._cdata
        if key not in lines:
            line = torch.empty(0, dtype=x.dtype).set_(storage)
            lines[key] = torch.cat((line[:1].repeat(before), line))
        copies.setdefault(id(x), lines[key].as_strided(x.shape, x.stride(), x.storage_offset() + before))
    return [copies[id(x)] for x in made]


@dataclass
class _Sample:
    """A call's arguments, as torch's database has them."""

    input: Any
    args: Any
    kwargs: Any


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and not leaf.is_quantized


def _call(
    op: Any, function: Callable[..., Any], sample: _Sample, device: str, kind: torch.dtype | None = None
) -> list[Any]:
    """Results of a call on a device, the gradients of its arguments, and all memory that it was passed, which looks the
    same on each. ``kind``: the type of floats instead of theirs."""
    leaves, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    memory: dict[int, torch.Tensor] = {}
    there: dict[int, torch.Tensor] = {}
    for x in filter(_is_plain, leaves):
        storage = x.untyped_storage()
        if storage._cdata not in memory:
            line = torch.empty(0, dtype=x.dtype).set_(storage).clone()
            memory[storage._cdata] = (line.to(kind) if kind and line.is_floating_point() else line).to(device)
        view = memory[storage._cdata].as_strided(x.shape, x.stride(), x.storage_offset()).detach()
        there.setdefault(id(x), view.requires_grad_(x.requires_grad))
    floats = (torch.bfloat16, torch.float16, torch.float32) if kind else ()
    given = [device if leaf == "cpu" or isinstance(leaf, torch.device) else there.get(id(leaf), leaf)
             if _is_plain(leaf) else leaf for leaf in leaves]  # fmt: skip
    first, args, kwargs = pytree.tree_unflatten([kind if any(x is one for one in floats) else x for x in given], tree)
    torch.manual_seed(0)
    found = pytree.tree_leaves(function(first, *args, **kwargs))
    wanted = [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad]
    grown = [x for x in found if isinstance(x, torch.Tensor) and x.requires_grad and x.grad_fn is not None]
    if wanted and grown:
        found += torch.autograd.grad(grown, wanted, [cotangent(x) for x in grown], allow_unused=True)
    return [x.detach() if isinstance(x, torch.Tensor) else x for x in (*found, *memory.values())]


def _functions(op: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """An operator, and its variants that write to tensors."""
    yield "", op.op
    if op.get_inplace() is not None:
        yield "in place", lambda first, *args, **kwargs: op.get_inplace()(first, *args, **kwargs)

    def out(first: Any, *args: Any, **kwargs: Any) -> Any:
        result = op.op(first, *args, **kwargs)
        if not isinstance(result, torch.Tensor):
            return op.op(first, *args, **kwargs, out=tuple(torch.empty_like(t) for t in result))
        gaps = torch.zeros(*result.shape, 2, dtype=result.dtype, device=result.device).select(-1, 0)
        line = torch.zeros(result.numel() + 80, dtype=result.dtype, device=result.device)
        op.op(first, *args, **kwargs, out=gaps)
        op.op(first, *args, **kwargs, out=line[64 : 64 + result.numel()].view(result.shape))
        return gaps, line, op.op(first, *args, **kwargs, out=result[:0].clone() if result.dim() else result)

    def onto_itself(first: Any, *args: Any, **kwargs: Any) -> Any:
        like = op.op(first, *args, **kwargs)
        is_same = isinstance(like, torch.Tensor) and isinstance(first, torch.Tensor) and like.shape == first.shape
        return op.op(first, *args, **kwargs, out=first) if is_same else like

    yield from (("out", out), ("onto itself", onto_itself)) if op.supports_out else ()


def _ways(op: Any, sample: Any, grows: bool) -> Iterator[tuple[str, _Sample]]:
    """A sample in other ways. ``grows``: with the gradients that it asks for."""
    leaves, tree = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [at for at, leaf in enumerate(leaves) if _is_plain(leaf)]
    stays = op.name.startswith(_IN_ORDER)

    def values(number: int) -> _Tensors:
        found = [leaves[at].detach().resolve_conj().resolve_neg().contiguous() for at in places]
        return [x if stays and not x.is_floating_point() else x.flatten().roll(number).view(x.shape) for x in found]

    def filled(tensors: _Tensors, changes: dict[int, Any]) -> _Sample:
        made = [changes.get(at, leaf) for at, leaf in enumerate(leaves)]
        for at, x in zip(places, tensors, strict=True):
            made[at] = x.requires_grad_(grows and leaves[at].requires_grad and x.is_floating_point())
        return _Sample(*pytree.tree_unflatten(made, tree))

    for name, placed in _PLACES.items():
        if name in _OF_ONE or (len(places) > 1 and "batch_norm" not in op.name):  # which writes what others may be
            for number, (apart, before) in enumerate(_CALLS):
                given = values(number)
                made = _again(placed(given[:_MOST_TENSORS]), apart, before)
                made += [x.clone() for x in given[_MOST_TENSORS:]]
                yield f"{name}{', apart' if apart else ''} ({number})", filled(made, {})
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, (int, float)) and not isinstance(leaf, bool) and not (stays and isinstance(leaf, int)):
            for number in (*_NUMBERS, *((1 << 40,) if isinstance(leaf, float) else ())):  # others may be sizes
                for time in range(_TIMES):
                    yield f"{number!r} for {leaf!r}", filled([x.clone() for x in values(time)], {at: number})
    if len(places) > 1 and leaves[places[1]].is_floating_point():
        for kind in _TYPES:
            for time in range(_TIMES):
                given = [x.clone() for x in values(time)]
                given[1] = given[1].to(kind)
                yield f"the second of {kind}", filled(given, {})


def _on_host(one: Any) -> Any:
    return one.cpu() if isinstance(one, torch.Tensor) else one


@contextmanager
def _anew() -> Iterator[None]:
    """Within it no call is repeated."""

    def hook(_: Any) -> None:
        """Tells nobody."""

    knobs.runtime.launch_enter_hook.add(hook)
    try:
        yield
    finally:
        knobs.runtime.launch_enter_hook.remove(hook)


def _wrong(op: Any, function: Callable[..., Any], sample: _Sample) -> str:
    """What is wrong with a call on the device. What the CPU refuses is other tests' (wrong_arguments.py)."""
    try:
        expected = _call(op, function, sample, "cpu")
    except Exception:
        return ""
    try:
        actual = _call(op, function, sample, DEVICE)
        found = difference(op, sample, function, expected, actual, _call)
        if found:
            with _anew():
                fresh = [_on_host(one) for one in _call(op, function, sample, DEVICE)]
            found = ("repeated, " if difference(op, sample, function, fresh, actual, _call) else "") + found
    except Exception as error:
        found = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    return found


def problems(op: Any, family: str, some: int) -> Iterator[str]:
    """What is wrong with calls of an operator, for a few of its samples of one family of types."""
    registration.register()
    for number, sample in enumerate(islice(samples(op, family), some)):
        for variant, function in _functions(op):
            for name, changed in _ways(op, sample, grows=not variant):
                if found := _wrong(op, function, changed):
                    yield f"{found} [{op.name}, {family} {number}, {variant or 'itself'}, {name}]"


def main() -> int:
    """Prints what is wrong; 1 where a call is repeated that must not be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=2, help="how many of each operator (default: %(default)s)")
    options = parser.parse_args()
    repeated = 0
    for name in options.names or sorted(entries()):
        for family in ("float32", "int64"):
            for found in problems(entries()[name], family, options.samples):
                repeated += found.startswith("repeated")
                print(found, flush=True)
    print(f"{repeated} repeated that must not be")
    return int(repeated > 0)


if __name__ == "__main__":
    sys.exit(main())
