"""A thread's sums of what its programs add to neighbouring elements, for kernels that update nothing else.

Order is free then, so each place has one record: of as many neighbours as a vector has lanes, from any byte on. A table
by addresses says which record a place had last; one that another place has taken since is not found, and the place gets
one more. A lane that nothing was added to has -0.0, to which any sum is itself.

Threads that make their sums in plain memory hold a lock for a part of it, a kilobyte of many: records of a part form a
list, and each thread begins with another part. Those whose last byte is in another part need its lock, too, and are in
the list of the lower number, so that locks are taken in ascending order.

16 threads that add 65,536 rows to 512 sum up 128 each, and write to memory once.
"""

from __future__ import annotations

from .launch_lock import TAKE_LOCK

#: Records of a log. The second-level cache holds them.
_RECORDS = 1 << 13
#: Places of the table, which has 16 bits for each: vectors in a row have one each, and those of a row that begins
#: elsewhere in a vector are apart from them.
_TABLE = 1 << 15
#: Bits of the number of a part, and of an address in it.
_PARTS, _PART_BITS = 6, 10
#: Where the heads of lists are: behind how many records there are, the grid, and which lists have some.
_HEADS = 64
_TABLE_AT = _HEADS + 4 * (1 << _PARTS)
_RECORDS_AT = _TABLE_AT + 2 * _TABLE


