"""Which attributes there are: an operation's own, which its row declares (operations/), and those that any operation,
argument or module may have, whose names begin with a dialect's (``tt.num_stages``). What its operands are called.

A flag is a unit attribute: it is there or not, and its value is None where it is there. ``Operation.flag`` reads those
alone and ``Operation.attribute`` the others alone; both refuse a name that is declared nowhere, so that a name which is
misspelt, or asked of another operation, cannot pass for an attribute that is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

#: In the place of a default: the attribute has to be there.
REQUIRED: Final = object()


class Declared(NamedTuple):
    """``flags``, and the other attributes, each with what it is where it is absent: a default, None, or REQUIRED."""

    flags: frozenset[str]
    values: Mapping[str, Any]


#: Operation → the attributes of its own. The rows of operations/ are entered when they are made.
OWN: dict[str, Declared] = {}

#: Operation → the names of its groups of operands, in their order. Entered with the rows, too.
GROUPS: dict[str, tuple[str, ...]] = {}

#: Attributes of any operation. Those of ``spirv`` are set by this backend's rewrites.
OF_ANY = Declared(
    frozenset({"spirv.ahead", "spirv.halves", "spirv.rare", "spirv.rolled"}),
    dict.fromkeys(
        ("spirv.alike", "tt.constancy", "tt.contiguity", "tt.divisibility", "tt.num_stages")
        + ("ttg.global_scratch_memory_offset",)
    ),
)

#: Attributes of a function's arguments.
OF_ARGUMENTS = Declared(
    frozenset(), dict.fromkeys(("tt.constancy", "tt.contiguity", "tt.divisibility", "tt.pointer_range"))
)

#: Attributes of a module. One of TTIR has no number of subgroups and of lanes yet.
OF_MODULES = Declared(
    frozenset(),
    {
        "ttg.dot-precision": None,
        "ttg.global_scratch_memory_alignment": 1,
        "ttg.global_scratch_memory_size": 0,
        "ttg.num-ctas": 1,
        "ttg.num-warps": None,
        "ttg.threads-per-warp": None,
    },
)

NOTHING: Final = Declared(frozenset(), {})


def absent(what: str, name: str, declared: Mapping[str, Any]) -> Any:
    """What an attribute is that is not there. Raises AttributeError for one that has to be, or that ``what`` does not
    declare."""
    value = declared.get(name, REQUIRED)
    if value is REQUIRED:
        reason = "lacks the attribute" if name in declared else "declares no such attribute, or declares a flag:"
        raise AttributeError(f"{what} {reason} '{name}'")
    return value
