"""Who reads the parts of the report buffer."""

from __future__ import annotations

from collections.abc import Mapping

from .failures import Failures
from .outside import OutsideAccesses
from .prints import Prints
from .program_races import ProgramRaces
from .races import Races
from .reader import Reader

#: Kind of message that has a part (abi.report_buffer.PARTS) → who reads it.
READERS: Mapping[str, type[Reader]] = {
    "bounds": OutsideAccesses,
    "races": Races,
    "program_races": ProgramRaces,
    "asserted": Failures,
    "print": Prints,
}
