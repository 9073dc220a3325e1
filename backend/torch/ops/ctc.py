# mypy: allow-untyped-defs
"""Connectionist temporal classification: the loss of a sequence of labels under probabilities of labels at each time.

Graves et al., "Connectionist Temporal Classification" (ICML 2006), section 4.1, in logarithms. Of L labels there are
2 L + 1 states: blanks with the labels between them. alpha[t, s] is the probability of all ways to reach state s at time
t, beta[t, s] that of all ways to go on from it, each with what is emitted at t. One kernel, a program a sequence, does
both: beta is alpha with times and states reversed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from .dtypes import OnHost, require
from .launching import launch

#: A program holds all states of a sequence.
_MOST_STATES = 1024


@triton.jit
def paths_kernel(
    out, loss, emitted, labels, times, lengths, T, S, blank, REVERSED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """out (N, T, S), alpha or beta, and with alpha the loss (N), of emitted (N, T, S) and labels (N, S); times and
    lengths (N): how many of the former and of labels without blanks count."""
    n = tl.program_id(0)
    steps = tl.load(times + n).to(tl.int32)
    last = tl.load(lengths + n).to(tl.int32) * 2
    s = tl.arange(0, BLOCK)
    inside = s <= last
    if REVERSED:
        place, before = last - s, last - s + 2
    else:
        place, before = s, s - 2
    nothing = float("-inf")
    label = tl.load(labels + n * S + place, mask=inside, other=0)
    other = tl.load(labels + n * S + before, mask=inside & (s >= 2), other=0)
    skips = inside & (s >= 2) & (label != blank) & (label != other)
    base = n.to(tl.int64) * T * S + place
    start = tl.where(steps > 0, steps - 1, 0) if REVERSED else steps * 0
    value = tl.load(emitted + base + start * S, mask=inside & (s < 2) & (steps > 0), other=nothing)
    tl.store(out + base + start * S, value, mask=inside & (steps > 0))
    one_back, two_back = tl.where(s >= 1, s - 1, 0), tl.where(s >= 2, s - 2, 0)
    for i in range(1, steps):
        t = steps - 1 - i if REVERSED else i
        one = tl.where(s >= 1, tl.gather(value, one_back, 0), nothing)
        two = tl.where(skips, tl.gather(value, two_back, 0), nothing)
        top = tl.maximum(tl.maximum(value, one), two)
        top = tl.where(top == nothing, 0.0, top)
        value = tl.log(tl.exp(value - top) + tl.exp(one - top) + tl.exp(two - top)) + top
        value += tl.load(emitted + base + t * S, mask=inside, other=nothing)
        tl.store(out + base + t * S, value, mask=inside)
    if not REVERSED:
        end = tl.sum(tl.where(s == last, value, 0.0), 0)
        before_end = tl.where(last > 0, tl.sum(tl.where(s == last - 1, value, 0.0), 0), nothing)
        top = tl.maximum(end, before_end)
        top = tl.where(top == nothing, 0.0, top)
        total = tl.log(tl.exp(end - top) + tl.exp(before_end - top)) + top
        total = tl.where(steps > 0, total, tl.where(last == 0, 0.0, nothing))
        tl.store(loss + n, 0.0 - total)


class _Sequences:
    """What both directions need: (N, T, S) of probabilities that states emit, and the labels of states."""

    def __init__(
        self, log_probs: torch.Tensor, targets: torch.Tensor, times: Sequence[int], lengths: Sequence[int], blank: int
    ) -> None:
        device = log_probs.device
        require(log_probs.dtype, device.index or 0)
        if log_probs.dtype not in (torch.float32, torch.float64) or log_probs.dim() != 3 or targets.device != device:
            raise OnHost("numbers that are refused")
        self.T, self.N, classes = log_probs.shape
        if targets.dtype not in (torch.int32, torch.int64) or not 0 <= blank < classes or not self.T * self.N:
            raise OnHost("labels that are refused")
        if len(times) != self.N or len(lengths) != self.N or min(*times, *lengths) < 0 or max(times) > self.T:
            raise OnHost("lengths that are refused")
        longest = max(lengths) if targets.dim() == 1 else targets.shape[1]
        fit = sum(lengths) == targets.numel() if targets.dim() == 1 else max(lengths) <= longest
        if not fit or (targets.dim() == 2 and targets.shape[0] != self.N):
            raise OnHost("labels that are refused")
        self.S, self.blank = 2 * longest + 1, blank
        if self.S > _MOST_STATES:
            raise OnHost(f"{self.S} states")
        self.times, self.lengths = (torch.tensor(x, dtype=torch.int32).to(device) for x in (times, lengths))
        places = torch.arange(longest, device=device)
        given = places < self.lengths[:, None]  # labels past a sequence's end are anything
        if targets.dim() == 1 and longest:
            begins = (self.lengths.cumsum(0) - self.lengths)[:, None]
            targets = targets[torch.where(given, begins + places, 0)]
        self.labels = torch.full((self.N, self.S), blank, dtype=torch.int64, device=device)
        if longest:
            self.labels[:, 1::2] = torch.where(given, targets.to(torch.int64), blank)
        self.of_states = self.labels[:, None, :].expand(self.N, self.T, self.S)
        self.emitted = log_probs.transpose(0, 1).gather(2, self.of_states)

    def paths(self, backward: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """(alpha or beta (N, T, S), the loss (N), of alpha)."""
        out = torch.full_like(self.emitted, float("-inf"))
        loss = self.emitted.new_empty(self.N)
        tensors = {"out": out, "loss": loss, "emitted": self.emitted, "labels": self.labels}
        tensors |= {"times": self.times, "lengths": self.lengths}
        numbers = {"T": self.T, "S": self.S, "blank": self.blank}
        constants = {"REVERSED": backward, "BLOCK": max(16, triton.next_power_of_2(self.S))}
        launch(paths_kernel, (self.N, 1, 1), {**tensors, **numbers}, constants, num_warps=1 if self.S <= 64 else 4)
        return out, loss


def _loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(the loss (N), alpha (N, T, S))."""
    alpha, loss = _Sequences(log_probs, targets, _list(input_lengths), _list(target_lengths), blank).paths(False)
    return loss, alpha


def _gradient(
    grad: torch.Tensor,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    neg_log_likelihood: torch.Tensor,
    log_alpha: torch.Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """(T, N, C): the probabilities less the share of all ways that emit each label at each time."""
    known = _Sequences(log_probs, targets, _list(input_lengths), _list(target_lengths), blank)
    beta, _ = known.paths(True)
    ways = log_alpha + beta
    reached = ways != float("-inf")
    loss = neg_log_likelihood[:, None, None]
    shares = torch.where(reached | loss.isinf(), (ways + loss - torch.where(reached, known.emitted, 0)).exp(), 0)
    out = log_probs.transpose(0, 1).exp().scatter_add(2, known.of_states, -shares) * grad[:, None, None]
    late = torch.arange(known.T, device=log_probs.device)[None, :] >= known.times[:, None]
    dropped = late[:, :, None] | loss.isinf() if zero_infinity else late[:, :, None]
    return torch.where(dropped, 0, out).transpose(0, 1).contiguous()


def _list(lengths: Any) -> list[int]:
    return lengths.tolist() if isinstance(lengths, torch.Tensor) else list(lengths)


TABLE: dict[str, Callable[..., Any]] = {
    "_ctc_loss _ctc_loss.Tensor": _loss,
    "_ctc_loss_backward _ctc_loss_backward.Tensor": _gradient,
}
