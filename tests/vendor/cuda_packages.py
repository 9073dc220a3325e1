"""Kernel libraries that insist on CUDA, unchanged, inside ``torch.spirv.as_cuda()``: each against torch's own formula.

``python -m tests.vendor.cuda_packages`` needs conch-triton-kernels, cut-cross-entropy, flash-linear-attention,
liger-kernel and transformers, and runs those that are installed; ``--all`` fails where one is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable

import torch
from torch.nn import functional as F
from triton.backends.spirv.torch import registration


def _conch() -> None:
    from conch.ops.activation.silu_and_mul import silu_and_mul
    from conch.ops.normalization.rms_norm import rms_norm
    from conch.platforms import current_platform

    assert current_platform.has_cuda() and current_platform.device == "cuda"
    x = torch.randn(5, 96, device=current_platform.device)
    torch.testing.assert_close(silu_and_mul(x).cpu(), F.silu(x.cpu()[:, :48]) * x.cpu()[:, 48:], rtol=1e-4, atol=1e-5)
    weight = torch.randn(96, device="cuda")
    torch.testing.assert_close(
        rms_norm(x, weight, 1e-6).cpu(), F.rms_norm(x.cpu(), (96,), weight.cpu(), 1e-6), rtol=1e-4, atol=1e-5
    )


def _cut_cross_entropy() -> None:
    from cut_cross_entropy import linear_cross_entropy

    states = (torch.randn(64, 64) / 8).bfloat16().cuda().requires_grad_()
    classes = (torch.randn(192, 64) / 8).bfloat16().cuda().requires_grad_()
    targets = torch.randint(0, 192, (64,)).cuda()
    loss = linear_cross_entropy(states, classes, targets)
    loss.backward()
    here, there = (t.detach().cpu().float().requires_grad_() for t in (states, classes))
    want = F.cross_entropy(here @ there.T, targets.cpu())
    want.backward()
    torch.testing.assert_close(loss.detach().cpu().float(), want.detach(), rtol=1e-2, atol=1e-2)
    for given, wanted in ((states, here), (classes, there)):
        assert given.grad is not None and wanted.grad is not None
        torch.testing.assert_close(given.grad.cpu().float(), wanted.grad, rtol=5e-2, atol=1e-3)


def _fla() -> None:
    from fla.modules import RMSNorm

    x = torch.randn(6, 64, device="cuda", requires_grad=True)
    norm = RMSNorm(64).to("cuda")
    got = norm(x)
    want = F.rms_norm(x.detach().cpu(), (64,), eps=norm.eps)
    torch.testing.assert_close(got.detach().cpu(), want, rtol=1e-4, atol=1e-5)
    got.square().sum().backward()
    assert x.grad is not None and torch.isfinite(x.grad).all()


def _liger() -> None:
    from liger_kernel.transformers.cross_entropy import LigerCrossEntropyLoss
    from liger_kernel.utils import infer_device

    assert infer_device() == "cuda"
    scores = torch.randn(8, 50, device="cuda", requires_grad=True)
    classes = torch.randint(0, 50, (8,), device="cuda")
    want = F.cross_entropy(scores.detach().cpu(), classes.cpu())
    torch.testing.assert_close(LigerCrossEntropyLoss()(scores, classes).detach().cpu(), want, rtol=1e-5, atol=1e-5)


def _transformers() -> None:
    from transformers import CompileConfig, LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, **sizes)).eval()
    compiling = CompileConfig()
    compiling._compile_all_devices = True
    torch._dynamo.utils.counters.clear()
    how = {"max_new_tokens": 8, "do_sample": False, "cache_implementation": "static"}
    want = model.generate(torch.tensor([[3, 7, 11, 2, 9]]), **how)
    got = model.cuda().generate(torch.tensor([[3, 7, 11, 2, 9]]).cuda(), compile_config=compiling, **how)
    assert got.is_cuda and got.tolist() == want.tolist()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1  # of a token; the prompt is not compiled


PACKAGES: dict[str, Callable[[], None]] = {
    "conch": _conch,
    "cut_cross_entropy": _cut_cross_entropy,
    "fla": _fla,
    "liger_kernel": _liger,
    "transformers": _transformers,
}


def main() -> int:
    """Prints which packages ran; raises where one gives something wrong. 1 where one is missing that must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", nargs="*", default=[*PACKAGES])
    arguments = parser.parse_args()
    registration.register()
    missing = [name for name in arguments.only if importlib.util.find_spec(name) is None]
    for name in arguments.only:
        if name not in missing:
            torch.manual_seed(0)
            with torch.spirv.as_cuda():
                PACKAGES[name]()
            print(f"{name} ran", flush=True)
    print("not installed:", *missing)
    return int(arguments.all and bool(missing))


if __name__ == "__main__":
    sys.exit(main())
