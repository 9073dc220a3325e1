"""Buffers in shared memory."""

from __future__ import annotations

from ..ir import Operation
from .definition import Effect, Layouts, Memory, define
from .type_checks import alike, moves, transposes


def _fills(operation: Operation) -> bool:
    return not operation.operands or moves(operation)


def _stores(operation: Operation) -> bool:
    return alike(operation.operands[0], operation.operands[1])


_VIEW = "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))"

# fmt: off
define("ttg.local_alloc", "src? -> result", "($src^)? attr-dict `:` functional-type(operands, results)", "alignment?",
       effects=Effect.WRITES_SHARED, memory=Memory.BUFFER, by_layout=True, layouts=Layouts.OWN, types=_fills)
define("ttg.local_dealloc", "src", "$src attr-dict `:` qualified(type($src))", effects=Effect.WRITES_SHARED)
define("ttg.memdesc_index", "src index -> result",
       "$src `[` $index `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))", equations="index=i32",
       view=True)
define("ttg.memdesc_subslice", "src -> result",
       "$src `[` custom<Offsets>($offsets) `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
       "offsets", view=True)
define("ttg.memdesc_trans", "src -> result", _VIEW, "order", view=True, types=transposes)
define("ttg.memdesc_reshape ttg.memdesc_reinterpret", "src -> result", _VIEW, view=True)
define("ttg.local_load", "src token_? -> result",
       "$src (`token` $token_^)? attr-dict `:` qualified(type($src)) `->` type($result)", equations="token_=token",
       effects=Effect.READS_SHARED, by_layout=True, layouts=Layouts.OWN, types=moves)
define("ttg.local_store", "src dst", "$src `,` $dst attr-dict `:` type($src) `->` qualified(type($dst))",
       effects=Effect.WRITES_SHARED, by_layout=True, layouts=Layouts.OWN, types=_stores)
define("ttg.local_gather", "src indices token_? -> result",
       "$src `[` $indices `]` (`token` $token_^)? attr-dict `:` qualified(type($src)) `,` type($indices) `->` "
       "type($result)", "axis", "token_=token", effects=Effect.READS_SHARED)
define("ttg.local_scatter", "dst values indices token_?",
       "$dst `[` $indices `]` `,` $values (`token` $token_^)? attr-dict `:` qualified(type($dst)) `,` "
       "type($indices) `,` type($values)", "axis", "token_=token", effects=Effect.WRITES_SHARED)
define("ttg.local_atomic_scatter_rmw", "dst values indices mask? -> result",
       "$atomic_rmw_op `,` $dst `[` $indices `]` `,` $values (`,` $mask^)? attr-dict `:` functional-type(operands, "
       "results)", "atomic_rmw_op:RMWOp axis", "result=values mask=i1(values)",
       effects=Effect.READS_SHARED | Effect.WRITES_SHARED, memory=Memory.SCRATCH)
define("ttg.barrier", "", "$addrSpace attr-dict", "addrSpace:AddrSpace", effects=Effect.WAITS)
# fmt: on
