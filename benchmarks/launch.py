"""A synchronous launch through the backend's native path against one written by hand with the ``vulkan`` package.

Both run the same pipeline in this process, turn about, and return when the kernel is done. The hand-written one reuses
its command buffer and fence, and packs its push constants with ``struct``. Beside them the same kernel as a
``triton.jit`` function is launched, with all that Triton does in Python. Prints the median time of each and the ratios
to the hand-written one; exits with 1 where a ratio is above 1.

``--breakdown`` prints instead what a launch of three tensors and a number costs the launching thread, step by step.

    python benchmarks/launch.py [--launches N] [--json FILE] [--breakdown]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import triton
import triton.language as tl
from triton.backends.spirv.launching.specialization import tensor_specialization
from triton.backends.spirv.runtime import array, zeros
from triton.backends.spirv.runtime.context import Context, current
from triton.backends.spirv.runtime.kernel import Kernel
from triton.backends.spirv.runtime.launches.launch import make_launcher
from triton.backends.spirv.runtime.vulkan.devices import compute_queue_family
from triton.backends.spirv.runtime.vulkan.loader import vulkan
from triton.backends.spirv.torch import registration

#: x[i] = x[i] + 1 for the 64 invocations of a workgroup; the argument is *fp32 x.
KERNEL = """
OpCapability Shader
OpCapability Int64
OpCapability PhysicalStorageBufferAddresses
OpCapability VulkanMemoryModel
OpMemoryModel PhysicalStorageBuffer64 Vulkan
OpEntryPoint GLCompute %main "main" %id %push
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %id BuiltIn LocalInvocationIndex
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%u64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%pu32 = OpTypePointer Input %u32
%block = OpTypeStruct %u64
%pblock = OpTypePointer PushConstant %block
%pu64 = OpTypePointer PushConstant %u64
%pf32 = OpTypePointer PhysicalStorageBuffer %f32
%id = OpVariable %pu32 Input
%push = OpVariable %pblock PushConstant
%c0 = OpConstant %u32 0
%c4 = OpConstant %u64 4
%one = OpConstant %f32 1
%main = OpFunction %void None %fn
%entry = OpLabel
%i = OpLoad %u32 %id
%wide = OpUConvert %u64 %i
%offset = OpIMul %u64 %wide %c4
%xp = OpAccessChain %pu64 %push %c0
%x = OpLoad %u64 %xp
%at = OpIAdd %u64 %x %offset
%q = OpConvertUToPtr %pf32 %at
%v = OpLoad %f32 %q Aligned 4
%sum = OpFAdd %f32 %v %one
OpStore %q %sum Aligned 4
OpReturn
OpFunctionEnd
"""


@triton.jit
def increment(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """x[i] = x[i] + 1 for i < BLOCK."""
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)


def assemble(text: str) -> bytes:
    """The SPIR-V module of an assembly text, by spirv-as."""
    return subprocess.run(
        ["spirv-as", "--target-env", "vulkan1.3", "-", "-o", "-"], input=text.encode(), check=True, capture_output=True
    ).stdout


def by_hand(context: Context, pipeline: int, address: int) -> Callable[[], None]:
    """The launch as a careful user of the ``vulkan`` package writes it."""
    vk = vulkan()
    device = context.opened.handle
    family = compute_queue_family(context.device)
    queue = vk.vkGetDeviceQueue(device, family, 0)
    pool = vk.vkCreateCommandPool(
        device,
        vk.VkCommandPoolCreateInfo(flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queueFamilyIndex=family),
        None,
    )
    commands = vk.vkAllocateCommandBuffers(
        device,
        vk.VkCommandBufferAllocateInfo(
            commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1
        ),
    )[0]
    fence = vk.vkCreateFence(device, vk.VkFenceCreateInfo(), None)
    begin = vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
    submit = vk.VkSubmitInfo(commandBufferCount=1, pCommandBuffers=[commands])
    bound = vk.ffi.cast("VkPipeline", pipeline)

    def launch() -> None:
        push = vk.ffi.from_buffer(struct.pack("<Q", address))
        vk.vkBeginCommandBuffer(commands, begin)
        vk.vkCmdBindPipeline(commands, vk.VK_PIPELINE_BIND_POINT_COMPUTE, bound)
        vk.vkCmdPushConstants(commands, context.opened.pipeline_layout, vk.VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, push)
        vk.vkCmdDispatch(commands, 1, 1, 1)
        vk.vkEndCommandBuffer(commands)
        vk.vkQueueSubmit(queue, 1, submit, fence)
        vk.vkWaitForFences(device, 1, [fence], vk.VK_TRUE, 10**10)
        vk.vkResetFences(device, 1, [fence])

    return launch


def measure(functions: dict[str, Callable[[], None]], launches: int) -> dict[str, float]:
    """Median microseconds of a call of each, in rounds that alternate, so that both see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    rounds = 20
    for function in functions.values():
        for _ in range(200):
            function()
    for _ in range(rounds):
        for name, function in functions.items():
            for _ in range(launches // rounds):
                start = time.perf_counter()
                function()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) * 1e6 for name, values in times.items()}


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out[i] = x[i] + y[i] for i < n."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(
        out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside), mask=inside
    )


