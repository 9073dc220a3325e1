"""``torch.autocast("spirv")``: which operations compute in half precision, which in single, as torch has it for other
devices (ATen/autocast_mode.h)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from ...autoload.versions import release
from ...runtime import NAME
from . import native_kernels
from .native_module import torch_native

_KEY = "AutocastPrivateUse1"
_aten = torch.ops.aten

#: Computed in the type of the autocast.
_LOWER = """
    _convolution _convolution.deprecated conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
    conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm
    bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell scaled_dot_product_attention
"""
#: Computed in single precision.
_SINGLE = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
    pow.Scalar softplus layer_norm native_layer_norm group_norm frobenius_norm.dim nuclear_norm
    nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss
    kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
    triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
    upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
    _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
    upsample_bicubic2d _upsample_bicubic2d_aa linalg_matrix_sqrth
"""
if release(torch.__version__) >= release("2.12"):
    _SINGLE += " rms_norm"
#: Told to give single precision, where the call names no type: the conversion is a part of the operation.
_SINGLE_RESULT = """
    prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
    linalg_matrix_norm.str_ord sum sum.dim_IntList
"""
#: Computed in the widest type of the arguments.
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"


def _is_cast(value: Any) -> bool:
    """Whether autocast may give the argument another type: not float64, which a program asks for on purpose."""
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == NAME
        and value.dtype.is_floating_point
        and value.dtype != torch.float64
    )


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, (list, tuple)):
        items = [_cast(item, dtype) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value.to(dtype) if _is_cast(value) and value.dtype != dtype else value


def _lower(*_: Any) -> torch.dtype:
    return torch.get_autocast_dtype(NAME)


def _single(*_: Any) -> torch.dtype:
    return torch.float32


def _widest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype:
    values = (*args, *kwargs.values())
    flat = [leaf for value in values for leaf in (value if isinstance(value, (list, tuple)) else (value,))]
    singles = any(_is_cast(leaf) and leaf.dtype == torch.float32 for leaf in flat)
    return torch.float32 if singles else torch.get_autocast_dtype(NAME)


@cache
def _shared() -> Any:
    return torch_native().CastingContext(
        exchange=torch.Tensor.__dlpack_c_exchange_api__,
        tensor_types=(torch.Tensor, torch.nn.Parameter),
        types=(torch.float16, torch.bfloat16, torch.float32),
        key=getattr(torch._C.DispatchKey, _KEY),
        excluded=torch._C._dispatch_tls_is_dispatch_key_excluded,
        exclude=torch._C._dispatch_tls_set_dispatch_key_excluded,
        cast=_cast,
    )


def _naming_result(op: Any) -> Callable[..., Any]:
    without = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(without):
            if _is_cast(args[0]) and kwargs.get("dtype") is None and not _names_type(args):
                kwargs["dtype"] = torch.float32
            return op(*args, **kwargs)

    return run


def _names_type(args: tuple[Any, ...]) -> bool:
    return any(isinstance(value, torch.dtype) for value in args)


def _refused(*_: Any, **__: Any) -> Any:
    raise RuntimeError(
        "binary_cross_entropy is not safe under torch.autocast, as the logarithm of a half-precision number loses what "
        "the gradient needs: use binary_cross_entropy_with_logits, or leave the autocast with "
        f'torch.autocast("{NAME}", enabled=False) for it'
    )


def _overloads(names: str) -> list[tuple[str, Any]]:
    """(name, overload) of those that this torch has."""
    found = []
    for name in names.split():
        base, _, overload = name.partition(".")
        op = getattr(getattr(_aten, base, None), overload or "default", None)
        if op is not None:
            found.append((name, op))
    return found


def enter_autocast() -> tuple[torch.library.Library, ...]:
    """Enter what the operations do under an autocast of this device. The libraries are to be kept."""
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(torch.library.fallthrough_kernel, _KEY)
    aten = torch.library.Library("aten", "IMPL")
    to = torch_native().CastTo
    for names, choose, cast_to in (
        (_LOWER, _lower, to.LOWER),
        (_SINGLE, _single, to.SINGLE),
        (_WIDEST, _widest, to.WIDEST),
    ):
        for name, op in _overloads(names):
            casting = _shared().casting(op._op, choose)
            operation = None if native_kernels.takes_integers(op) else native_kernels.operation(op)
            key = getattr(torch._C.DispatchKey, _KEY)
            if operation is None or not torch_native().enter_casting(operation, cast_to, int(key), casting):
                aten.impl(name, casting, _KEY)
    for name, op in _overloads(_SINGLE_RESULT):
        aten.impl(name, _naming_result(op), _KEY)
    aten.impl("binary_cross_entropy", _refused, _KEY)
    return rest, aten
