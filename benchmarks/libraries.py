"""Public kernel libraries on CPU tensors: their operators, forward and backward, against PyTorch.

    pip install liger-kernel flash-linear-attention
    pip install --no-deps conch-triton-kernels cut-cross-entropy
    python -m benchmarks.libraries [--device cpu|spirv] [--tune] [NAME …]

An operator is right where each result and each gradient differs from the reference by no more than 1e-4 of the largest
number there (2e-2 where it takes bfloat16 only). The references are PyTorch's own operations, and for linear attention
its recurrence. The exit status is 1 if an operator is wrong, not where it ends in an error or takes too long.
Autotuned kernels run in the first configuration that fits, unless ``--tune`` is given.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from benchmarks.outcomes import NOT_ENDED, PASSED, WRONG, ending_after, of_error, of_status, status_of

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
BATCH, LENGTH, HEADS, HEAD = 1, 64, 2, 32

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Operator:
    """``ours`` and ``reference`` take ``inputs`` by name and give a tensor, or several of which the first counts.
    ``fixed``: inputs without a gradient."""

    library: str
    name: str
    inputs: Tensors
    ours: Callable[..., Any]
    reference: Callable[..., Any]
    fixed: frozenset[str] = frozenset()
    dtype: torch.dtype = torch.float32


def _first(result: Any) -> torch.Tensor:
    return result[0] if isinstance(result, tuple) else result


def _error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    actual, expected = actual.detach().cpu().double(), expected.detach().double()
    return float((actual - expected).abs().max() / expected.abs().max().clamp(min=1e-9))


def compare(operator: Operator, device: str) -> float:
    """The largest error of the result and of the gradients, relative to the largest number of each."""

    def leaves(place: str, dtype: torch.dtype) -> Tensors:
        moved = {
            name: value.to(operator.dtype).to(place, dtype, copy=True) if value.is_floating_point() else value.to(place)
            for name, value in operator.inputs.items()
        }
        return {
            name: value.requires_grad_(value.is_floating_point() and name not in operator.fixed)
            for name, value in moved.items()
        }

    given, wide = leaves(device, operator.dtype), leaves("cpu", torch.float32)
    # Some operators overwrite their inputs, so each gets a copy that still leads back to them.
    actual = _first(operator.ours(**{name: value.clone() for name, value in given.items()}))
    expected = _first(operator.reference(**wide))
    errors = [_error(actual, expected)]
    if expected.requires_grad:
        gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(9))
        actual.backward(gradient.to(device, actual.dtype, copy=True))  # some overwrite it
        expected.backward(gradient.to(expected.dtype))
        for name, value in wide.items():
            if value.grad is not None:
                found = given[name].grad
                if found is None:
                    raise AssertionError(f"no gradient of {name}")
                errors.append(_error(found, value.grad))
    return max(errors)


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def liger() -> Iterator[Operator]:
    """liger-kernel's operators of one tensor or a few."""
    ours = importlib.import_module("liger_kernel.transformers.functional")
    moe = importlib.import_module("liger_kernel.ops.fused_moe").LigerFusedMoEFunction.apply
    x, y, weight, bias = _random(4, 17, 96), _random(4, 17, 96, seed=1), _random(96, seed=2), _random(96, seed=3)
    logits, target = 3 * _random(37, 1000), torch.randint(0, 1000, (37,), generator=torch.Generator().manual_seed(1))
    p, q = (functional.log_softmax(_random(19, 300, seed=seed), -1) for seed in (4, 5))
    two, norm = {"a": x, "b": y}, {"x": x, "w": weight}

    def rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, (96,), w, 1e-6)

    def jsd(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        middle = (0.5 * p.exp() + 0.5 * q.exp()).log()
        parts = (functional.kl_div(middle, each, log_target=True, reduction="batchmean") for each in (p, q))
        return 0.5 * sum(parts)  # type: ignore[return-value]

    def dyt(x: torch.Tensor, alpha: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return w * torch.tanh(alpha * x) + b

    def poly(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        powers = (x**3, x**2, x)
        return sum(w[k] * functional.rms_norm(power, (96,), eps=1e-6) for k, power in enumerate(powers)) + b

    def linear_loss(x: torch.Tensor, w: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(x @ w.T, t)

    def attended(v: torch.Tensor, q: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """Attention over layers: each token weighs what the blocks before gave it."""
        return torch.einsum("nbt,nbtd->btd", torch.softmax(rms(v, w) @ q, 0), v)

    def sparse(x: torch.Tensor) -> torch.Tensor:
        """The point of the simplex that is nearest (Martins and Astudillo, 2016)."""
        ordered = x.sort(-1, descending=True).values
        count = torch.arange(1, x.shape[-1] + 1)
        kept = (1 + count * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
        return (x - (ordered.cumsum(-1).gather(-1, kept - 1) - 1) / kept).clamp(min=0)

    experts, chosen = 4, torch.stack([torch.arange(21) % 4, (torch.arange(21) + 1 + torch.arange(21) // 7) % 4], 1)

    def mixture(
        x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, index: torch.Tensor, share: torch.Tensor
    ) -> torch.Tensor:
        gates = functional.one_hot(index.long(), experts).to(share.dtype).mul(share[..., None]).sum(1)
        gate, raised = torch.einsum("th,enh->etn", x, up).chunk(2, -1)
        return torch.einsum("te,etn,ehn->th", gates, functional.silu(gate) * raised, down)

    rows = [
        ("rms_norm", norm, lambda x, w: ours.liger_rms_norm(x, w, 1e-6), rms),
        ("fused_add_rms_norm", {**norm, "r": y}, lambda x, w, r: ours.liger_fused_add_rms_norm(x, r, w, 1e-6),
         lambda x, w, r: rms(x + r, w)),
        ("layer_norm", {**norm, "b": bias}, lambda x, w, b: ours.liger_layer_norm(x, w, b, 1e-6),
         lambda x, w, b: functional.layer_norm(x, (96,), w, b, 1e-6)),
        ("group_norm", {"x": _random(3, 12, 40), "w": weight[:12], "b": bias[:12]},
         lambda x, w, b: ours.liger_group_norm(x, w, b, 12, 4, 1e-6),
         lambda x, w, b: functional.group_norm(x, 4, w, b, 1e-6)),
        ("swiglu", two, ours.liger_swiglu, lambda a, b: functional.silu(a) * b),
        ("geglu", two, ours.liger_geglu, lambda a, b: functional.gelu(a, approximate="tanh") * b),
        ("relu_squared", {"x": x}, ours.liger_relu_squared, lambda x: functional.relu(x).square()),
        ("softmax", {"x": x}, ours.liger_softmax, lambda x: functional.softmax(x, -1)),
        ("dyt", {"x": x, "alpha": torch.tensor([0.5]), "w": weight, "b": bias},
         lambda x, alpha, w, b: ours.liger_dyt(x, alpha, w, b), dyt),
        ("poly_norm", {"x": x, "w": torch.tensor([0.2, 0.3, 0.5]), "b": torch.tensor(0.1)},
         lambda x, w, b: ours.liger_poly_norm(x, w, b), poly),
        ("kl_div", {"p": p, "q": q.exp()}, lambda p, q: ours.liger_kl_div(p, q),
         lambda p, q: functional.kl_div(p, q, reduction="mean")),
        ("jsd", {"p": p, "q": q}, lambda p, q: ours.liger_jsd(p, q), jsd),
        ("tvd", {"p": p.exp(), "q": q.exp()}, lambda p, q: ours.liger_tvd(p, q),
         lambda p, q: 0.5 * (p - q).abs().mean()),
        ("cross_entropy", {"x": logits, "t": target}, lambda x, t: ours.liger_cross_entropy(x, t),
         lambda x, t: functional.cross_entropy(x, t)),
        ("fused_linear_cross_entropy", {"x": _random(37, 64), "w": _random(500, 64, seed=6), "t": target % 500},
         lambda x, w, t: ours.liger_fused_linear_cross_entropy(x, w, t), linear_loss),
        ("attn_res", {"v": _random(6, 2, 9, 96), "q": weight, "w": bias},
         lambda v, q, w: ours.liger_attn_res(v, q, w), attended),
        ("sparsemax", {"x": x}, lambda x: ours.liger_sparsemax(x), sparse),
        ("fused_moe", {"x": _random(21, 64), "up": _random(experts, 96, 64, seed=7) / 8,
                       "down": _random(experts, 64, 48, seed=8) / 8, "index": chosen.int(),
                       "share": torch.rand(21, 2, generator=torch.Generator().manual_seed(9))},
         lambda x, up, down, index, share: moe(x, up, down, index, share), mixture),
    ]  # fmt: skip
    for name, inputs, function, reference in rows:
        fixed = frozenset({"q"}) if name in ("kl_div", "jsd", "tvd") else frozenset()
        yield Operator("liger-kernel", name, inputs, function, reference, fixed)


def linear_attention() -> Iterator[Operator]:
    """flash-linear-attention's: chunks against its plain loops or its recurrent kernels' definition."""
    ops, modules = importlib.import_module("fla.ops"), importlib.import_module("fla.modules")
    activations, l2norm = (
        importlib.import_module("fla.modules.activations"),
        importlib.import_module("fla.modules.l2norm"),
    )
    scale = HEAD**-0.5
    shape = BATCH, LENGTH, HEADS, HEAD
    q, k, v, gate = (_random(*shape, seed=seed) for seed in range(4))
    heads = {"q": q, "k": functional.normalize(k, dim=-1), "v": v}
    decay = {"g": functional.logsigmoid(gate)}
    scalar = {"g": decay["g"][..., 0].contiguous()}
    rate = {"beta": _random(BATCH, LENGTH, HEADS, seed=5).sigmoid()}

    def recurrence(q: Any, k: Any, v: Any, g: Any = None, beta: Any = None) -> torch.Tensor:
        """state ← exp(g) state + k (v - beta-weighted prediction)ᵀ; the output is qᵀ state."""
        state, outputs = torch.zeros(BATCH, HEADS, HEAD, HEAD, dtype=q.dtype), []
        for at in range(LENGTH):
            if g is not None:
                state = state * (g[:, at].exp()[..., None] if g.dim() == 4 else g[:, at].exp()[..., None, None])
            value = v[:, at]
            if beta is not None:
                predicted = (state * k[:, at, :, :, None]).sum(-2)
                value = beta[:, at, :, None] * (value - predicted)
            state = state + k[:, at, :, :, None] * value[..., None, :]
            outputs.append((scale * q[:, at, :, :, None] * state).sum(-2))
        return torch.stack(outputs, 1)

    def retention(q: Any, k: Any, v: Any) -> torch.Tensor:
        slopes = (1 - torch.exp2(-5.0 - torch.arange(HEADS))).log().to(q.dtype)
        return recurrence(q, k, v, slopes.expand(BATCH, LENGTH, HEADS))

    def attention(q: Any, k: Any, v: Any) -> torch.Tensor:
        turned = (each.transpose(1, 2) for each in (q, k, v))
        return functional.scaled_dot_product_attention(*turned, is_causal=True).transpose(1, 2)

    x, y = _random(4, 33, 128), _random(4, 33, 128, seed=1)
    rows = [
        ("chunk_linear_attn", heads, lambda **given: ops.chunk_linear_attn(**given, normalize=False), recurrence),
        ("fused_recurrent_linear_attn", heads,
         lambda **given: ops.fused_recurrent_linear_attn(**given, normalize=False), recurrence),
        ("chunk_gla", heads | decay, ops.chunk_gla, recurrence),
        ("fused_recurrent_gla", heads | {"gk": decay["g"]}, ops.fused_recurrent_gla,
         lambda q, k, v, gk: recurrence(q, k, v, gk)),
        ("chunk_simple_gla", heads | scalar, ops.chunk_simple_gla, recurrence),
        ("fused_recurrent_simple_gla", heads | scalar, ops.fused_recurrent_simple_gla, recurrence),
        ("parallel_simple_gla", heads | scalar, ops.parallel_simple_gla, recurrence),
        ("chunk_retention", heads, ops.chunk_retention, retention),
        ("fused_recurrent_retention", heads, ops.fused_recurrent_retention, retention),
        ("parallel_retention", heads, ops.parallel_retention, retention),
        ("chunk_delta_rule", heads | rate, ops.chunk_delta_rule, recurrence),
        ("fused_recurrent_delta_rule", heads | rate, ops.fused_recurrent_delta_rule, recurrence),
        ("chunk_gated_delta_rule", heads | scalar | rate, ops.chunk_gated_delta_rule, recurrence),
        ("parallel_attn", heads, ops.parallel_attn, attention),
        ("rms_norm", {"x": x, "w": y[0, 0]}, lambda x, w: modules.layernorm.rms_norm(x, w, None, eps=1e-6),
         lambda x, w: functional.rms_norm(x, (128,), w, 1e-6)),
        ("layer_norm", {"x": x, "w": y[0, 0], "b": y[0, 1]},
         lambda x, w, b: modules.layernorm.layer_norm(x, w, b, eps=1e-6),
         lambda x, w, b: functional.layer_norm(x, (128,), w, b, 1e-6)),
        ("swish", {"x": x}, lambda x: activations.swish(x), lambda x: functional.silu(x)),
        ("swiglu", {"x": x, "y": y}, lambda x, y: activations.swiglu(x, y), lambda x, y: functional.silu(x) * y),
        ("l2norm", {"x": x}, lambda x: l2norm.l2norm(x),
         lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)),
    ]  # fmt: skip
    for name, inputs, function, reference in rows:
        dtype = torch.bfloat16 if name in ("chunk_delta_rule", "chunk_gated_delta_rule") else torch.float32
        yield Operator("flash-linear-attention", name, inputs, function, reference, dtype=dtype)


def conch() -> Iterator[Operator]:
    """Operators of conch-triton-kernels, which infer: none has gradients."""

    def ours(module: str, name: str) -> Callable[..., Any]:
        return getattr(importlib.import_module(f"conch.ops.{module}"), name)  # type: ignore[no-any-return]

    x, weight = _random(37, 400), _random(400, seed=2)
    boxes = torch.rand((100, 4), generator=torch.Generator().manual_seed(1)) * 50
    boxes[:, 2:] += boxes[:, :2]
    small = [torch.randint(-9, 9, shape, dtype=torch.int8) for shape in ((48, 128), (128, 64))]
    caches = {"k": _random(20, 16, 2, 64, seed=5), "v": _random(20, 16, 2, 64, seed=6)}
    table, lengths = torch.randperm(20)[:9].view(3, 3).int(), torch.tensor([5, 33, 48], dtype=torch.int32)

    def gated(activation: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda x: activation(x[..., :200]) * x[..., 200:]

    def kept(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """Boxes by score, without those that share more than half with a kept one."""
        area, found = (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]), []
        for one in s.argsort(descending=True).tolist():
            both = (torch.minimum(x[one, 2:], x[found, 2:]) - torch.maximum(x[one, :2], x[found, :2])).clamp(min=0)
            common = both[:, 0] * both[:, 1]
            if not (common / (area[one] + area[found] - common) > 0.5).any():
                found.append(one)
        return torch.tensor(found)

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        found = []
        for one, length in enumerate(lengths.tolist()):
            keys, values = (
                each[table[one].long()].reshape(-1, 2, 64)[:length].repeat_interleave(2, 1) for each in (k, v)
            )
            shares = torch.softmax(torch.einsum("hd,nhd->hn", q[one], keys) / 8, 1)
            found.append(torch.einsum("hn,nhd->hd", shares, values))
        return torch.stack(found)

    rows = [
        ("silu_and_mul", {"x": x}, ours("activation.silu_and_mul", "silu_and_mul"), gated(functional.silu)),
        ("gelu_tanh_and_mul", {"x": x}, ours("activation.gelu_tanh_and_mul", "gelu_tanh_and_mul"),
         gated(lambda x: functional.gelu(x, approximate="tanh"))),
        ("rms_norm", {"x": x, "w": weight},
         lambda x, w: ours("normalization.rms_norm", "rms_norm")(x, w, 1e-6),
         lambda x, w: functional.rms_norm(x, (400,), w, 1e-6)),
        ("scaled_int8_quant", {"x": 9 * x, "s": torch.tensor([0.25])},
         lambda x, s: ours("quantization.int8", "scaled_int8_quant")(x, s),
         lambda x, s: (x / s).clamp(-128, 127).trunc()),
        ("scaled_fp8_quant", {"x": x, "s": torch.tensor([0.3])},
         lambda x, s: ours("quantization.fp8", "scaled_fp8_quant")(x, s),
         lambda x, s: (x / s).clamp(-448, 448).to(torch.float8_e4m3fn)),
        ("scaled_gemm", {"a": small[0], "b": small[1], "s": _random(48, 1), "t": _random(64, 1, seed=1)},
         lambda a, b, s, t: ours("quantization.gemm", "scaled_gemm")(a, b, s, t, torch.float32),
         lambda a, b, s, t: (a.float() @ b.float()) * s * t.T),
        ("nms", {"x": boxes, "s": _random(100, seed=3)}, lambda x, s: ours("vision.nms", "nms")(x, s, 0.5), kept),
        ("paged_attention", {"q": _random(3, 4, 64), **caches},
         lambda q, k, v: ours("attention.paged_attention", "paged_attention")(
             q, k, v, table.to(q.device), lengths.to(q.device)), attention),
    ]  # fmt: skip
    for name, inputs, function, reference in rows:
        yield Operator("conch-triton-kernels", name, inputs, function, reference, frozenset(inputs))


def cut_cross_entropy() -> Iterator[Operator]:
    """cut-cross-entropy's loss of a linear layer, whose logits are never stored."""
    target = torch.randint(0, 300, (64,), generator=torch.Generator().manual_seed(1))
    yield Operator(
        "cut-cross-entropy",
        "linear_cross_entropy",
        {"e": _random(64, 96), "c": 0.3 * _random(300, 96, seed=1), "t": target},
        lambda e, c, t: importlib.import_module("cut_cross_entropy").linear_cross_entropy(e, c, t),
        lambda e, c, t: functional.cross_entropy(e @ c.T, t),
        dtype=torch.bfloat16,
    )


PACKAGES = {
    "liger-kernel": "liger_kernel",
    "flash-linear-attention": "fla",
    "conch-triton-kernels": "conch",
    "cut-cross-entropy": "cut_cross_entropy",
}
LIBRARIES = {
    "liger-kernel": liger,
    "flash-linear-attention": linear_attention,
    "conch-triton-kernels": conch,
    "cut-cross-entropy": cut_cross_entropy,
}


def take_first_configurations() -> None:
    """Autotuned kernels are not tuned: compiling every configuration takes minutes on a CPU. The first that the device
    has room for is taken."""
    from triton.runtime.autotuner import Autotuner

    prune, bench = Autotuner.prune_configs, Autotuner._bench

    def pruned(self: Any, keywords: Any) -> Any:
        self.found_one = False
        return prune(self, keywords)

    def benched(self: Any, *args: Any, **keywords: Any) -> Any:
        if self.found_one:
            return [float("inf")] * 3
        times = bench(self, *args, **keywords)
        self.found_one = times[0] != float("inf")
        return times

    Autotuner.prune_configs, Autotuner._bench = pruned, benched


def ignore_unknown_keys() -> None:
    """An autotuner's key may name what is no argument of its kernel, as in Triton's releases: flash-linear-attention
    0.5.2 and torchao 0.18 cannot be imported otherwise."""
    from triton.runtime.autotuner import Autotuner

    make = Autotuner.__init__

    def made(self: Any, fn: Any, arg_names: Any, configs: Any, key: Any, *args: Any, **keywords: Any) -> None:
        make(self, fn, arg_names, configs, [name for name in key if name in arg_names], *args, **keywords)

    Autotuner.__init__ = made


def _verdict(operator: Operator, device: str) -> tuple[str, str]:
    """One of OUTCOMES, and what is to be said of it."""
    try:
        error = compare(operator, device)
    except Exception as failure:
        return of_error(failure)
    return PASSED if error <= TOLERANCE[operator.dtype] else WRONG, f"{error:.1e}"


def main() -> int:
    """Prints a row for each operator; 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", help="device of the tensors: cpu (the default) or spirv")
    parser.add_argument("--tune", action="store_true", help="tune autotuned kernels")
    parser.add_argument(
        "--limit", type=float, metavar="S", help="seconds of processor time for each; no limit by default"
    )
    parser.add_argument("--here", action="store_true", help="in this process, not each operator in one of its own")
    parser.add_argument("names", nargs="*", metavar="NAME", help="libraries or operators; all where none is named")
    options = parser.parse_args()
    if not options.tune:
        take_first_configurations()
    counts: Counter[str] = Counter()
    for library, operators in LIBRARIES.items():
        if importlib.util.find_spec(PACKAGES[library]) is None:
            if not options.here:
                print(f"{library} is not installed")
            continue
        for operator in operators():
            path = f"{library}/{operator.name}"
            if options.names and not {library, operator.name, path} & set(options.names):
                continue
            if not options.here:  # a kernel that does not end in time leaves its process no device
                command = [sys.executable, "-m", "benchmarks.libraries", "--here", "--device", options.device, path]
                command += ["--tune"] * options.tune + (["--limit", str(options.limit)] if options.limit else [])
                outcome = of_status(subprocess.run(command, check=False).returncode)
                if outcome == NOT_ENDED:
                    print(f"{library:24} {operator.name:28} {NOT_ENDED}", flush=True)
                counts[outcome] += 1
                continue
            began = time.process_time()
            with ending_after(options.limit):
                outcome, said = _verdict(operator, options.device)
            seconds = time.process_time() - began
            print(f"{library:24} {operator.name:28} {outcome}  {said}  ({seconds:.1f} s of processor time)", flush=True)
            if outcome != PASSED:
                return status_of(outcome)
    if not options.here:
        print(
            f"{sum(counts.values())} operators:", ", ".join(f"{count} {what}" for what, count in counts.most_common())
        )
    return int(counts[WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
