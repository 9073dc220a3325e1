"""Operators of torch's own test database with each argument made wrong in turn, on the CPU and on the device: both must
raise, or both must agree.

``python -m tests.device.torch_ops.wrong_arguments`` runs all, in processes of their own, because some wrong
arguments end a process in torch's own CPU code. ``--part 2/8`` runs the second eighth, ``--only NAME …`` these
operators, ``--sample 40 --seed 3`` so many of them. docs/internals/torch-wrong-arguments.md
has what stays different, and why.
"""

import argparse
import functools
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput
from triton.backends.spirv.torch import registration

from . import op_database
from .op_database import title

#: What a call with wrong arguments may come to. ``MORE``: the CPU has no kernel for the type. The last three are
#: faults, or have a row in KNOWN.
AGREE, RAISE, MORE, NOT_COMPARED = "agree", "raise", "more types", "not compared"
SILENT, REFUSED, OTHER = "silent", "refused", "another result"
FAULTS = (SILENT, REFUSED, OTHER)
PAGE = Path(__file__).parents[3] / "docs/internals/torch-wrong-arguments.md"


@dataclass(frozen=True)
class Result:
    """What a call with a wrong argument came to."""

    name: str
    label: str
    kind: str
    detail: str


@dataclass(frozen=True)
class Known:
    """A difference that stays. ``names`` and ``labels``: expressions that the operators' titles and the changes match;
    ``operators``, ``change`` and ``why`` are for the page."""

    names: str
    labels: str
    kinds: tuple[str, ...]
    operators: str
    change: str
    why: str


_FLOATS = r"with (nan|inf|-inf|0\.0|-1\.5)$"
KNOWN = (
    Known(
        r"linalg\.|svd|cholesky|pinverse|triangular_solve|lu_solve|lu$|lu |ormqr|geqrf|logdet|inverse|norm \(nuc",
        _FLOATS,
        (SILENT, OTHER),
        "`linalg` and what builds on it",
        "a number that is NaN or infinite, or makes the matrix singular",
        "which elements are then NaN and which infinite, and whether there is an error, is as it comes in LAPACK",
    ),
    Known(
        r".*(layer_norm|group_norm|batch_norm|instance_norm|_legit)",
        r"with (inf|-inf|nan)$",
        (OTHER,),
        "norms",
        "an input or weight that is infinite",
        "the CPU multiplies the weight by 1 / deviation first, and takes means in another order: one has NaN where the "
        "other has an infinity",
    ),
    Known(
        r".*batch_norm|_native_batch_norm",
        r"(argument \d|weight|bias|running_\w+) (empty|one shorter|without|with one more|of)",
        (REFUSED, OTHER),
        "batch norm",
        "a weight or statistic that does not have an element a channel",
        "the device raises RuntimeError; the CPU reads memory past the tensor's end",
    ),
    Known(
        r"_segment_reduce|segment_reduce",
        r".*",
        (REFUSED,),
        "`segment_reduce`",
        "offsets that fall, or lie past the end",
        "the device raises RuntimeError; the CPU reads memory past the tensor's end",
    ),
    Known(
        r"fft\.|stft|istft",
        r".*empty$",
        (SILENT,),
        "Fourier transforms",
        "nothing to transform",
        "MKL refuses some; the device gives a result without elements",
    ),
    Known(
        r"(special\.)?polygamma|mvlgamma|special\.zeta",
        r".*(of int64|with -?inf|with 0\.0)$",
        (OTHER,),
        "`polygamma`",
        "a pole, or an infinite number",
        "the device gives the limit; the CPU a large number, or NaN",
    ),
    Known(
        r"(special\.)?(bessel_\w+|i0e?|i1e?|modified_bessel_i\w+|spherical_bessel\w+)",
        r".*with -?inf$",
        (OTHER,),
        "Bessel's functions",
        "an infinite number",
        "the device gives the limit; the CPU NaN",
    ),
    Known(
        r"(int|long|short|char|byte|bool)$|to$|.*type_as|.*view_as",
        r".*with (nan|inf|-inf)$",
        (OTHER,),
        "casts to integers",
        "NaN, or an infinite number",
        "no standard says what they become",
    ),
    Known(
        r"tensor_split",
        r".*",
        (REFUSED,),
        "`tensor_split`",
        "a tensor of indices that is not on the CPU",
        "torch wants it on the CPU, as it does for CUDA",
    ),
    Known(r"to_sparse|sparse\.|.*sparse", r".*", (REFUSED, OTHER), "sparse tensors", "any", "they have no kernels"),
    Known(
        r"nn\.functional\.conv_transpose",
        r"argument 2 " + _FLOATS,
        (OTHER,),
        "transposed convolutions",
        "a weight that is NaN or infinite",
        "the device multiplies it by the zeros between the input's elements, too, which makes NaN of more results",
    ),
    Known(
        r"fft\.|stft|istft",
        r".*with -?inf$",
        (OTHER,),
        "Fourier transforms",
        "an infinite number",
        "which parts of a result are NaN and which infinite depends on the order of its sums",
    ),
    Known(
        r"lu_unpack|lu_solve|linalg\.lu_solve",
        r"argument \d (one shorter|without its first dimension|empty|with one more)",
        (REFUSED, OTHER),
        "`lu_unpack` and `lu_solve`",
        "pivots of another shape than the rows of their matrices",
        "the device raises RuntimeError; the CPU reads memory past the tensor's end",
    ),
    Known(
        r"grid_sampler_|nn\.functional\.grid_sample",
        r"argument 2 " + _FLOATS,
        (OTHER,),
        "`grid_sample`",
        "a place that is NaN or infinite",
        "the CPU multiplies what is outside by 0, with NaN for a result, or leaves it out, as its vectors have it",
    ),
    Known(
        r"mode$",
        r".*with nan$",
        (OTHER,),
        "`mode`",
        "NaN",
        "NaN equals nothing, so that it is the most frequent only where there is nothing else; what the CPU gives "
        "depends on the order of the elements",
    ),
    Known(
        r"cdist|.*pairwise_distance",
        r".*with nan$",
        (OTHER,),
        "`cdist` of the order infinity",
        "NaN",
        "the CPU's result may be of the other numbers; the device's is NaN, as that of `pdist` is on both",
    ),
    Known(
        r"addr",
        r"first argument with one more dimension",
        (SILENT,),
        "`addr`",
        "a matrix with one more dimension",
        "torch's own composition, which other devices than the CPU have, broadcasts it",
    ),
    Known(
        r"resize_(as_)?$",
        r".*",
        (OTHER,),
        "`resize_` and `resize_as_`",
        "a size with more elements",
        "what is new in memory has no value, on either device",
    ),
    Known(
        r"nn\.functional\.scaled_dot_product_attention",
        r"argument 3 empty",
        (REFUSED,),
        "`scaled_dot_product_attention`",
        "values of no batch",
        "the device raises RuntimeError; the CPU does not compare the sizes",
    ),
)


