"""What the module of a kernel that is watched for races between programs says of itself, in an OpModuleProcessed."""

from __future__ import annotations

from dataclasses import astuple, dataclass

_PREFIX = "program_races="


@dataclass(frozen=True)
class WatchNote:
    """Byte offsets in the argument block: of the report buffer's address (``reports``), of a part's first program
    (``first_program``, 0 if a launch is the whole grid), of the addresses of tensors (``pointers``). ``part``: the byte
    of the report buffer where a race is told, ``bytes``: of the buffer. ``equal``: writes of equal values are told."""

    reports: int
    part: int
    bytes: int
    equal: bool
    first_program: int
    pointers: tuple[int, ...]

    def text(self) -> str:
        """The note."""
        *numbers, pointers = astuple(self)
        return _PREFIX + ",".join(str(int(number)) for number in (*numbers, *pointers))


def read_note(text: str) -> WatchNote | None:
    """The note of this text; None for another text."""
    if not text.startswith(_PREFIX):
        return None
    reports, part, size, equal, first_program, *pointers = map(int, text.removeprefix(_PREFIX).split(","))
    return WatchNote(reports, part, size, bool(equal), first_program, tuple(pointers))
