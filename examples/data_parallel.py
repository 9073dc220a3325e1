"""Data-parallel training: each rank computes the gradients of its part of the batch, all ranks take their sum.

    torchrun --nproc-per-node 2 -m examples.data_parallel
    python -m examples.data_parallel

Where torch has CUDA, TRITON_SPIRV_BACKEND=1 chooses this backend, and the tensors are CUDA's.

A linear layer and a layer norm learn to reproduce a batch of targets, by gradient descent on the mean squared error.
Matmuls, layer norm, its gradients and the update are Triton kernels. Each rank launches them on the device that
LOCAL_RANK gives it; if there is only one, the ranks share it. torch.distributed's gloo adds up the gradients. It
works on CPU tensors, so gradients in device memory are copied to the host and back, once per step.

Rank 0 then trains again on the whole batch by itself, and both results are compared with each other and with NumPy in
float64. Run alone, the process works on two parts of the batch in turn and adds their gradients.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from triton.backends.spirv.runtime.device_choice import choose, devices

from examples import layer_norm_backward as backward
from examples.harness import device_name
from examples.layer_norm import layer_norm
from examples.matmul import matmul_kernel

BATCH, INPUTS, OUTPUTS = 512, 96, 80
STEPS, RATE = 5, 4.0
#: Parts of the batch where one process does them all.
PARTS_ALONE = 2
TOLERANCE = 1e-5
EPSILON = 1e-5
#: How long a rank waits for the others.
PATIENCE = timedelta(seconds=120)


@triton.jit
def error_kernel(y_ptr, target_ptr, grad_ptr, loss_ptr, count, scale, BLOCK: tl.constexpr):
    """grad = (y - target) * scale; loss[program] = the program's part of sum((y - target)²) * scale / 2."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    error = tl.load(y_ptr + offsets, mask=inside, other=0.0) - tl.load(target_ptr + offsets, mask=inside, other=0.0)
    tl.store(grad_ptr + offsets, error * scale, mask=inside)
    tl.store(loss_ptr + tl.program_id(0), tl.sum(error * error, axis=0) * scale * 0.5)


@triton.jit
def descend_kernel(parameters_ptr, grad_ptr, count, rate, BLOCK: tl.constexpr):
    """parameters -= rate * grad"""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    moved = tl.load(parameters_ptr + offsets, mask=inside) - rate * tl.load(grad_ptr + offsets, mask=inside)
    tl.store(parameters_ptr + offsets, moved, mask=inside)


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """``c = a @ b``, whatever the strides."""
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, 32) * triton.cdiv(n, 32),)
    matmul_kernel[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        *a.stride(),
        *b.stride(),
        *c.stride(),
        BLOCK_M=32,
        BLOCK_N=32,
        BLOCK_K=32,
        GROUP=8,
        ACTIVATION="",
    )


@dataclass(frozen=True)
class Problem:
    """Inputs (BATCH, INPUTS), targets (BATCH, OUTPUTS) and the first parameters, the same in every rank."""

    x: np.ndarray
    target: np.ndarray
    parameters: np.ndarray

    @staticmethod
    def make() -> Problem:
        """From one seed."""
        random = np.random.default_rng(0)
        x, target = (random.standard_normal((BATCH, columns), dtype=np.float32) for columns in (INPUTS, OUTPUTS))
        weight = random.standard_normal((INPUTS, OUTPUTS), dtype=np.float32) / np.float32(np.sqrt(INPUTS))
        gain, bias = np.ones(OUTPUTS, np.float32), np.zeros(OUTPUTS, np.float32)
        return Problem(x, target, np.concatenate([weight.ravel(), gain, bias]))


def split(parameters: Any) -> tuple[Any, Any, Any]:
    """The weight (INPUTS, OUTPUTS), gain and bias (OUTPUTS) that lie one after another in a vector."""
    weight = parameters[: INPUTS * OUTPUTS].reshape(INPUTS, OUTPUTS)
    return weight, parameters[INPUTS * OUTPUTS : -OUTPUTS], parameters[-OUTPUTS:]


class Part:
    """Some rows of the batch on the device, with room for what is computed from them."""

    def __init__(self, problem: Problem, rows: slice, device: torch.device) -> None:
        self.x = torch.from_numpy(problem.x[rows]).to(device)
        self.target = torch.from_numpy(problem.target[rows]).to(device)
        self.rows = len(self.x)

        def room(*shape: int) -> torch.Tensor:
            return torch.empty(shape, device=device)

        self.hidden, self.y, self.y_grad, self.hidden_grad = (room(self.rows, OUTPUTS) for _ in range(4))
        self.mean, self.rstd = room(self.rows), room(self.rows)
        self.loss = room(triton.cdiv(self.y.numel(), 1024))
        self.gain_parts, self.bias_parts = (room(backward.PARTS, OUTPUTS) for _ in range(2))

    def gradients(self, parameters: torch.Tensor, out: torch.Tensor) -> float:
        """Writes the part's share of the loss' gradients to ``out``; its share of the loss."""
        weight, gain, bias = split(parameters)
        weight_grad, gain_grad, bias_grad = split(out)
        matmul(self.x, weight, self.hidden)
        layer_norm(self.hidden, self.y, gain, bias, self.mean, self.rstd, self.rows, OUTPUTS, EPSILON)
        error_kernel[(len(self.loss),)](
            self.y, self.target, self.y_grad, self.loss, self.y.numel(), 1.0 / (BATCH * OUTPUTS), BLOCK=1024
        )
        backward.layer_norm_backward(
            self.hidden,
            gain,
            self.mean,
            self.rstd,
            self.y_grad,
            self.hidden_grad,
            gain_grad,
            bias_grad,
            self.gain_parts,
            self.bias_parts,
            self.rows,
            OUTPUTS,
        )
        matmul(self.x.t(), self.hidden_grad, weight_grad)
        return float(self.loss.cpu().sum())


