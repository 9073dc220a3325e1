"""The state of random numbers that are made on devices: a seed, and how many were drawn."""

from __future__ import annotations

import threading

import torch

_BYTES = 16
_lock = threading.Lock()


class Philox:
    """The counter-based generator of all devices of the process; torch's seed until another is set."""

    def __init__(self) -> None:
        self.seed = torch.initial_seed() & (2**63 - 1)
        self.drawn = 0

    def reseed(self, seed: int) -> None:
        """Begin again with a seed."""
        with _lock:
            self.seed, self.drawn = seed & (2**63 - 1), 0

    def draw(self, count: int) -> tuple[int, int]:
        """(seed, number of the first of ``count`` numbers that are the caller's own)."""
        with _lock:
            first = self.drawn
            self.drawn += count
            return self.seed, first

    def state(self) -> torch.Tensor:
        """The state, with that of the CPU's generator, which operations that run on the CPU use: bytes."""
        own = torch.tensor(list(self.seed.to_bytes(8, "little") + self.drawn.to_bytes(8, "little")), dtype=torch.uint8)
        return torch.cat((torch.get_rng_state(), own))

    def restore(self, state: torch.Tensor) -> None:
        """Set what state() gave."""
        own = bytes(state[-_BYTES:].tolist())
        torch.set_rng_state(state[:-_BYTES])
        with _lock:
            self.seed, self.drawn = int.from_bytes(own[:8], "little"), int.from_bytes(own[8:], "little")


GENERATOR = Philox()
