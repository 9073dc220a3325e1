"""PTX's types by name (PTX ISA, 5.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PtxType:
    """``kind``: "b" bits, "u" and "s" integers, "f" and "bf" floats, "pred". ``count`` of ``width`` bits each."""

    name: str
    kind: str
    width: int
    count: int = 1

    @property
    def floating(self) -> bool:
        """Whether it is of floats."""
        return self.kind in ("f", "bf")

    @property
    def signed(self) -> bool:
        """Whether it is of signed integers."""
        return self.kind == "s"

    @property
    def bits(self) -> int:
        """The bits of a whole value."""
        return self.width * self.count


TYPES = {
    type_.name: type_
    for type_ in (
        PtxType("pred", "pred", 1),
        *(PtxType(f"{kind}{width}", kind, width) for kind in "bus" for width in (8, 16, 32, 64)),
        *(PtxType(f"f{width}", "f", width) for width in (16, 32, 64)),
        PtxType("bf16", "bf", 16),
        PtxType("f16x2", "f", 16, 2),
        PtxType("bf16x2", "bf", 16, 2),
    )
}