class Sums:
    """The log of sums of vectors with so many lanes of a type of 32 bits."""

    #: How many updates a program may have.
    MOST = _RECORDS // 2
    #: What function() calls.
    DECLARATIONS = frozenset({"declare i64 @llvm.cttz.i64(i64, i1)", "declare i64 @llvm.fshr.i64(i64, i64, i64)"})

    def __init__(self, lanes: int, type_: str) -> None:
        self._lanes, self._type = lanes, type_
        self._width = 4 * lanes
        self._align = min(self._width, _HEADS)
        bits = max(lanes, 32)
        self._record, self._bits = f"{{ i64, i32, i{bits} }}", f"i{bits}"
        self._values_at = _RECORDS_AT + _RECORDS * (8 + 8 if bits == 32 else 24)

    @property
    def bytes(self) -> int:
        return self._values_at + _RECORDS * self._width

    def full(self, most: int) -> int:
        """The records from which on there is no more room for so many."""
        return _RECORDS - most

    def keep(self, now: str, sum_: str) -> str:
        """Lines that add %values of the lanes of %mask to the record of %base, as DelayedUpdates.keep."""
        vector, mask, far = f"<{self._lanes} x {self._type}>", f"<{self._lanes} x i1>", self._width.bit_length() - 1
        nothing = "zeroinitializer" if self._type == "i32" else f"splat ({self._type} -0.0)"
        narrow = self._bits != f"i{self._lanes}"
        bits = f"zext i{self._lanes} %active to {self._bits}" if narrow else f"or {self._bits} %active, 0"
        return f"""  %log.is = icmp ne ptr %log, null
  br i1 %log.is, label %look, label %{now}
look:
  %log.held = load i64, ptr %log, align 64
  %log.line = lshr i64 %base, {far}
  %log.rest = and i64 %base, {self._width - 1}
  %log.apart = mul i64 %log.rest, 257
  %log.page = lshr i64 %base, 21
  %log.turn = mul i64 %log.page, 2531
  %log.near = add i64 %log.line, %log.apart
  %log.hash = add i64 %log.near, %log.turn
  %log.slot = and i64 %log.hash, {_TABLE - 1}
  %log.table = getelementptr i8, ptr %log, i64 {_TABLE_AT}
  %log.seat = getelementptr i16, ptr %log.table, i64 %log.slot
  %log.short = load i16, ptr %log.seat, align 2
  %log.wide = zext i16 %log.short to i64
  %log.there = icmp ult i64 %log.wide, %log.held
  %log.number = select i1 %log.there, i64 %log.wide, i64 0
  %log.records = getelementptr i8, ptr %log, i64 {_RECORDS_AT}
  %log.sums = getelementptr i8, ptr %log, i64 {self._values_at}
  %log.old = getelementptr {self._record}, ptr %log.records, i64 %log.number
  %log.place = load i64, ptr %log.old, align 8
  %log.equal = icmp eq i64 %log.place, %base
  %log.found = and i1 %log.there, %log.equal
  %log.more = select {mask} %mask, {vector} %values, {vector} {nothing}
  %log.bits = {bits}
  br i1 %log.found, label %add, label %keep
add:
  %log.sum = getelementptr {vector}, ptr %log.sums, i64 %log.number
  %log.before = load {vector}, ptr %log.sum, align {self._align}
  %log.new = {sum_} {vector} %log.before, %log.more
  store {vector} %log.new, ptr %log.sum, align {self._align}
  %log.m = getelementptr {self._record}, ptr %log.old, i64 0, i32 2
  %log.was = load {self._bits}, ptr %log.m, align 4
  %log.any = or {self._bits} %log.was, %log.bits
  store {self._bits} %log.any, ptr %log.m, align 4
  br label %done
keep:
  %log.end = add i64 %base, {self._width - 1}
{_part("%log.first", "%base")}{_part("%log.last", "%log.end")}  %log.lower = icmp ult i64 %log.first, %log.last
  %log.part = select i1 %log.lower, i64 %log.first, i64 %log.last
  %log.bit = shl i64 1, %log.part
  %log.lists = getelementptr i8, ptr %log, i64 16
  %log.some = load i64, ptr %log.lists, align 8
  %log.set = or i64 %log.some, %log.bit
  store i64 %log.set, ptr %log.lists, align 8
  %log.had = and i64 %log.some, %log.bit
  %log.none = icmp eq i64 %log.had, 0
  %log.heads = getelementptr i8, ptr %log, i64 {_HEADS}
  %log.head = getelementptr i32, ptr %log.heads, i64 %log.part
  %log.next = load i32, ptr %log.head, align 4
  %log.behind = select i1 %log.none, i32 -1, i32 %log.next
  %log.this = trunc i64 %log.held to i32
  %log.seated = trunc i64 %log.held to i16
  store i32 %log.this, ptr %log.head, align 4
  store i16 %log.seated, ptr %log.seat, align 2
  %log.record = getelementptr {self._record}, ptr %log.records, i64 %log.held
  %log.1 = getelementptr {self._record}, ptr %log.record, i64 0, i32 1
  %log.2 = getelementptr {self._record}, ptr %log.record, i64 0, i32 2
  store i64 %base, ptr %log.record, align 8
  store i32 %log.behind, ptr %log.1, align 8
  store {self._bits} %log.bits, ptr %log.2, align 4
  %log.values = getelementptr {vector}, ptr %log.sums, i64 %log.held
  store {vector} %log.more, ptr %log.values, align {self._align}
  %log.holds = add i64 %log.held, 1
  store i64 %log.holds, ptr %log, align 64
  br label %done
"""

    def function(self, add: str) -> str:
        """The function that makes the sums of a log by ``add``. If the launch is to stop while it waits for a lock, it
        drops them."""
        vector, mask, bits = f"<{self._lanes} x {self._type}>", f"<{self._lanes} x i1>", f"i{self._lanes}"
        narrow = self._bits != bits
        return f"""{TAKE_LOCK}define internal void @make_delayed(ptr %log, ptr %stop, i1 %waits) noinline nounwind {{
entry:
  %some = getelementptr i8, ptr %log, i64 16
  %lists = load i64, ptr %some, align 8
  %none = icmp eq i64 %lists, 0
  br i1 %none, label %end, label %look
look:
  %launch = getelementptr i8, ptr %log, i64 8
  %grid = load ptr, ptr %launch, align 8
  %told = getelementptr i32, ptr %grid, i64 4
  %locks = load ptr, ptr %told, align 8
  %begin = getelementptr i32, ptr %grid, i64 6
  %own = load i32, ptr %begin, align 4
  %turn = zext i32 %own to i64
  %heads = getelementptr i8, ptr %log, i64 {_HEADS}
  %records = getelementptr i8, ptr %log, i64 {_RECORDS_AT}
  %sums = getelementptr i8, ptr %log, i64 {self._values_at}
  br label %list
list:
  %left = phi i64 [%lists, %look], [%fewer, %made]
  %turned = call i64 @llvm.fshr.i64(i64 %left, i64 %left, i64 %turn)
  %zeros = call i64 @llvm.cttz.i64(i64 %turned, i1 true)
  %ahead = add i64 %zeros, %turn
  %part = and i64 %ahead, {(1 << _PARTS) - 1}
  %bit = shl i64 1, %part
  %fewer = xor i64 %left, %bit
  %head = getelementptr i32, ptr %heads, i64 %part
  %first = load i32, ptr %head, align 4
  %lock = getelementptr [16 x i32], ptr %locks, i64 %part
  %has = call i1 @take_lock(ptr %lock, ptr %stop, i1 true)
  br i1 %has, label %record, label %empty
record:
  %number = phi i32 [%first, %list], [%next, %one], [%next, %free]
  %index = zext i32 %number to i64
  %at = getelementptr {self._record}, ptr %records, i64 %index
  %at1 = getelementptr {self._record}, ptr %at, i64 0, i32 1
  %at2 = getelementptr {self._record}, ptr %at, i64 0, i32 2
  %base = load i64, ptr %at, align 8
  %next = load i32, ptr %at1, align 8
  %wide = load {self._bits}, ptr %at2, align 4
  %active = {f"trunc {self._bits} %wide to {bits}" if narrow else f"or {bits} %wide, 0"}
  %mask = bitcast {bits} %active to {mask}
  %sum = getelementptr {vector}, ptr %sums, i64 %index
  %values = load {vector}, ptr %sum, align {self._align}
  %last = add i64 %base, {self._width - 1}
{_part("%p", "%base")}{_part("%q", "%last")}  %either = xor i64 %p, %q
  %across = icmp ne i64 %either, 0
  br i1 %across, label %two, label %one
one:
  call void @{add}(i64 %base, {mask} %mask, {vector} %values)
  %ends = icmp eq i32 %next, -1
  br i1 %ends, label %made, label %record
two:
  %other = xor i64 %either, %part
  %behind = getelementptr [16 x i32], ptr %locks, i64 %other
  %both = call i1 @take_lock(ptr %behind, ptr %stop, i1 true)
  br i1 %both, label %add, label %empty
add:
  call void @{add}(i64 %base, {mask} %mask, {vector} %values)
  store atomic i32 0, ptr %behind release, align 4
  br label %free
free:
  %done = icmp eq i32 %next, -1
  br i1 %done, label %made, label %record
made:
  store atomic i32 0, ptr %lock release, align 4
  %more = icmp ne i64 %fewer, 0
  br i1 %more, label %list, label %empty
empty:
  store i64 0, ptr %log, align 64
  store i64 0, ptr %some, align 8
  br label %end
end:
  ret void
}}
"""


def _part(name: str, address: str) -> str:
    """Lines that give the number of the part of memory that an address is in."""
    return f"""  {name}.a = lshr i64 {address}, {_PART_BITS}
  {name}.b = mul i64 {name}.a, {0x9E3779B97F4A7C15 - (1 << 64)}
  {name} = lshr i64 {name}.b, {64 - _PARTS}
"""