def known(result: Result) -> Known | None:
    """The row of a fault, if it has one."""
    for row in KNOWN:
        if (
            result.kind in row.kinds
            and re.match(row.names, result.name)
            and re.search(row.labels, result.label.removesuffix(" (out)"))
        ):
            return row
    return None


_HEADER = """# Wrong arguments of torch's operators

What torch's CPU refuses, the device `spirv` refuses, and what the CPU computes, the device computes. A test calls the
operators of torch's own test database with each argument made wrong in turn: another type or size, nothing, NaN,
infinities, negative numbers, and numbers past the end. Both devices must raise, or both must agree. These differences
stay; `python -m tests.device.torch_ops.wrong_arguments --page` writes this page.

An error about values, such as an index that is out of range, may come with the next copy to the host instead of at once
([torch.md](../torch.md#operations-that-run-on-the-device)). Where the CPU has no kernel for a type ("not implemented
for 'Long'"), the device may have one.

| operators | what is wrong | difference |
| --- | --- | --- |
"""


def page() -> str:
    """The text of docs/internals/torch-wrong-arguments.md."""
    rows = [f"| {row.operators} | {row.change} | {row.why} |\n" for row in KNOWN]
    return _HEADER + "".join(rows)


_WRONG_NUMBERS = (-1, 0, 1000, -1000)
_TYPES = {
    "float32": (torch.int64, torch.complex64, torch.float64),
    "int64": (torch.float32, torch.int32, torch.bool),
    "bool": (torch.float32, torch.uint8),
    "complex64": (torch.float32,),
}
Path = tuple[Any, ...]


@dataclass(frozen=True)
class Wrong:
    """A sample with one argument changed: ``label`` says which, and how."""

    label: str
    sample: SampleInput