def train(
    problem: Problem, shares: Sequence[slice], device: torch.device, add_up: Callable[[torch.Tensor], None]
) -> tuple[np.ndarray, list[float]]:
    """The parameters after STEPS steps, and the loss before each. ``shares``: the rows that this process works on;
    ``add_up`` replaces a CPU tensor by its sum over all ranks."""
    parts = [Part(problem, rows, device) for rows in shares]
    parameters = torch.from_numpy(problem.parameters.copy()).to(device)
    grad = torch.empty_like(parameters)
    losses = []
    for _ in range(STEPS):
        total = torch.zeros(len(parameters) + 1)  # in host memory: the gradients, and the loss behind them
        for part in parts:
            loss = part.gradients(parameters, grad)
            total[:-1] += grad.cpu()
            total[-1] += loss
        add_up(total)
        grad.copy_(total[:-1])
        losses.append(float(total[-1]))
        descend_kernel[(triton.cdiv(len(grad), 1024),)](parameters, grad, len(grad), RATE, BLOCK=1024)
    return parameters.cpu().numpy(), losses


def reference(problem: Problem) -> tuple[np.ndarray, list[float]]:
    """What ``train`` gives, in float64."""
    parameters = problem.parameters.astype(np.float64)
    losses = []
    for _ in range(STEPS):
        weight, gain, bias = split(parameters)
        hidden = problem.x @ weight
        centred = hidden - hidden.mean(axis=1, keepdims=True)
        normalised = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        error = normalised * gain + bias - problem.target
        losses.append(float((error**2).mean() / 2))
        hidden_grad, gain_grad, bias_grad = backward.reference(hidden, gain, error / error.size, EPSILON)
        grads = (problem.x.T @ hidden_grad).ravel(), gain_grad, bias_grad
        parameters = parameters - RATE * np.concatenate(grads)
    return parameters, losses


def compare(name: str, one: tuple[np.ndarray, list[float]], other: tuple[np.ndarray, list[float]]) -> bool:
    """Prints how far two results are apart. Returns whether that is within the tolerance; a NaN never is."""
    far = [float(np.max(np.abs(np.asarray(a, np.float64) - b))) for a, b in zip(one, other, strict=True)]
    right = all(error <= TOLERANCE for error in far)
    print(
        f"{name}: max error of the parameters {far[0]:.2e}, of the losses {far[1]:.2e}"
        + ("" if right else f"  WRONG (allowed {TOLERANCE:g})")
    )
    return right


def shares_of(rank: int, ranks: int) -> slice:
    """The rows of one of ``ranks`` parts, which differ by at most one in size."""
    return slice(BATCH * rank // ranks, BATCH * (rank + 1) // ranks)


def main() -> int:
    """Trains, compares and prints; 0 where everything is right. Every rank gets rank 0's verdict."""
    problem = Problem.make()
    device = triton.runtime.driver.active.get_active_torch_device()
    if device.type == "cuda":  # launches go to torch.cuda's current device
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        device = triton.runtime.driver.active.get_active_torch_device()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks == 1:
        rank, shares, add_up = 0, [shares_of(part, PARTS_ALONE) for part in range(PARTS_ALONE)], lambda tensor: None
    else:
        dist.init_process_group("gloo", timeout=PATIENCE)
        rank, add_up = dist.get_rank(), dist.all_reduce
        shares = [shares_of(rank, ranks)]
    print(
        f"rank {rank} of {ranks}: {device_name()} ({choose(devices())[1]}), tensors on '{device}', "
        f"{len(shares)} part(s) of the batch",
        flush=True,
    )
    together = train(problem, shares, device, add_up)
    right = torch.ones(1)
    if rank == 0:
        alone = train(problem, [slice(None)], device, lambda tensor: None)
        print("loss before each step:", *(f"{loss:.6f}" for loss in together[1]))
        verdicts = [
            compare("parts against one rank with the whole batch", together, alone),
            compare("parts against NumPy in float64", together, reference(problem)),
            together[1][-1] < together[1][0],
        ]
        right.fill_(all(verdicts))
    if ranks > 1:
        dist.broadcast(right, 0)
        dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
