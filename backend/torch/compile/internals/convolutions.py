"""Convolutions: the strides that torch's compiler predicts for their results, and what makes it compile again."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ....autoload.placeholder import NAME


def predicted_strides(module: Any) -> None:
    """Results have the order in memory that torch/ops/convolution.py gives them; torch predicts contiguous ones for
    devices from outside its tree."""
    aten = torch.ops.aten
    table = module.op_implementations_dict

    def predicting(original: Any, place: int) -> Any:
        """``place``: where the image is among the arguments; the weight follows it."""

        def predict(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
            results = original(fake_mode, func, *args, **kwargs)
            image = args[place] if len(args) > place else kwargs["input"]
            weight = args[place + 1] if len(args) > place + 1 else kwargs["weight"]
            if image.device.type != NAME or image.shape[0] == 0 or image.shape[1] == 0:
                return results
            from ...ops.convolution import order_of

            with fake_mode:
                order = order_of(image, weight)
                if isinstance(results, torch.Tensor):
                    return _ordered(results, order)
                return _ordered(results[0], order), _ordered(results[1], order), results[2]

        return predict

    for op in (aten.convolution.default, aten._convolution.default, aten._convolution.deprecated):
        if op in table:  # until torch 2.12 the first alone: the others are made of it
            table[op] = predicting(table[op], 0)
    table[aten.convolution_backward.default] = predicting(table[aten.convolution_backward.default], 1)


def _ordered(result: torch.Tensor | None, order: torch.memory_format) -> torch.Tensor | None:
    if result is None or order == torch.contiguous_format:
        return result
    if result.dim() == 3:  # of images of one dimension, which torch convolves as images of height 1
        return torch.empty_like(result.unsqueeze(2), memory_format=order).squeeze(2)
    return torch.empty_like(result, memory_format=order)


def pooled_gradients(module: Any) -> None:
    """Gradients of means of windows that lie partly outside (``ceil_mode``) are an operation of eager torch. Inductor
    divides those windows' by as many elements as whole ones have, on any device."""
    from torch._inductor import ir

    def lowered(original: Any, fallback: Any, grad_output: Any, *args: Any, **kwargs: Any) -> Any:
        ours = ir.get_device_type(grad_output) == NAME and args[4]
        return (fallback if ours else original)(grad_output, *args, **kwargs)

    for name in ("avg_pool2d_backward", "avg_pool3d_backward"):
        op, fallback = getattr(torch.ops.aten, name).default, getattr(module, f"fallback_{name}")
        module.lowerings[op] = functools.partial(lowered, module.lowerings[op], fallback)


def gradients(module: Any) -> None:
    """Where no template is tried, gradients are an operation of eager torch at once. Inductor's lowering ends there
    too, but fixes the sizes of images before."""
    from torch._inductor import config, ir
    from torch._inductor.lowering import lowerings

    op = torch.ops.aten.convolution_backward.default
    original = lowerings[op]

    def lowered(grad_output: Any, *args: Any, **kwargs: Any) -> Any:
        if ir.get_device_type(grad_output) != NAME or config.max_autotune or config.max_autotune_gemm:
            return original(grad_output, *args, **kwargs)
        return module.aten_convolution_backward_fallback(grad_output, *args, **kwargs)

    lowerings[op] = lowered
