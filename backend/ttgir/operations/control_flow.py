"""The dialects ``scf``, ``cf`` and ``ub``: loops, branches, and what has no value."""

from __future__ import annotations

from .. import custom, custom_printers
from ..ir import Operation
from .definition import Effect, End, Pointers, Refusal, define
from .type_checks import I1


def _counts(operation: Operation) -> bool:
    """An ``scf.for``: bounds and counter of one type, carried values of one type in all four places but the end."""
    counter, *carried = operation.regions[0].entry.arguments
    bounds, initial = operation.operands[:3], operation.operands[3:]
    return all(value.type == counter.type for value in bounds) and (
        [value.type for value in initial]
        == [value.type for value in carried]
        == [value.type for value in operation.results]
    )


def _branches(operation: Operation) -> bool:
    return operation.operands[0].type == I1 and (bool(operation.regions[1].blocks) or not operation.results)


# fmt: off
define("scf.yield", "results*", "attr-dict ($results^ `:` type($results))?", pointers=Pointers.ENDED, end=End.LEAVE)
define("scf.condition", "condition args*", "`(` $condition `)` attr-dict ($args^ `:` type($args))?",
       pointers=Pointers.ENDED, end=End.LEAVE)
define("cf.assert", "arg", "$arg `,` $msg attr-dict", "msg:str", effects=Effect.REPORTS,
       refused=Refusal("it is MLIR's own assertion", "use tl.device_assert"))
define("ub.poison", "-> result", "attr-dict `:` type($result)", pointers=Pointers.POISON, read=custom.poison,
       write=custom_printers.poison)
define("ub.unreachable", "", "attr-dict", end=End.STOP, by_pass="add_canonicalizer")
define("scf.for", "lowerBound upperBound step initArgs* -> results*", "", "unsignedCmp:unit",
       pointers=Pointers.CARRIED, loop=True, ended_by=("scf.yield",), yielded_by="scf.yield", types=_counts,
       read=custom.loop, write=custom_printers.loop)
define("scf.if", "condition -> results*", pointers=Pointers.CARRIED, ended_by=("scf.yield",), yielded_by="scf.yield",
       types=_branches, read=custom.branches, write=custom_printers.branches)
define("scf.while", "inits* -> results*", pointers=Pointers.CARRIED, loop=True,
       ended_by=("scf.yield", "scf.condition"), unbounded=True, read=custom.while_loop,
       write=custom_printers.while_loop)
define("cf.br", "destOperands*", end=End.BRANCH, rewritten="structured into scf.if and scf.while", read=custom.branch,
       write=custom_printers.branch)
define("cf.cond_br", "condition trueDestOperands* falseDestOperands*", attributes="branch_weights?", end=End.BRANCH,
       rewritten="structured into scf.if and scf.while", read=custom.conditional_branch,
       write=custom_printers.conditional_branch)
define("cf.switch", attributes="case_values", end=End.BRANCH, rewritten="structured into scf.if and scf.while",
       read=custom.switch, write=custom_printers.switch)
# fmt: on
