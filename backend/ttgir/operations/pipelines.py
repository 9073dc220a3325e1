"""Pipelines and warp specialization: all of these are refused."""

from __future__ import annotations

from .. import custom, custom_printers
from .definition import ANYTHING, Effect, End, Memory, Pointers, Refusal, define
from .memory import CACHE_HINTS, HINTS_OF_3_8

_ASYNC_COPY = Refusal(
    "Vulkan has no asynchronous copies into workgroup memory",
    "load with tl.load; software pipelining is not run for this backend",
)
_WARP_SPECIALIZATION = Refusal(
    "Vulkan cannot synchronise some of a workgroup's subgroups, so they cannot be specialised",
    "leave out tl.range(warp_specialize=True)",
)
_PIPELINED = Refusal("the passes that pipeline loops are not run for this backend", "compile from Triton source")

_LISTED = "$result attr-dict `:` type($result)"

# fmt: off
define("ttg.mask.return", "result*", _LISTED, end=End.LEAVE, refused=_PIPELINED)
define("ttg.async_wait", "asyncToken* -> retToken", "($asyncToken^)? attr-dict", "num",
       "asyncToken=token retToken=token", effects=Effect.WRITES_SHARED, refused=_ASYNC_COPY)
define("ttg.async_commit_group", "inputTokens* -> asyncToken", "(`tokens` $inputTokens^)? attr-dict",
       equations="inputTokens=token asyncToken=token", effects=Effect.WRITES_SHARED, refused=_ASYNC_COPY)
define("ttg.async_copy_global_to_local", "src result mask? other? -> token_",
       f"$src `,` $result (`mask` $mask^)? (`other` $other^)? {HINTS_OF_3_8}attr-dict `:` type($src) `->` "
       "type($result)",
       f"{CACHE_HINTS} isVolatile=false contiguity=1", "mask=i1(src) other=pointee(src) token_=token",
       stripped={"result": "!ttg.memdesc"}, effects=Effect.READS_GLOBAL | Effect.WRITES_SHARED,
       pointers=Pointers.ACCESSED, refused=_ASYNC_COPY)
define("ttg.predicate_stage", "iv ub step -> result",
       "$iv `,` $ub `,` $step `maxStage` $maxStage `stage` $stage attr-dict `:` type($iv) `->` type($result)",
       "maxStage:int stage:int", "ub=iv step=iv", refused=_PIPELINED)
define("ttg.mask", "pred -> result*", ended_by=("ttg.mask.return",), yielded_by="ttg.mask.return", refused=_PIPELINED)
define("ttg.warp_specialize.partitions", "explicitCaptures*", effects=ANYTHING, end=End.STOP,
       ended_by=("ttg.warp_return",), refused=_WARP_SPECIALIZATION)
define("ttg.warp_yield", "values*", "($values^)? attr-dict (`:` type($values)^)?", end=End.LEAVE,
       refused=_WARP_SPECIALIZATION)
define("ttg.warp_return", "", "attr-dict", end=End.LEAVE, refused=_WARP_SPECIALIZATION)
define("ttg.warp_specialize", "-> defaultPassthrough*", "", "partitionNumWarps", effects=ANYTHING,
       memory=Memory.SCRATCH, yielded_by="ttg.warp_yield", refused=_WARP_SPECIALIZATION, read=custom.warp_specialize,
       write=custom_printers.warp_specialize)
# fmt: on