def _tensors() -> dict[str, list[Any]]:
    """Three tensors of each kind. Tensors of the host are copied if the device does not reach its memory."""
    kinds = {
        "device buffers": [zeros(64, "float32") for _ in range(3)],
        "NumPy views": [array(numpy.zeros(64, numpy.float32)) for _ in range(3)],
    }
    if importlib.util.find_spec("torch"):
        import torch

        registration.register()
        device = f"{registration.NAME}:{current().index}"
        kinds["torch tensors on the device"] = [torch.zeros(64, device=device) for _ in range(3)]
        kinds["torch tensors on the CPU"] = [torch.zeros(64) for _ in range(3)]
    return kinds


def _steps(tensors: list[Any]) -> dict[str, Callable[[], Any]]:
    """The steps of a launch with these tensors."""
    driver = triton.runtime.driver.active
    constants = {"BLOCK": 64, "num_warps": max(1, 64 // current().capabilities.subgroup_size)}
    # What JITFunction.run adds to the options.
    added = {"debug": False, "instrumentation_mode": "", "fpsan_homomorphic_casts": False}
    vars(driver).pop("remember_launch", None)
    kernel = add[(1,)](*tensors, 64, **constants)
    _, _, _, backend, binder = add.device_caches[driver.get_current_device()]
    # Its launches are not remembered: they all go Triton's own way.
    unremembered = triton.jit(add.fn)
    driver.remember_launch = None  # type: ignore[attr-defined]
    fixed = 0, kernel.function, kernel.packed_metadata, None, None, None, *tensors, 64, 64
    return {
        "specialisation of a tensor, in Python": lambda: tensor_specialization(tensors[0], True),
        "specialisation of a tensor": lambda: backend.get_tensor_specialization(tensors[0], align=True),
        "upstream's binder, with all specialisation": lambda: binder(*tensors, 64, **constants, **added),
        "device and stream": lambda: driver.get_current_stream(driver.get_current_device()),
        "native launcher, empty grid": lambda: kernel.run(0, 1, 1, *fixed),
        "native launcher": lambda: kernel.run(1, 1, 1, *fixed),
        "the whole launch, empty grid": lambda: add[(0,)](*tensors, 64, **constants),
        "the whole launch": lambda: add[(1,)](*tensors, 64, **constants),
        "the whole launch, all Triton's own way": lambda: unremembered[(1,)](*tensors, 64, **constants),
        "synchronize(), nothing to wait for": driver.get_device_interface().synchronize,
    }


def breakdown(launches: int) -> dict[str, dict[str, float]]:
    """Microseconds of the launching thread's processor time for the steps of a launch: the median of 9 blocks. The time
    of other threads, and of waiting, is not in them."""
    found: dict[str, dict[str, float]] = {}
    for kind, tensors in _tensors().items():
        found[kind] = {}
        for name, step in _steps(tensors).items():
            times = []
            for _ in range(10):
                start = time.thread_time()
                for _ in range(launches):
                    step()
                times.append((time.thread_time() - start) / launches * 1e6)
                current().native.synchronize()
            found[kind][name] = statistics.median(times[1:])
    return found


def main() -> int:
    """Measure, print, and tell whether the native path is the faster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--launches", type=int, default=4000, help="launches of each kind")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--breakdown", action="store_true", help="the steps of a launch")
    options = parser.parse_args()
    context = current()
    if options.breakdown:
        found = breakdown(max(1, options.launches // 10))
        for kind, steps in found.items():
            print(f"{context.device.name}, {kind}: µs of the launching thread")
            for name, value in steps.items():
                print(f"  {name:44} {value:7.2f}")
        if options.json:
            options.json.write_text(json.dumps({"device": context.device.name, "breakdown": found}))
        return 0
    if context.host_memory != "zero-copy":
        print(f"{context.device.name}: host memory is {context.host_memory}; this compares launches without copies")
        return 2
    kernel = Kernel(context, "increment", assemble(KERNEL))
    launcher = make_launcher(context, "increment", [((0,), "x", "*fp32")], indirect=False)
    native_values, hand_values, jit_values = (numpy.zeros(64, numpy.float32) for _ in range(3))
    argument, jit_argument = array(native_values), array(jit_values)
    warps = max(1, 64 // context.capabilities.subgroup_size)
    functions: dict[str, Callable[[], Any]] = {
        "native": lambda: launcher(1, 1, 1, 0, kernel.handle, None, None, None, None, argument),
        "by hand": by_hand(context, kernel.handle, array(hand_values).data_ptr()),
        "jit": lambda: increment[(1,)](jit_argument, BLOCK=64, num_warps=warps),
    }
    medians = measure(functions, options.launches)
    if not (native_values == hand_values).all() or not (jit_values == hand_values).all() or hand_values[0] == 0:
        raise RuntimeError("the launches disagree")
    ratios = {name: medians[name] / medians["by hand"] for name in ("native", "jit")}
    print(f"{context.device.name}: synchronous launch of a tiny kernel, median of {options.launches}")
    for name, value in medians.items():
        ratio = f"   ratio {ratios[name]:.2f} (must be at most 1)" if name in ratios else ""
        print(f"  {name:8} {value:8.1f} µs{ratio}")
    if options.json:
        options.json.write_text(json.dumps({"device": context.device.name, "microseconds": medians, "ratios": ratios}))
    return int(max(ratios.values()) > 1)


if __name__ == "__main__":
    sys.exit(main())
