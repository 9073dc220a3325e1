"""The function by which a thread takes one of a launch's locks (Updates of triton_spirv/processor.hpp)."""

from __future__ import annotations

#: What TAKE_LOCK calls.
DECLARATIONS = frozenset({"declare void @triton_spirv_wait(i32)"})

#: Whether the thread has the lock then. It waits for it if it is told to, unless the launch is to stop.
TAKE_LOCK = """define internal i1 @take_lock(ptr %lock, ptr %stop, i1 %waits) alwaysinline nounwind {
entry:
  br label %try
try:
  %polled = phi i32 [0, %entry], [%polls, %again]
  %pair = cmpxchg ptr %lock, i32 0, i32 1 acq_rel monotonic
  %got = extractvalue { i32, i1 } %pair, 1
  %leaves = xor i1 %waits, true
  %over = or i1 %got, %leaves
  br i1 %over, label %end, label %wait
wait:
  %waited = phi i32 [%polled, %try], [%polls, %again]
  %polls = add i32 %waited, 1
  call void @triton_spirv_wait(i32 %polls)
  %stops = load atomic i32, ptr %stop monotonic, align 4
  %ends = icmp ne i32 %stops, 0
  br i1 %ends, label %end, label %again
again:
  %taken = load atomic i32, ptr %lock monotonic, align 4
  %free = icmp eq i32 %taken, 0
  br i1 %free, label %try, label %wait
end:
  ret i1 %got
}
"""
