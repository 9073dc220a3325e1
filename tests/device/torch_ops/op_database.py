"""Operators of torch's own test database (op_db) on the device: each call against the same on the CPU.

The samples are torch's, with its strides and offsets; a few of each operator's are run, spread over all of them.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from triton.backends.spirv.torch import registration

DEVICE = "spirv"
#: Outcomes of a call. ``REFUSED``: an error where the CPU gives a result, and REFUSALS says why.
ON_DEVICE, ON_CPU, PARTLY, REFUSED, FAILING, NOT_DEFINED = "device", "CPU", "partly", "refused", "failing", "–"

#: The element types that stand for all: float32, forward and backward, and one of each other family.
TYPES = (torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64)
FAMILIES: dict[str, torch.dtype] = {str(dtype).removeprefix("torch."): dtype for dtype in TYPES}
#: How many samples of an operator are run.
_SAMPLES, _OTHER_SAMPLES = 5, 1
_AT_MOST = 200  # samples that are looked at
_LARGEST = 1 << 20  # elements of an argument

#: (relative, absolute) error that is the same number; past it, what float64 gives decides.
_TOLERANCES = {torch.float16: (2e-3, 2e-3), torch.float32: (2e-5, 2e-5), torch.float64: (1e-10, 1e-10)}
_TOLERANCES |= {torch.bfloat16: (2e-2, 2e-2), torch.complex64: (2e-5, 2e-5), torch.complex128: (1e-10, 1e-10)}

#: Relative error of what float64 gives, where that decides.
_EXACT = {torch.float32: 1e-4, torch.bfloat16: 4e-2}

#: Operators that round the weights of a sum to the type of its numbers, as torch's own kernels do: so many units in the
#: last place of the largest number in their arguments are the same.
_WEIGHTS_ROUNDED = {"nn.functional.scaled_dot_product_attention": 2}
_Call = Callable[..., list[Any]]
#: The beginning of operators' titles → why the device refuses what the CPU does.
REFUSALS: dict[str, str] = {
    "sparse.": "sparse tensors have no kernels",
    "to_sparse": "sparse tensors have no kernels",
    "tensor_split": "torch wants a tensor of indices on the CPU, as it does for CUDA",
    "mode": "torch's own check of `out=` names the devices that it knows",
}
#: Operators whose values nothing determines.
_UNDETERMINED = ("empty", "new_empty", "svd_lowrank", "pca_lowrank")
#: Operators of which the first result alone is compared, but of float32, whose samples have no equal elements: which of
#: equal ones it was is nobody's promise, and saved statistics have the type that is computed in, as CUDA's have.
_FIRST_RESULT = ("kthvalue", "median", "nanmedian", "topk", "mode", "native_layer_norm")
_FIRST_RESULT += ("sort", "native_batch_norm", "_native_batch_norm", "_batch_norm_with_update")


@dataclass
class Outcome:
    """What became of an operator's calls with one type: how many each way, operations that ran on the CPU, and what
    was wrong."""

    counts: dict[str, int] = field(default_factory=dict)
    fallbacks: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    @property
    def summary(self) -> str:
        """One word; ``partly`` where some calls run on the device and some on the CPU."""
        for kind in (FAILING, REFUSED):
            if self.counts.get(kind):
                return kind
        if len(self.counts) > 1:
            return PARTLY
        return next(iter(self.counts), NOT_DEFINED)


def title(op: Any) -> str:
    """The name of an entry of the database, of which an operator may have several."""
    return f"{op.name} ({op.variant_test_name})" if op.variant_test_name else str(op.name)


def samples(op: Any, family: str) -> Iterator[Any]:
    """A few of torch's samples for an operator, on the CPU."""
    dtype = FAMILIES[family]
    if dtype not in op.dtypes:
        return
    gradients = family == "float32" and op.supports_autograd
    torch.manual_seed(0)
    found = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), _AT_MOST))
    found = [s for s in found if all(t.numel() < _LARGEST for t in _tensors((s.input, s.args, s.kwargs)))]
    count = min(len(found), _SAMPLES if family == "float32" else _OTHER_SAMPLES)
    for place in range(count):
        yield found[place * (len(found) - 1) // max(count - 1, 1)]
    if found and family == "float32":
        try:
            yield found[0].noncontiguous()
        except (RuntimeError, TypeError, NotImplementedError):
            return


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def moved(tree: Any, device: str) -> Any:
    """The same with its tensors on a device (of the CPU: copies), in memory that looks the same, and ``device``
    arguments naming it."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.device) or leaf == "cpu" and isinstance(leaf, str):
            return device
        if not isinstance(leaf, torch.Tensor):
            return leaf
        plain = leaf.detach()
        if plain.layout != torch.strided or plain.is_conj() or plain.is_neg() or plain.is_quantized:
            there = plain.to(device) if device != "cpu" else plain.clone()
        else:
            memory = torch.empty(0, dtype=leaf.dtype).set_(plain.untyped_storage())
            there = memory.clone().to(device).as_strided(plain.shape, plain.stride(), plain.storage_offset())
        return there.requires_grad_(leaf.requires_grad)

    return pytree.tree_map(move, tree)


def call(op: Any, function: Callable[..., Any], sample: Any, device: str, kind: torch.dtype | None = None) -> list[Any]:
    """Results of an operator's function for a sample on a device, then the gradients of its arguments. ``kind``: the
    type of floats instead of the sample's."""
    arguments = sample.input, tuple(sample.args), dict(sample.kwargs)
    if kind is not None:
        arguments = pytree.tree_map(lambda leaf: _as(leaf, kind), arguments)
    first, args, kwargs = moved(arguments, device)
    result = function(first, *args, **kwargs)
    leaves = pytree.tree_leaves(result)
    wanted = [t for t in _tensors((first, args, kwargs)) if t.requires_grad]
    given = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad and t.grad_fn is not None]
    if wanted and given:
        cotangents = [cotangent(t) for t in given]
        leaves += torch.autograd.grad(given, wanted, cotangents, allow_unused=True)
    return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def _as(leaf: Any, kind: torch.dtype) -> Any:
    floats = torch.bfloat16, torch.float16, torch.float32
    if any(leaf is dtype for dtype in floats):
        return kind
    if isinstance(leaf, torch.Tensor) and leaf.dtype in floats:
        return leaf.detach().to(kind).requires_grad_(leaf.requires_grad)
    return leaf


