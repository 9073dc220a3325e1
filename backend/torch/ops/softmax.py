"""softmax and log_softmax with their backward formulas: one kernel each of rows that fit it, else reductions and
elementwise kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..device.tensor_memory import empty
from . import rows
from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .pointwise import of_type
from .reducing import MAX, SUM, reduce
from .strided_shapes import resized

_SOFTMAX = Body.of("tl.exp(self - top) * (1 / total)")
_LOG_SOFTMAX = Body.of("self - top - libdevice.log(total)")
_SOFTMAX_BACKWARD = Body.of("(grad - total) * output")
_LOG_SOFTMAX_BACKWARD = Body.of("grad - tl.exp(output) * total")
#: A NaN makes the total NaN, whatever the greatest number is.
_ROWS = "top = fn.row_greatest(self, mask)\ntotal = fn.row_sum(tl.exp(self - top), mask)\n"


def _forward(body: Body) -> Callable[..., torch.Tensor]:
    def softmax(self: torch.Tensor, dim: int, half_to_float: bool, *, out: torch.Tensor | None = None) -> torch.Tensor:
        if not self.dtype.is_floating_point or not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
            raise OnHost("numbers that are not floats, or no such dimension")
        kind = torch.float32 if half_to_float else self.dtype
        out = empty(self.shape, dtype=kind, device=self.device) if out is None else of_type(out, kind, self.shape)
        compute = computed_in(self.dtype)
        if self.dim() and rows.fits(self.shape, (dim,)):
            rows.run(_ROWS + body.text, {"out": out}, {"self": self}, (dim,), compute)
            return out
        top = reduce("self", MAX, {"self": self}, (dim,), dtype=compute, keepdim=True)
        powers = {"self": self, "top": top}
        total = reduce("tl.exp(self - top)", SUM, powers, (dim,), dtype=compute, keepdim=True)
        run(body, {"out": out}, {**powers, "total": total}, compute)
        return out

    return softmax


def _backward(text: str, body: Body) -> Callable[..., torch.Tensor]:
    def softmax_backward(
        grad_output: torch.Tensor,
        output: torch.Tensor,
        dim: int,
        input_dtype: torch.dtype,
        out: torch.Tensor | None = None,
        grad_input: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if grad_output.dtype != output.dtype:
            raise OnHost("a gradient of another type")
        result = out if out is not None else grad_input
        if result is None:
            raise OnHost("no output")
        resized(result, output.shape)
        compute = computed_in(output.dtype)
        operands = {"grad": grad_output, "output": output}
        if output.dim() and rows.fits(output.shape, (dim,)):
            rows.run(f"total = fn.row_sum({text}, mask)\n{body.text}", {"out": result}, operands, (dim,), compute)
            return result
        total = reduce(text, SUM, operands, (dim,), dtype=compute, keepdim=True)
        run(body, {"out": result}, {**operands, "total": total}, compute)
        return result

    return softmax_backward


TABLE: dict[str, Callable[..., Any]] = {
    "_softmax _softmax.out": _forward(_SOFTMAX),
    "_log_softmax _log_softmax.out": _forward(_LOG_SOFTMAX),
    "_softmax_backward_data.out": _backward("grad * output", _SOFTMAX_BACKWARD),
    "_log_softmax_backward_data.out": _backward("grad", _LOG_SOFTMAX_BACKWARD),
}
