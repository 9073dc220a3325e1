"""The state of random numbers that are made on devices: a seed, and how many were drawn."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from ...runtime import Graph

_BYTES = 16
_C: Any = torch._C
_lock = threading.Lock()
_SEEDED = (
    "a graph is being captured, and each replay draws numbers of its own: seed the generator, or set a state of before "
    "the capture, outside"
)


class Philox:
    """A counter-based generator, the same on all devices; torch's seed until another is set."""

    def __init__(self) -> None:
        self.seed = torch.initial_seed() & (2**63 - 1)
        self.drawn = 0

    def reseed(self, seed: int) -> None:
        """Begin again with a seed."""
        if CAPTURED.draws is not None:
            raise RuntimeError(_SEEDED)
        with _lock:
            self.seed, self.drawn = seed & (2**63 - 1), 0

    def draw(self, count: int) -> tuple[int, int]:
        """(seed, number of the first of ``count`` numbers that are the caller's own)."""
        with _lock:
            first = self.drawn
            self.drawn += count
            return self.seed, first

    def operands(self, count: int, device: torch.device) -> dict[str, Any]:
        """What a kernel is given for ``count`` numbers: ``seed`` and the number of the ``first``; int64 tensors without
        dimensions where a graph is captured, whose replays draw anew."""
        seed, first = self.draw(count) if CAPTURED.draws is None else CAPTURED.draws.of(self, count, device)
        return {"seed": seed, "first": first}

    def words(self) -> torch.Tensor:
        """The state: bytes."""
        drawn = self.drawn if CAPTURED.draws is None else CAPTURED.draws.place(self)
        state = self.seed.to_bytes(8, "little") + drawn.to_bytes(8, "little")
        return torch.tensor(list(state), dtype=torch.uint8, device="cpu")  # whatever the default device is

    def set_words(self, state: torch.Tensor) -> None:
        """Set what words() gave."""
        own = bytes(state.tolist())
        seed, drawn = int.from_bytes(own[:8], "little"), int.from_bytes(own[8:], "little")
        if CAPTURED.draws is not None:
            CAPTURED.draws.go_to(self, seed, drawn)
            return
        with _lock:
            self.seed, self.drawn = seed, drawn

    def state(self) -> torch.Tensor:
        """The state, with that of the CPU's generator, which operations that run on the CPU use: bytes."""
        return torch.cat((torch.get_rng_state(), self.words()))

    def restore(self, state: torch.Tensor) -> None:
        """Set what state() gave."""
        torch.set_rng_state(state[:-_BYTES])
        self.set_words(state[-_BYTES:])


class Draws:
    """What a captured graph draws in each replay."""

    def __init__(self) -> None:
        #: By the source: its seed and the number of the replay's first number, on the device.
        self._words: dict[Philox, torch.Tensor] = {}
        #: By the source: how many were drawn before the capture, how many in it, and how many were in use at most.
        self._counts: dict[Philox, list[int]] = {}

    def of(self, source: Philox, count: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """(seed, number of the first of ``count`` numbers), which launches of the graph read."""
        if source not in self._words:
            with Graph.uncaptured():
                self._words[source] = torch.zeros(2, dtype=torch.int64, device=device)
        counts = self._count(source)
        before, counts[1] = counts[1], counts[1] + count
        counts[2] = max(counts[1:])
        words = self._words[source]
        return words[0], words[1] + before

    def _count(self, source: Philox) -> list[int]:
        return self._counts.setdefault(source, [source.drawn, 0, 0])

    def place(self, source: Philox) -> int:
        """How many numbers of the source were drawn, with those of the capture."""
        return sum(self._count(source)[:2])

    def go_to(self, source: Philox, seed: int, drawn: int) -> None:
        """Go on behind as many numbers, so that the next are those that followed them in the capture."""
        counts = self._count(source)
        if seed != source.seed or drawn < counts[0]:
            raise RuntimeError(_SEEDED)
        counts[1] = drawn - counts[0]

    def renew(self) -> None:
        """Called before each replay: its numbers follow those that were drawn since."""
        for source, words in self._words.items():
            words.copy_(torch.tensor(source.draw(self._counts[source][2]), dtype=torch.int64, device="cpu"))


class _Captured(threading.local):
    #: Of the graph that this thread captures.
    draws: Draws | None = None


CAPTURED = _Captured()

#: The generator of calls that name none.
GENERATOR = Philox()

#: Whether operations without a kernel draw from the CPU's generator where they are given none. In as_cuda() they draw
#: as much as GENERATOR says, whose state is all that CUDA has.
CPU_DRAWS = True


def generator_on_cpu() -> Any:
    """A generator of the CPU for one call, which GENERATOR's seed and place decide."""
    seed, first = GENERATOR.draw(1)
    return _C.Generator(device="cpu").manual_seed((seed + first * 0x9E3779B97F4A7C15) & (2**63 - 1))


class Generator(_C.Generator):
    """``torch.Generator(device="spirv")``: numbers that are made on the device, from its own state. It is a CPU
    generator besides, seeded alike, for operations that run on the CPU."""

    def __new__(cls, device: Any = None) -> Generator:
        """``device``: any of this kind: all give the same numbers."""
        made: Generator = super().__new__(cls, device="cpu")
        made._device = torch.device(device)
        made.philox = Philox()
        _generators[made._cdata] = made
        made.philox.reseed(super(Generator, made).initial_seed())
        return made

    @property
    def device(self) -> torch.device:
        """The device as it was asked for."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Begin again with a seed; the generator."""
        super().manual_seed(seed)
        self.philox.reseed(seed)
        return self

    def seed(self) -> int:
        """Begin again with a number that the system draws; it."""
        seed = int(super().seed())
        self.philox.reseed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed."""
        return self.philox.seed

    def get_state(self) -> torch.Tensor:
        """The state: bytes."""
        return torch.cat((super().get_state(), self.philox.words()))

    def set_state(self, new_state: torch.Tensor) -> Generator:
        """Set what get_state() gave; the generator."""
        super().set_state(new_state[:-_BYTES])
        self.philox.set_words(new_state[-_BYTES:])
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        twin = type(self)(self._device)
        return twin.set_state(self.get_state())

    def get_offset(self) -> int:
        """How many numbers were drawn on the device."""
        return self.philox.drawn

    def set_offset(self, offset: int) -> None:
        """Go on from the number with that place."""
        self.philox.drawn = offset

    def __repr__(self) -> str:
        return f"<torch.Generator device={self._device!s} seed={self.philox.seed}>"


class CudaGenerator(Generator):
    """A generator whose state is CUDA's, 16 bytes: the seed, and how many numbers were drawn. That of operations that
    run on the CPU is not in it."""

    def get_state(self) -> torch.Tensor:
        """The seed and the number of draws: 16 bytes."""
        return self.philox.words()

    def set_state(self, new_state: torch.Tensor) -> CudaGenerator:
        """Set what get_state() gave; the generator."""
        self.philox.set_words(new_state)
        return self


def default_generator(device: Any, kind: type[Generator] = Generator) -> Generator:
    """The generator that calls without one draw from, and its seed."""
    made = kind(device)
    made.philox = GENERATOR
    return made


#: By the address of the part in C++: what operations are given has another object in Python around it.
_generators: weakref.WeakValueDictionary[int, Generator] = weakref.WeakValueDictionary()


def philox_of(generator: Any) -> Philox | None:
    """What an operation draws from that was called with this generator; None for the CPU's."""
    if generator is None:
        return GENERATOR
    ours = _generators.get(generator._cdata)
    return None if ours is None else ours.philox