def cotangent(tensor: torch.Tensor) -> torch.Tensor:
    """A gradient of a result."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator).to(tensor.device)


def difference(
    op: Any, sample: Any, function: Callable[..., Any], expected: list[Any], actual: list[Any], call: _Call = call
) -> str:
    """What is wrong with the results on the device; nothing where they are the CPU's, or as close to float64's.
    ``call``: what gave them."""
    if len(expected) != len(actual):
        return f"{len(actual)} results, not {len(expected)}"
    if op.name.startswith(_FIRST_RESULT) and expected[0].dtype != torch.float32:
        expected, actual = expected[:1], actual[:1]
    if op.name == "argsort" and sample.input.dtype != torch.float32:
        return ""
    exact: list[Any] | None = None
    for place, (want, got) in enumerate(zip(expected, actual, strict=True)):
        if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
            if type(want) is not type(got) or (not isinstance(want, torch.Tensor) and want != got and want == want):
                return f"result {place}: {got!r}, not {want!r}"
            continue
        if (want.dtype, want.shape, want.layout) != (got.dtype, got.shape, got.layout):
            return f"result {place}: {got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
        if op.name.startswith(_UNDETERMINED):
            continue
        try:
            _close(got, want, 1)
            continue
        except AssertionError as error:
            problem = f"result {place}: " + " ".join(str(error).split())[:220]
        if _is_random(op, function, sample, expected, call):
            return ""
        if not want.dtype.is_floating_point:
            return problem
        if exact is None:
            try:
                exact = call(op, function, sample, "cpu", torch.float64)
            except Exception:  # of float64 there is none: the CPU's own result decides
                return problem
        scale = (want.double() - exact[place].double()).nan_to_num().abs().max().item() if want.numel() else 0.0
        try:
            torch.testing.assert_close(
                got.cpu().double(), exact[place].double(), rtol=_EXACT.get(want.dtype, 1e-2),
                atol=max(4 * scale, _of_weights(op, sample, want.dtype)), equal_nan=True,
            )  # fmt: skip
        except AssertionError:
            return problem
    return ""


def _of_weights(op: Any, sample: Any, kind: torch.dtype) -> float:
    """The error that rounded weights may make."""
    if op.name not in _WEIGHTS_ROUNDED:
        return 0.0
    largest = max(float(t.abs().nan_to_num().max()) for t in _tensors((sample.input, sample.args)) if t.numel())
    return _WEIGHTS_ROUNDED[op.name] * torch.finfo(kind).eps / 2 * largest


def _is_random(op: Any, function: Callable[..., Any], sample: Any, expected: list[Any], call: _Call) -> bool:
    """Whether the CPU gives something else with another seed, of which some may give the same few bools; many of the
    database's functions set their own."""
    seed, others = torch.manual_seed, []
    for more in range(1, 17):
        with mock.patch("torch.manual_seed", lambda number, more=more: seed(number + more)):
            torch.manual_seed(0)
            others += zip(expected, call(op, function, sample, "cpu"), strict=True)
    return any(
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and one.layout == torch.strided
        and not torch.equal(one.nan_to_num(), other.nan_to_num())
        for one, other in others
    )


