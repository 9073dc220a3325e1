"""What a submission that is waited for costs, by how its end is learnt and how its commands come about.

One dispatch of a tiny kernel is submitted and waited for by polling, through the ``vulkan`` package with all structures
made beforehand, so that the differences are the driver's and the device's: what its host spends on recording, until
vkQueueSubmit returns, and on the wait after it. The variants alternate, so that all see the same machine, with work
between them that keeps the device's clocks up.

    python benchmarks/submission.py [--submissions N] [--json FILE]

=====================  =========================================================================================
timeline               recorded anew, a timeline semaphore is signalled and its value polled: what the runtime does
begun, timeline        the same, with vkBeginCommandBuffer and the barrier before the time that counts
recorded, timeline     the same with commands that were recorded once: what the runtime does for a launch like an
                       earlier one
fence                  recorded anew, a fence is polled
recorded, fence        the same with commands that were recorded once
word                   recorded anew, nothing is signalled: the last command fills a word of mapped memory
recorded, word         the same with commands that were recorded once
empty, timeline        no commands at all, a timeline semaphore
=====================  =========================================================================================
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import triton
import triton.language as tl
from triton.backends.spirv.runtime import from_numpy
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.vulkan.devices import compute_queue_family
from triton.backends.spirv.runtime.vulkan.loader import vulkan


def new(struct: str) -> Any:
    """A zeroed structure with its sType."""
    vk = vulkan()
    value = vk.ffi.new(f"{struct}*")
    words = re.findall("[A-Z][a-z]+|KHR", struct.removeprefix("Vk"))
    value.sType = getattr(vk, "VK_STRUCTURE_TYPE_" + "_".join(words).upper())
    return value


@triton.jit
def increment(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """x[i] = x[i] + 1 for the BLOCK elements of each program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)


class Submission:
    """One variant: ``prepare()`` before the time that counts, ``record()``, ``submit()``; ``done()`` says whether it
    has ended. ``commands``: "anew", "begun", "recorded" or "empty"."""

    def __init__(self, context: Context, pipeline: int, address: int, signal: str, commands: str) -> None:
        self._vk, self._ffi = vulkan().lib, vulkan().ffi
        vk, ffi = self._vk, self._ffi
        self._device, self._signal, self._made = context.opened.handle, signal, commands
        family = compute_queue_family(context.device)
        queue = ffi.new("VkQueue*")
        vk.vkGetDeviceQueue(self._device, family, 0, queue)
        self._queue = queue[0]
        pool_info = new("VkCommandPoolCreateInfo")
        pool_info.flags, pool_info.queueFamilyIndex = 2, family  # resettable
        pool = ffi.new("VkCommandPool*")
        vk.vkCreateCommandPool(self._device, pool_info, ffi.NULL, pool)
        info = new("VkCommandBufferAllocateInfo")
        info.commandPool, info.commandBufferCount = pool[0], 1
        self._commands = ffi.new("VkCommandBuffer*")
        vk.vkAllocateCommandBuffers(self._device, info, self._commands)
        self._begin = new("VkCommandBufferBeginInfo")
        self._pipeline, self._layout = ffi.cast("VkPipeline", pipeline), context.opened.pipeline_layout
        self._push = ffi.new("uint64_t*", address)
        self._barrier = new("VkMemoryBarrier")
        self._barrier.srcAccessMask, self._barrier.dstAccessMask = 0x1840, 0x1860  # shader and transfer, read and write
        self._word = context.native.allocate_staging(256)
        self._mapped = ctypes.c_uint32.from_address(self._word.host)
        self._buffer = None
        self._submit_info = new("VkSubmitInfo")
        self._value = 0
        self._fence: Any = ffi.NULL
        if commands != "empty":
            self._submit_info.commandBufferCount, self._submit_info.pCommandBuffers = 1, self._commands
        if signal == "timeline":
            self._make_timeline()
        elif signal == "fence":
            fence = ffi.new("VkFence*")
            vk.vkCreateFence(self._device, new("VkFenceCreateInfo"), ffi.NULL, fence)
            self._fences, self._fence = fence, fence[0]
        else:
            self._make_word_buffer(context)
        if commands == "recorded":
            self._begin_commands()
            self._end_commands()

    def _make_timeline(self) -> None:
        vk, ffi = self._vk, self._ffi
        kind, info = new("VkSemaphoreTypeCreateInfo"), new("VkSemaphoreCreateInfo")
        kind.semaphoreType = 1  # timeline
        info.pNext = kind
        self._semaphore = ffi.new("VkSemaphore*")
        vk.vkCreateSemaphore(self._device, info, ffi.NULL, self._semaphore)
        self._signalled, self._reached = ffi.new("uint64_t*"), ffi.new("uint64_t*")
        self._values = new("VkTimelineSemaphoreSubmitInfo")
        self._values.signalSemaphoreValueCount, self._values.pSignalSemaphoreValues = 1, self._signalled
        self._submit_info.pNext = self._values
        self._submit_info.signalSemaphoreCount, self._submit_info.pSignalSemaphores = 1, self._semaphore

    def _make_word_buffer(self, context: Context) -> None:
        """A mapped buffer of its own, because the runtime's do not tell their handles."""
        vk, ffi = self._vk, self._ffi
        info = new("VkBufferCreateInfo")
        info.size, info.usage = 256, 2  # transfer target
        buffer = ffi.new("VkBuffer*")
        vk.vkCreateBuffer(self._device, info, ffi.NULL, buffer)
        needs, properties = ffi.new("VkMemoryRequirements*"), ffi.new("VkPhysicalDeviceMemoryProperties*")
        vk.vkGetBufferMemoryRequirements(self._device, buffer[0], needs)
        vk.vkGetPhysicalDeviceMemoryProperties(context.device.handle, properties)
        types = [
            index
            for index in range(properties.memoryTypeCount)
            if needs.memoryTypeBits >> index & 1 and properties.memoryTypes[index].propertyFlags & 6 == 6
        ]  # host-visible, coherent
        allocation = new("VkMemoryAllocateInfo")
        allocation.allocationSize, allocation.memoryTypeIndex = needs.size, types[0]
        memory, host = ffi.new("VkDeviceMemory*"), ffi.new("void**")
        vk.vkAllocateMemory(self._device, allocation, ffi.NULL, memory)
        vk.vkBindBufferMemory(self._device, buffer[0], memory[0], 0)
        vk.vkMapMemory(self._device, memory[0], 0, 256, 0, host)
        self._buffer = buffer[0]
        self._mapped = ctypes.c_uint32.from_address(int(ffi.cast("uintptr_t", host[0])))

    def _begin_commands(self) -> None:
        vk, commands = self._vk, self._commands[0]
        vk.vkBeginCommandBuffer(commands, self._begin)
        vk.vkCmdPipelineBarrier(commands, 0x1800, 0x1800, 0, 1, self._barrier, 0, self._ffi.NULL, 0, self._ffi.NULL)

    def _end_commands(self) -> None:
        vk, commands, ffi = self._vk, self._commands[0], self._ffi
        vk.vkCmdBindPipeline(commands, 1, self._pipeline)
        vk.vkCmdPushConstants(commands, self._layout, 0x20, 0, 8, self._push)
        vk.vkCmdDispatch(commands, 1, 1, 1)
        if self._buffer is not None:
            vk.vkCmdPipelineBarrier(commands, 0x1800, 0x1800, 0, 1, self._barrier, 0, ffi.NULL, 0, ffi.NULL)
            vk.vkCmdFillBuffer(commands, self._buffer, 0, 4, 1)
        vk.vkEndCommandBuffer(commands)

    def prepare(self) -> None:
        """What the time leaves out. The submission before must be done."""
        if self._signal == "timeline":
            self._value += 1
            self._signalled[0] = self._value
        elif self._signal == "fence":
            self._vk.vkResetFences(self._device, 1, self._fences)
        else:
            self._mapped.value = 0
        if self._made == "begun":
            self._begin_commands()

    def record(self) -> None:
        """Record the commands that are not yet."""
        if self._made == "anew":
            self._begin_commands()
        if self._made in ("anew", "begun"):
            self._end_commands()

    def submit(self) -> None:
        """Hand it over."""
        self._vk.vkQueueSubmit(self._queue, 1, self._submit_info, self._fence)

    def done(self) -> bool:
        """Whether it has ended."""
        if self._signal == "timeline":
            self._vk.vkGetSemaphoreCounterValue(self._device, self._semaphore[0], self._reached)
            return bool(self._reached[0] >= self._value)
        if self._signal == "fence":
            return bool(self._vk.vkGetFenceStatus(self._device, self._fence) == 0)
        return bool(self._mapped.value == 1)


