"""Training steps of transformer blocks on the processor itself beside torch's own CPU code, on one thread.

    python -m benchmarks.cpu.training

A step is forward, backward and AdamW, eager and in fp32. Each row has the least processor time of a step of both, and
their ratio: above 1 the device ``spirv`` is faster. docs/speed.md has the figures.
"""

from __future__ import annotations

import os
import time

import torch

#: Width, length, batch and number of blocks.
SIZES = ((64, 32, 2, 2), (256, 64, 4, 2), (512, 128, 4, 2))
_STEPS = 5


def step_seconds(device: str, width: int, length: int, batch: int, blocks: int) -> float:
    """Seconds of processor time of the fastest of some steps."""
    torch.manual_seed(0)
    layers = [torch.nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True) for _ in range(blocks)]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    x = torch.randn(batch, length, width).to(device)
    best = float("inf")
    for _ in range(_STEPS):
        start = time.process_time()
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    """Prints the table."""
    os.environ.update(TRITON_SPIRV_CPU_THREADS="1", TRITON_SPIRV_TORCH_DEVICE="1")
    torch.set_num_threads(1)
    print("| width, length, batch, blocks | ms on spirv | ms of torch's CPU code | ratio |\n| --- | --- | --- | --- |")
    for size in SIZES:
        ours, torchs = (1e3 * step_seconds(device, *size) for device in ("spirv", "cpu"))
        print(f"| {', '.join(map(str, size))} | {ours:.1f} | {torchs:.1f} | {torchs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