def _tensors(x: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensor with a wrong type, size or value."""
    name = str(x.dtype).removeprefix("torch.")
    for dtype in _TYPES.get(name, ()):
        yield f"of {str(dtype).removeprefix('torch.')}", x.to(dtype)
    if x.dim():
        yield "empty", x[:0]
        if x.shape[0] > 1:
            yield "one shorter", x[:-1]
        yield "without its first dimension", x[0] if x.shape[0] else x.sum(0)
    yield "with one more dimension", x[None]
    if not x.numel():
        return
    if x.dtype.is_floating_point:
        values: tuple[Any, ...] = (float("nan"), float("inf"), float("-inf"), 0.0, -1.5)
    elif x.dtype in (torch.int64, torch.int32):
        values = (-1, 1000, -1000, 1 << 40 if x.dtype == torch.int64 else 1 << 30)
    else:
        return
    for value in values:
        changed = x.clone(memory_format=torch.contiguous_format)
        changed.view(-1)[-1] = value
        yield f"with {value}", changed


def _numbers(value: float) -> Iterator[tuple[str, Any]]:
    for number in _WRONG_NUMBERS:
        if number != value:
            yield f"= {number}", number
    if isinstance(value, float):
        yield "= nan", float("nan")
        yield "= inf", float("inf")
    else:
        yield "= 1.5", 1.5


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """What an argument may wrongly be instead."""
    if isinstance(value, torch.Tensor):
        if value.layout == torch.strided and not value.is_conj() and not value.is_neg():
            yield from _tensors(value.detach())
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)):
        yield from _numbers(value)
    elif isinstance(value, str):
        yield "= 'wrong'", "wrong"
    elif isinstance(value, torch.dtype):
        for dtype in (torch.bool, torch.int64, torch.complex64):
            if dtype != value:
                yield f"= {dtype}", dtype
    elif isinstance(value, (list, tuple)) and value:
        kind: Callable[[Any], Any] = type(value) if type(value) in (list, tuple) else tuple
        yield "without its last", kind(value[:-1])
        yield "with its last twice", kind([*value, value[-1]])
        for how, one in changes(value[-1]):
            yield f"whose last is {how}", kind([*value[:-1], one])


def wrongs(sample: SampleInput) -> Iterator[Wrong]:
    """All changes of all arguments, one at a time."""
    keep = {"output_process_fn_grad": sample.output_process_fn_grad}
    for how, value in changes(sample.input):
        yield Wrong(f"first argument {how}", SampleInput(value, args=sample.args, kwargs=sample.kwargs, **keep))
    for place, given in enumerate(sample.args):
        for how, value in changes(given):
            args = (*sample.args[:place], value, *sample.args[place + 1 :])
            yield Wrong(
                f"argument {place + 2} {how}", SampleInput(sample.input, args=args, kwargs=sample.kwargs, **keep)
            )
    for name, given in sample.kwargs.items():
        for how, value in changes(given):
            kwargs = {**sample.kwargs, name: value}
            yield Wrong(f"{name} {how}", SampleInput(sample.input, args=sample.args, kwargs=kwargs, **keep))


def samples(op: Any) -> list[SampleInput]:
    """The first of torch's samples that has the most arguments, for the first family of types that the operator has."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        if dtype in op.dtypes:
            torch.manual_seed(0)
            found = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), 60))
            found = [
                s for s in found if all(t.numel() < 4096 for t in op_database._tensors((s.input, s.args, s.kwargs)))
            ]
            filled = [s for s in found if all(t.numel() for t in op_database._tensors((s.input, s.args, s.kwargs)))]
            found = filled or found
            return [max(found, key=lambda s: len(s.args) + len(s.kwargs))] if found else []
    return []


def outputs(op: Any, sample: SampleInput) -> tuple[torch.dtype, ...]:
    """The types of the outputs that the operator can be given for its results; none where it takes no outputs."""
    if not op.supports_out:
        return ()
    results = op_database.call(op, op.op, sample, "cpu")
    return tuple(result.dtype for result in results if isinstance(result, torch.Tensor))


def _call(op: Any, sample: SampleInput, device: str, types: tuple[torch.dtype, ...]) -> list[Any]:
    torch.manual_seed(0)
    outs = tuple(torch.empty(0, dtype=dtype, device=device) for dtype in types)
    function = functools.partial(op.op, out=outs if len(outs) > 1 else outs[0]) if outs else op.op
    try:
        results = op_database.call(op, function, sample, device)
        return [x.cpu() if isinstance(x, torch.Tensor) else x for x in results]
    finally:
        if device != "cpu":
            torch.zeros(1, device=device).cpu()  # raises what was noted


