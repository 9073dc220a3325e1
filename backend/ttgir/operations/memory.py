"""Accesses to device memory, and tensor descriptors, of which upstream's passes make pointers."""

from __future__ import annotations

from .definition import Effect, Memory, Pointers, define

_ORDERED = "sem:MemSemantic scope:MemSyncScope"
#: Hints for caches: Triton 3.9 has one attribute, and 3.8 has two, with words of their own before attr-dict.
HINTS_OF_3_8 = "(`cacheModifier` `=` $cache^)? (`evictionPolicy` `=` $evict^)? "
CACHE_HINTS = "cachePolicy? cache?:CacheModifier evict?:EvictionPolicy"
_TO_POINTER = "add_rewrite_tensor_descriptor_to_pointer"

# fmt: off
define("tt.load", "ptr mask? other? -> result",
       f"$ptr (`,` $mask^)? (`,` $other^)? {HINTS_OF_3_8}attr-dict `:` type($ptr)",
       f"{CACHE_HINTS} isVolatile=false", "result=pointee(ptr) mask=i1(result) other=result",
       effects=Effect.READS_GLOBAL, pointers=Pointers.ACCESSED, masked=True, length=8, moves=("result",))
define("tt.store", "ptr value mask?", f"$ptr `,` $value (`,` $mask^)? {HINTS_OF_3_8}attr-dict `:` type($ptr)",
       f"{CACHE_HINTS} ignore_cta:unit", "value=pointee(ptr) mask=i1(value)", effects=Effect.WRITES_GLOBAL,
       pointers=Pointers.ACCESSED, masked=True, length=8, moves=("value",))
# Launches of a stream run one after the other.
define("tt.grid_dependency_wait tt.grid_dependency_launch_dependents", "", "attr-dict")
define("tt.atomic_load", "ptr mask? -> result",
       "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, $result)", _ORDERED,
       "result=pointee(ptr) mask=i1(result)", effects=Effect.READS_GLOBAL | Effect.ATOMIC, pointers=Pointers.ACCESSED,
       memory=Memory.SCRATCH, moves=("result",))
define("tt.atomic_store", "ptr value mask?",
       "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)", _ORDERED,
       "value=pointee(ptr) mask=i1(value)", effects=Effect.WRITES_GLOBAL | Effect.ATOMIC, pointers=Pointers.ACCESSED,
       moves=("value",))
define("tt.atomic_poll", "ptr expected timeout? -> result",
       "$sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout^)? attr-dict `:` qualified(type($ptr)) `,` "
       "type($expected) `->` type($result)", _ORDERED, "expected=pointee(ptr) result=i1(expected)",
       effects=Effect.READS_GLOBAL | Effect.ATOMIC, pointers=Pointers.ACCESSED, memory=Memory.SCRATCH, unbounded=True,
       moves=("expected",))
define("tt.atomic_rmw", "ptr val mask? -> result",
       "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` functional-type(operands, "
       "$result)", "atomic_rmw_op:RMWOp " + _ORDERED, "val=pointee(ptr) result=val mask=i1(val)",
       effects=Effect.READS_GLOBAL | Effect.WRITES_GLOBAL | Effect.ATOMIC, pointers=Pointers.ACCESSED,
       memory=Memory.SCRATCH, unbounded=True, moves=("val", "result"))
define("tt.atomic_cas", "ptr cmp val -> result",
       "$sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:` functional-type(operands, $result)", _ORDERED,
       "val=pointee(ptr) cmp=val result=val", effects=Effect.READS_GLOBAL | Effect.WRITES_GLOBAL | Effect.ATOMIC,
       pointers=Pointers.ACCESSED, memory=Memory.SCRATCH, unbounded=True, moves=("val", "result"))
define("tt.make_tensor_descriptor", "base shape* strides* -> result",
       "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base) `,` type($result)",
       "padding:PaddingOption=zero", stripped={"base": "!tt.ptr", "result": "!tt.tensordesc"}, by_pass=_TO_POINTER)
define("tt.descriptor_load", "desc indices* -> result",
       f"$desc `[` $indices `]` {HINTS_OF_3_8}attr-dict `:` qualified(type($desc)) `->` type($result)", CACHE_HINTS,
       effects=Effect.READS_GLOBAL, by_pass=_TO_POINTER, moves=None)
define("tt.descriptor_store", "desc src indices*",
       "$desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)",
       effects=Effect.WRITES_GLOBAL, by_pass=_TO_POINTER, moves=None)
define("tt.descriptor_reduce", "desc src indices*",
       "$kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)",
       "kind:DescriptorReduceKind", effects=Effect.READS_GLOBAL | Effect.WRITES_GLOBAL | Effect.ATOMIC,
       by_pass=_TO_POINTER, moves=None)
define("tt.descriptor_gather", "desc x_offsets y_offset -> result",
       "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, results)",
       effects=Effect.READS_GLOBAL, by_pass=_TO_POINTER, moves=None)
define("tt.descriptor_scatter", "desc x_offsets y_offset src",
       "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)", effects=Effect.WRITES_GLOBAL,
       by_pass=_TO_POINTER, moves=None)
define("ttg.global_scratch_alloc", "-> result", "attr-dict `:` qualified(type($result))",
       "nbytes alignment third_party_allocation:unit shared_cluster_state:unit")
# fmt: on
