"""What code is made for: a processor, by LLVM's names for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """A processor. ``arch``: ``x86_64`` or ``aarch64``; ``name``: LLVM's name of the processor; ``features``: LLVM's,
    ``+avx2,-avx512f`` say, beyond those that the name stands for. ``vector_bits``: of a vector register. ``masks``:
    loads and stores of lanes that a mask names take an instruction for elements of any width (AVX-512, SVE)."""

    arch: str
    name: str
    features: str = ""
    vector_bits: int = 256
    masks: bool = False

    @property
    def triple(self) -> str:
        """LLVM's target triple."""
        return f"{self.arch}-unknown-linux-gnu"

    @property
    def lanes(self) -> int:
        """Lanes of a subgroup: a register of AVX-512 full of f32, two of AVX2, four of NEON."""
        return 16