def compare(op: Any, sample: SampleInput, types: tuple[torch.dtype, ...] = ()) -> tuple[str, str]:
    """What a call comes to, and in which way it differs. ``types``: of outputs that it is given."""
    try:
        expected, error = _call(op, sample, "cpu", types), None
    except Exception as raised:
        expected, error = [], raised
    print(json.dumps({"survived": True}), flush=True)
    try:
        actual = _call(op, sample, op_database.DEVICE, types)
    except Exception as raised:
        if error is not None:
            return RAISE, ""
        return REFUSED, f"{type(raised).__name__}: {' '.join(str(raised).split())[:160]}"
    if isinstance(error, NotImplementedError) and "not implemented for" in str(error):
        return MORE, ""
    if error is not None:
        return SILENT, f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    try:
        problem = op_database.difference(op, sample, op.op, expected, actual)
    except Exception as raised:
        return NOT_COMPARED, str(raised)[:100]
    return (OTHER, problem) if problem else (AGREE, "")


def _child(names: list[str], skip: int) -> None:
    """Prints a line before and after each call of the operators, the first ``skip`` left out."""
    registration.register()
    entries = {title(op): op for op in op_db}
    count = 0
    for name in names:
        for sample in samples(entries[name]):
            types = outputs(entries[name], sample)
            for wrong, given in itertools.product(wrongs(sample), dict.fromkeys(((), types))):
                count += 1
                if count <= skip:
                    continue
                print(json.dumps({"name": name, "label": wrong.label + " (out)" * bool(given)}), flush=True)
                try:
                    kind, detail = compare(entries[name], wrong.sample, given)
                except Exception as error:  # of the database's own helpers
                    kind, detail = NOT_COMPARED, str(error)[:100]
                print(json.dumps({"kind": kind, "detail": detail}), flush=True)


def run(names: list[str]) -> Iterator[Result]:
    """The results of operators, from processes that are started again where one ended."""
    skip = 0
    command = [sys.executable, "-m", __spec__.name if __name__ == "__main__" and __spec__ else __name__, "--child"]
    environment = {**os.environ, "TRITON_SPIRV_BACKEND": "1"}
    while True:
        child = subprocess.Popen(
            [*command, str(skip), *names], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert child.stdout is not None
        begun: dict[str, Any] = {}
        for line in child.stdout:
            if not line.startswith("{"):
                continue
            told = json.loads(line)
            if "name" in told:
                if told["name"] != begun.get("last"):
                    print(told["name"], file=sys.stderr, flush=True)
                skip, begun = skip + 1, {**told, "last": told["name"]}
            elif "survived" in told:
                begun["survived"] = True
            else:
                yield Result(begun["name"], begun["label"], told["kind"], told["detail"])
                begun = {"last": begun["name"]}
        child.wait()
        if "label" not in begun:
            assert not child.returncode, f"an operator of {names[:4]} … is not in torch's database, or cannot be loaded"
            return
        # The CPU's own end has nothing to be compared with.
        if begun.get("survived"):
            yield Result(begun["name"], begun["label"], OTHER, f"the process ended with {child.returncode}")


def chosen(part: str = "1/1", only: list[str] | None = None, sample: int = 0, seed: int = 0) -> list[str]:
    """Names of operators."""
    names = sorted(title(op) for op in op_db)
    if only:
        return only
    if sample:
        return random.Random(seed).sample(names, sample)
    number, parts = map(int, part.split("/"))
    random.Random(seed).shuffle(names)
    return names[(number - 1) * len(names) // parts : number * len(names) // parts]


def main() -> int:
    """Prints faults as they come, then how many calls came to what; 1 where there is a fault that is not known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write docs/internals/torch-wrong-arguments.md")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _child(arguments.child[1:], int(arguments.child[0]))
        return 0
    if arguments.page:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    counts: dict[str, int] = {}
    for found in run(chosen(arguments.part, arguments.only, arguments.sample, arguments.seed)):
        kind = "known" if found.kind in FAULTS and known(found) else found.kind
        counts[kind] = counts.get(kind, 0) + 1
        if kind in FAULTS:
            print(f"{found.name} | {found.label} | {found.kind} | {found.detail}", flush=True)
    print(counts)
    return int(any(counts.get(kind) for kind in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
