"""Operations whose arguments are places or lengths, called with wrong ones: each must raise, and touch no memory but
that of its tensors.

``python -m tests.device.torch_ops.places`` prints what does not. test_places.py runs it with
TRITON_SPIRV_CHECK_BOUNDS=1, which reports accesses outside tensors instead of the operation's own error.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F
from triton.backends.spirv.runtime.reports.outside import OutOfBounds
from triton.backends.spirv.torch import registration

#: Places past both ends of anything here, near and far.
WRONG = (-7, 7, 1 << 31, 1 << 40, -(1 << 62))
_Case = tuple[str, Callable[[], Any]]
aten = torch.ops.aten


def _on(value: Any) -> torch.Tensor:
    return torch.as_tensor(value).to("spirv")


def _bags(wrong: int) -> Iterator[_Case]:
    table, indices = _on(torch.arange(24.0).view(4, 6)), _on([0, 1, 2])
    for mode in ("sum", "max", "mean"):
        for offsets in ([0, wrong], [wrong, 2], [0, wrong, 2]):
            yield f"bags {mode} {offsets}", lambda m=mode, o=offsets: F.embedding_bag(indices, table, _on(o), mode=m)
        yield (
            f"bags {mode}, last",
            lambda m=mode: F.embedding_bag(indices, table, _on([0, wrong]), mode=m, include_last_offset=True),
        )
        yield f"bags {mode}, index", lambda m=mode: F.embedding_bag(_on([0, wrong]), table, _on([0, 1]), mode=m)
    weights = _on([1.0, 2.0, 3.0])
    yield (
        "bags, weights",
        lambda: F.embedding_bag(indices, table, _on([0, wrong]), mode="sum", per_sample_weights=weights),
    )
    given = {"indices": [0, 1, 2], "offset2bag": [0, 0, 1]}
    for name in given:
        for frequent in (False, True):
            changed = {**given, name: [0, wrong, 1]}
            yield (
                f"gradients of bags, {name}",
                lambda c=changed, f=frequent: aten._embedding_bag_dense_backward(
                    _on(torch.ones(2, 6)), _on(c["indices"]), _on(c["offset2bag"]), _on([2, 1]),
                    _on(torch.zeros(2, 6, dtype=torch.int64)), 4, f, 0, None,
                ),
            )  # fmt: skip


def _segments(wrong: int) -> Iterator[_Case]:
    data = _on(torch.arange(4.0))
    for unsafe in (False, True):
        for how in ("sum", "max", "mean"):
            for key in ("lengths", "offsets"):
                for values in ([wrong, 3], [0, wrong], [0, wrong, 4]):
                    yield (
                        f"segments {how} {key} {values} {unsafe}",
                        lambda h=how, k=key, v=values, u=unsafe: torch.segment_reduce(data, h, **{k: _on(v)}, unsafe=u),
                    )
    for how in ("sum", "max"):
        for key, values in (("lengths", [2, wrong]), ("offsets", [0, wrong, 4])):
            yield (
                f"gradients of segments {how} {key}",
                lambda h=how, k=key, v=values: aten._segment_reduce_backward(
                    _on(torch.ones(2)), _on(torch.ones(2)), data, h, **{k: _on(v)}
                ),
            )


def _pivots(wrong: int) -> Iterator[_Case]:
    if abs(wrong) >= 1 << 31:
        return
    factors, given = _on(torch.eye(3) + 0.1), _on(torch.ones(3, 1))
    pivots = _on(torch.tensor([1, wrong, 3], dtype=torch.int32))
    for adjoint in (False, True):
        yield "pivots", lambda a=adjoint: torch.linalg.lu_solve(factors, pivots, given, adjoint=a)
    yield "pivots of a permutation", lambda: torch.lu_unpack(factors, pivots)


def _classes(wrong: int) -> Iterator[_Case]:
    scores, classes = _on(torch.randn(3, 4)), _on([1, wrong, 2])
    images = _on(torch.randn(1, 4, 3, 1))
    yield "classes", lambda: F.nll_loss(scores, classes)
    yield "classes with weights", lambda: F.nll_loss(scores, classes, weight=_on(torch.ones(4)))
    yield "classes of images", lambda: F.nll_loss(images, classes.view(1, 3, 1))
    yield "classes of cross entropy", lambda: F.cross_entropy(scores, classes)
    yield "classes with a margin", lambda: F.multi_margin_loss(scores, classes)
    yield "one hot", lambda: F.one_hot(classes, 4)
    for value in (wrong, 4):
        yield "several classes", lambda v=value: F.multilabel_margin_loss(scores, _on([[1, v, -1, 0]]).expand(3, 4))
    logits = _on(torch.randn(5, 1, 4).log_softmax(-1))
    yield "labels", lambda: F.ctc_loss(logits, _on([[1, wrong]]), torch.tensor([5]), torch.tensor([2]))
    yield "times", lambda: F.ctc_loss(logits, _on([[1, 2]]), torch.tensor([wrong]), torch.tensor([2]))
    yield "lengths of labels", lambda: F.ctc_loss(logits, _on([[1, 2]]), torch.tensor([5]), torch.tensor([wrong]))


def _indices(wrong: int) -> Iterator[_Case]:
    x, line = _on(torch.arange(24.0).view(4, 6)), _on([1, wrong])
    rows, row = _on(torch.ones(2, 6)), line.view(1, 2)
    yield "embedding", lambda: F.embedding(line, x)
    yield "embedding, largest norm", lambda: F.embedding(line, x.clone(), max_norm=1.0)
    for frequent in (False, True):
        yield "gradients of rows", lambda f=frequent: aten.embedding_dense_backward(rows, line, 4, -1, f)
    yield "take", lambda: x.take(line * 6)
    yield "put", lambda: x.clone().put_(line * 6, _on(torch.ones(2)))
    yield "gather", lambda: x.gather(0, row)
    yield "scatter", lambda: x.scatter(0, row, 1.0)
    yield "scatter_add", lambda: x.scatter_add(0, row, _on(torch.ones(1, 2)))
    for how in ("sum", "prod", "mean", "amax"):
        yield f"scatter_reduce {how}", lambda h=how: x.scatter_reduce(0, row, _on(torch.ones(1, 2)), h)
    yield "index_reduce", lambda: x.index_reduce(0, line, rows, "prod")
    yield "index_add", lambda: x.index_add(0, line, rows)
    yield "index_copy", lambda: x.index_copy(0, line, rows)
    yield "index_fill", lambda: x.index_fill(0, line, 1.0)
    yield "index", lambda: x[line]
    yield "index of a column", lambda: x[:, line]
    yield "index_put", lambda: x.clone().index_put_([line], _on(torch.ones(6)))
    yield "index_put, added", lambda: x.clone().index_put_([line], _on(torch.ones(6)), accumulate=True)
    yield "index_select", lambda: x.index_select(0, line)
    yield "gradient of index_select", lambda: aten.index_select_backward(rows, [4, 6], 0, line)
    yield "order of a search", lambda: torch.searchsorted(x[0], _on(torch.ones(2)), sorter=_on([0, wrong, 2, 3, 4, 5]))
    yield "quantile", lambda: torch.quantile(x, _on([0.5, float(wrong)]))
    if wrong < 0:
        yield "repeats", lambda: torch.repeat_interleave(line)
        yield "counts", lambda: torch.bincount(line)


def _maxima(wrong: int) -> Iterator[_Case]:
    for count, unpool in ((1, F.max_unpool1d), (2, F.max_unpool2d), (3, F.max_unpool3d)):
        shape = (1, 1, *(1,) * (count - 1), 2)
        place, ones = _on([0, wrong]).view(shape), _on(torch.ones(shape))
        yield f"max_unpool{count}d", lambda u=unpool, o=ones, p=place, c=count: u(o, p, (*(1,) * (c - 1), 2))
        if count == 1:
            continue
        whole, window = _on(torch.ones(*shape[:-1], 4)), [*(1,) * (count - 1), 2]
        plain = window, window, [0] * count, [1] * count, False
        back = getattr(aten, f"max_pool{count}d_with_indices_backward")
        yield f"max_pool{count}d", lambda b=back, o=ones, w=whole, h=plain, p=place: b(o, w, *h, p)
        back = getattr(aten, f"adaptive_max_pool{count}d_backward")
        yield f"adaptive_max_pool{count}d", lambda b=back, o=ones, w=whole, p=place: b(o, w, p)
        back = getattr(aten, f"fractional_max_pool{count}d_backward")
        yield f"fractional_max_pool{count}d", lambda b=back, o=ones, w=whole, s=window, p=place: b(o, w, s, s, p)


def cases(wrong: int) -> Iterator[_Case]:
    """Calls with one wrong place."""
    for family in (_bags, _segments, _pivots, _classes, _indices, _maxima):
        yield from family(wrong)


def outcome(call: Callable[[], Any]) -> str:
    """What is wrong with a call; nothing if it raised."""
    try:
        call()
        torch.zeros(1, device="spirv").cpu()
    except OutOfBounds as error:
        return f"touches foreign memory: {error}"
    except (IndexError, RuntimeError, ValueError):
        return ""
    return "raises nothing"


def main() -> int:
    """Prints what is wrong; 1 where anything is."""
    registration.register()
    problems = count = 0
    for wrong in WRONG:
        for name, call in cases(wrong):
            count += 1
            if problem := outcome(call):
                problems += 1
                print(f"{name}, {wrong}: {problem}", flush=True)
    print(f"{count} calls")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
