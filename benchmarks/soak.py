"""Hours of a training script in minutes: whether anything grows, and whether it computes what torch's CPU does.

A small transformer learns to continue sequences of varying length in batches of varying size, which a DataLoader's
worker makes. Each round trains, writes a checkpoint and reads it again, evaluates, and generates text whose length
grows. Steps of all sizes come first, so that what is kept for sizes, within limits, is there from the start. Measured
after each round are the process's memory, what the pool holds, threads, open files and Python objects.
After the first tenth each must be flat (trends.py): a rise that is certainly more than 1% an hour fails, and its name
is told with the types of the objects that became more. Every few rounds torch's CPU device repeats the round's first
steps from the same checkpoint; losses, scores and generated text must be the same.

    python -m benchmarks.soak [--minutes M] [--device NAME] [--workers N] [--pinned] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import io
import itertools
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from .trends import trend

_WIDTH, _HEADS, _LAYERS, _WORDS = 32, 2, 2, 64
_LONGEST, _MOST = 60, 4  # elements of a sequence, sequences of a batch
#: Steps of a round, how many of them torch's CPU repeats, and in which rounds.
_STEPS, _REPEATED, _EVERY = 20, 5, 10
_GENERATED = 24
#: A trend can be certain from nine rounds on, without the first tenth.
_FEWEST = 12
#: The most that something may certainly rise in an hour.
BOUND = 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sequences(Dataset[torch.Tensor]):
    """Batches (B, T + 1) of words, T below ``longest``, each of which follows from the one before, with some noise."""

    def __init__(self, longest: int = _LONGEST) -> None:
        self.longest = longest

    def __len__(self) -> int:
        return _STEPS

    def __getitem__(self, place: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(int(torch.randint(1 << 62, ())))
        batch, length = (
            int(torch.randint(low, high, (), generator=generator)) for low, high in ((1, _MOST + 1), (5, self.longest))
        )
        words = torch.empty(batch, length + 1, dtype=torch.long)
        words[:, 0] = torch.randint(_WORDS, (batch,), generator=generator)
        for at in range(length):
            noise = torch.randint(3, (batch,), generator=generator)
            words[:, at + 1] = (words[:, at] * 5 + 1 + noise) % _WORDS
        return words


class Model(nn.Module):
    """Scores of the next word (B, T, words) of words (B, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(_LONGEST + _GENERATED, _WIDTH)
        layer = nn.TransformerEncoderLayer(
            _WIDTH, _HEADS, 2 * _WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.scores = nn.Linear(_WIDTH, _WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        length = words.shape[1]
        x = self.words(words) + self.places(torch.arange(length, device=words.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=words.device)
        return self.scores(self.layers(x, mask=mask, is_causal=True))  # type: ignore[no-any-return]


class Trainer:
    """A model in training on a device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.model = Model().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def loss(self, words: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        words = words.to(self.device, non_blocking=True)
        return F.cross_entropy(self.model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())

    def step(self, words: torch.Tensor) -> float:
        """Learn from a batch; its loss before."""
        self.optimizer.zero_grad()
        loss = self.loss(words)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def generate(self, words: torch.Tensor) -> tuple[list[int], torch.Tensor]:
        """The words that follow, and the scores of the last of them on the host."""
        self.model.eval()
        words = words.to(self.device)
        for _ in range(_GENERATED):
            scores = self.model(words)[:, -1]
            words = torch.cat((words, scores.argmax(-1, keepdim=True)), 1)
        self.model.train()
        return words[0].tolist(), scores.cpu()

    def saved(self) -> bytes:
        """A checkpoint."""
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, buffer)
        return buffer.getvalue()

    def load(self, checkpoint: bytes) -> None:
        """Go on from a checkpoint."""
        state = torch.load(io.BytesIO(checkpoint), map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def _warm_up(trainer: Trainer, longest: int) -> None:
    """Steps of all sizes, twice: a size's calls are recorded when it comes again, and oneDNN keeps 40 kB for each. The
    trainer is as before."""
    before = trainer.saved()
    for _ in range(2):
        for batch, length in itertools.product(range(1, _MOST + 1), range(5, longest)):
            trainer.step(torch.randint(_WORDS, (batch, length + 1)))
    trainer.load(before)


@dataclass
class Measured:
    """What was measured after each round, by name; ``seconds`` since the start, or rounds if these are counted."""

    seconds: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    compared: int = 0

    def note(self, at: float, figures: dict[str, float]) -> None:
        """Add a round's."""
        self.seconds.append(at)
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(value)


def _figures(device: str) -> dict[str, float]:
    gc.collect()
    found = {
        "process memory": int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE,
        "threads": len(os.listdir("/proc/self/task")),
        "Python threads": threading.active_count(),
        "open files": len(os.listdir("/proc/self/fd")),
        "Python objects": len(gc.get_objects()),
    }
    if device != "cpu":
        pool: Any = getattr(torch, torch.device(device).type)
        found |= {"pool reserved": pool.memory_reserved(), "pool allocated": pool.memory_allocated()}
    return found


def _kinds() -> Counter[str]:
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())


def _compare(where: str, found: Any, wanted: Any, tolerance: float) -> None:
    torch.testing.assert_close(
        torch.as_tensor(found),
        torch.as_tensor(wanted),
        rtol=tolerance,
        atol=tolerance,
        msg=lambda text: f"{where}: {text}",
    )


def soak(
    minutes: float,
    device: str = "spirv",
    workers: int = 1,
    pinned: bool = False,
    tell: Callable[[str], None] = print,
    after_round: Callable[[], None] = lambda: None,
    bound: float = BOUND,
    rounds: int = 0,
    longest: int = _LONGEST,
) -> Measured:
    """Run for so many minutes, and a few rounds at least. Raises AssertionError where something grows by more than
    ``bound`` an hour, or is not what torch's CPU computes. ``after_round``: is called after each round. ``rounds``: run
    so many instead, each of which counts as a second. Sequences are shorter than ``longest``; steps of all sizes come
    first, which takes a minute of processor time for all that the model takes."""
    torch.manual_seed(0)
    trainer, beside = Trainer(device), Trainer("cpu")
    loader = DataLoader(
        Sequences(longest), batch_size=None, num_workers=workers, pin_memory=pinned, persistent_workers=workers > 0
    )
    held_out = [batch.clone() for batch in DataLoader(Sequences(longest), batch_size=None)][:4]
    for one in (trainer, beside):
        _warm_up(one, longest)
    measured, kinds, start, number = Measured(), Counter[str](), time.monotonic(), 0

    def now() -> float:
        return number if rounds else time.monotonic() - start

    while now() < (rounds or 60 * minutes) or number < _FEWEST:
        checkpoint = trainer.saved()
        trainer.load(checkpoint)
        again = number % _EVERY == 0
        if again:
            beside.load(checkpoint)
            measured.compared += 1
        losses = [*_round(trainer, beside if again else None, loader, number)]
        with torch.no_grad():
            evaluated = sum(trainer.loss(batch).item() for batch in held_out) / len(held_out)
        trainer.generate(held_out[0][:1, :5])
        after_round()
        measured.losses.append(evaluated)
        number += 1
        measured.note(now(), _figures(device))
        if not kinds and now() > (rounds or 60 * minutes) / 10:
            kinds = _kinds()
        if number % 20 == 1:
            last = {name: values[-1] for name, values in measured.figures.items()}
            tell(f"{measured.seconds[-1]:7.0f} s, round {number}, loss {losses[-1]:.3f}, {evaluated:.3f}; {last}")
    _report(measured, kinds, tell, bound)
    return measured


def _round(trainer: Trainer, beside: Trainer | None, loader: Any, number: int) -> Iterator[float]:
    """Losses of a round's steps. The first are the same as those ``beside``."""
    for place, batch in enumerate(loader):
        loss = trainer.step(batch)
        if beside is not None and place < _REPEATED:
            _compare(f"the loss of step {place} in round {number}", loss, beside.step(batch), 1e-3)
            if place == _REPEATED - 1:
                words = batch[:1, :5]
                (ours, scores), (theirs, wanted) = trainer.generate(words), beside.generate(words)
                if ours == theirs:  # two words may have one score
                    _compare(f"the scores of what round {number} generates", scores, wanted, 1e-2)
        yield loss


def _report(measured: Measured, kinds: Counter[str], tell: Callable[[str], None], bound: float) -> None:
    """Tell of all trends. Raises AssertionError for what grows."""
    first = next(place for place, at in enumerate(measured.seconds) if at > measured.seconds[-1] / 10)
    trends = {
        name: trend(measured.seconds[first:], values[first:])
        for name, values in measured.figures.items()
        if any(values[first:])
    }
    for name, found in trends.items():
        tell(f"{name:16} {found}")
    more = [f"{name} {count:+,}" for name, count in (_kinds() - kinds).most_common(8)]
    grown = [f"{name}: {found}" for name, found in trends.items() if found.grows(bound)]
    assert not grown, f"what grows: {'; '.join(grown)}. Objects that became more: {', '.join(more)}"
    tell(
        f"{len(measured.seconds)} rounds of {_STEPS} steps, {measured.compared} beside torch's CPU; loss "
        f"{measured.losses[0]:.3f} to {measured.losses[-1]:.3f}. The upper end of an interval is what may go unseen."
    )


def main() -> int:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--device", default="spirv")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--pinned", action="store_true", help="batches are in pinned memory")
    parser.add_argument("--json", help="a file for what was measured after each round")
    options = parser.parse_args()
    torch.set_num_threads(1)
    measured = soak(
        options.minutes, options.device, options.workers, options.pinned, lambda text: print(text, flush=True)
    )
    if options.json:
        Path(options.json).write_text(json.dumps(vars(measured)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