def warm_up(context: Context, values: Any, seconds: float) -> None:
    """Keeps the device busy, so that its clocks are up."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(20):
            increment[(len(values) // 1024,)](values, BLOCK=1024)
        context.native.synchronize()


def measure(
    context: Context, variants: dict[str, Submission], submissions: int
) -> dict[str, tuple[float, float, float, float]]:
    """Microseconds of recording, of vkQueueSubmit, of the wait for it, and of all: medians."""
    times: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in variants}
    values = from_numpy(numpy.zeros(1 << 22, numpy.float32))
    clock: Callable[[], float] = time.perf_counter
    for _ in range(20):
        warm_up(context, values, 0.05)
        for name, variant in variants.items():
            for _ in range(submissions // 20):
                variant.prepare()
                start = clock()
                variant.record()
                recorded = clock()
                variant.submit()
                submitted = clock()
                while not variant.done():
                    pass
                end = clock()
                times[name].append((recorded - start, submitted - recorded, end - submitted, end - start))
            context.native.synchronize()
    return {
        name: tuple(statistics.median(column) * 1e6 for column in zip(*rows, strict=True))  # type: ignore[misc]
        for name, rows in times.items()
    }


#: What the device is told, and how its commands come about.
VARIANTS = (
    ("timeline", "anew"),
    ("timeline", "begun"),
    ("timeline", "recorded"),
    ("fence", "anew"),
    ("fence", "recorded"),
    ("word", "anew"),
    ("word", "recorded"),
    ("timeline", "empty"),
)


def main() -> None:
    """Prints a line a variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=4000)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    context = current()
    x = from_numpy(numpy.zeros(64, numpy.float32))
    kernel = increment[(1,)](x, BLOCK=64)
    context.native.synchronize()
    variants = {
        signal if commands == "anew" else f"{commands}, {signal}": Submission(
            context, kernel.function, x.data_ptr(), signal, commands
        )
        for signal, commands in VARIANTS
    }
    measure(context, variants, 400)
    found = measure(context, variants, options.submissions)
    print(f"{context.device.name}: µs, medians of {options.submissions}")
    print(f"{'':20}{'record':>8}{'submit':>8}{'wait':>8}{'in all':>8}")
    for name, row in found.items():
        print(f"{name:20}" + "".join(f"{value:8.1f}" for value in row))
    if options.json:
        options.json.write_text(json.dumps({"device": context.device.name, "microseconds": found}))


if __name__ == "__main__":
    main()
