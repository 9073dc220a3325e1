"""What this compiler refuses, and what it finds wrong in its own work."""

from __future__ import annotations


class Untranslatable(NotImplementedError):
    """An instruction that no rule translates, with the place in the user's source where that is known."""

    def __init__(self, kernel: str, what: str, place: str = "") -> None:
        super().__init__(f"{place + ': ' if place else ''}kernel '{kernel}': the CPU device cannot run {what}")
        self.kernel, self.what, self.place = kernel, what, place

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kernel, self.what, self.place)


class InvalidCode(RuntimeError):
    """LLVM does not take the code that was made for a kernel: a fault of this compiler."""