def _close(got: torch.Tensor, want: torch.Tensor, factor: float) -> None:
    relative, absolute = _TOLERANCES.get(want.dtype, (0.0, 0.0))
    torch.testing.assert_close(
        got.cpu(), want, rtol=relative * factor, atol=absolute * factor, equal_nan=True, check_layout=False
    )


def run(op: Any, family: str) -> Outcome:
    """Run the samples of an operator with one family of types, forward and, of float32, backward; of float32's first
    sample the variants in place and with ``out=``, too."""
    registration.register()
    outcome = Outcome()
    for place, sample in enumerate(samples(op, family)):
        _one(op, op.op, sample, outcome)
        if place == 0 and family == "float32":
            for variant in _variants(op, sample):
                _one(op, variant, sample, outcome)
    return outcome


def _variants(op: Any, sample: Any) -> Iterator[Callable[..., Any]]:
    inplace = op.get_inplace()
    if inplace is not None and not isinstance(sample.input, (list, tuple)):

        def in_place(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            return inplace(first.clone(), *args, **kwargs)

        yield in_place
    if op.supports_out:

        def with_out(first: Any, *args: Any, **kwargs: Any) -> Any:
            with torch.no_grad():
                result = op.op(first, *args, **kwargs)
                if not isinstance(result, torch.Tensor):
                    return op.op(first, *args, **kwargs, out=tuple(torch.empty_like(t) for t in result))
                gaps = torch.empty(*result.shape, 2, dtype=result.dtype, device=result.device).select(-1, 0)
                return op.op(first, *args, **kwargs, out=gaps), op.op(first, *args, **kwargs, out=result[:0].clone())

        if "out" not in sample.kwargs:
            yield with_out


def _one(op: Any, function: Callable[..., Any], sample: Any, outcome: Outcome) -> None:
    torch.manual_seed(0)
    try:
        expected = call(op, function, sample, "cpu")
    except Exception:  # nothing to compare with
        return
    before = registration.FALLBACKS.copy()
    try:
        torch.manual_seed(0)
        actual = call(op, function, sample, DEVICE)
        fallbacks = registration.FALLBACKS - before
        problem = difference(op, sample, function, expected, actual)
    except Exception as error:
        fallbacks, actual = registration.FALLBACKS - before, []
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:220]}"
    outcome.fallbacks |= set(fallbacks)
    if problem and any(op.name.startswith(name) for name in REFUSALS) and actual == []:
        outcome.add(REFUSED)
        return
    if problem:
        outcome.add(FAILING)
        outcome.problems.append(f"{getattr(function, '__name__', '')}: {problem} [{str(sample)[:300]}]")
        return
    outcome.add(ON_CPU if fallbacks else ON_DEVICE)


def errors(op: Any) -> Iterator[str]:
    """Of each call that torch's database says must be refused, and the CPU does: what is wrong with how the device
    does, which is nothing where it raises the same class of error."""
    registration.register()
    if op.error_inputs_func is None:
        return
    try:
        here, there = list(op.error_inputs("cpu")), list(op.error_inputs(DEVICE))
    except Exception:  # made for other devices
        return
    for case, same in zip(here, there, strict=False):
        try:
            call(op, op.op, case.sample_input, "cpu")
        except Exception as error:
            expected = type(error), str(error)
        else:
            continue
        sample = same.sample_input
        try:
            op.op(sample.input, *sample.args, **sample.kwargs)
            torch.zeros(1, device=DEVICE).cpu()
        except expected[0]:
            yield ""
        except IndexError as error:  # indices that are out of range are found when a result is read
            found = "" if "out of range" in str(error) else f"IndexError: {str(error)[:150]!r}"
            yield found and f"{found}, not {expected[0].__name__}: {expected[1][:150]!r}"
        except Exception as error:
            yield f"{type(error).__name__}: {str(error)[:150]!r}, not {expected[0].__name__}: {expected[1][:150]!r}"
        else:
            yield f"no error, not {expected[0].__name__}: {expected[1][:150]!r} [{str(sample)[:200]}]"


def entries() -> dict[str, Any]:
    """The database, by title()."""
    return {title(op): op for op in op_db}
