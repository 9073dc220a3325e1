"""Inductor's templates of matrix products, convolutions and attention: which configurations they are tried with."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from ....autoload.placeholder import NAME
from ...device.as_cuda import has_cuda
from .hook import first_module

#: Where torch has its tables of configurations; until 2.14 they had the other name.
MODULE, FORMER_MODULE = "torch._inductor.heuristics.template.triton", "torch._inductor.template_heuristics.triton"

#: The tables of choices.py, once torch has imported its own.
_tables: list[Any] = []


def templates(module: Any) -> None:
    """Block sizes of the templates of matrix products, convolutions and attention."""
    from .. import choices
    from ..interface import properties_of

    class SPIRVConfigHeuristic(module.BaseConfigHeuristic):
        """The tables of choices.py."""

        def __init__(self) -> None:
            super().__init__()
            every = [module.GemmConfig(g.block_m, g.block_n, g.block_k, 1, g.num_warps) for g in choices.GEMMS]
            self.mm_configs = self.exhaustive_configs = self.extra_mm_configs = every
            self.int8_mm_configs = self.scaled_mm_configs = self.mixed_mm_configs = every
            self.mm_plus_mm_configs = every
            self.conv_configs = [
                module.ConvConfig(g.block_m, g.block_n, g.block_k, 1, g.num_warps) for g in choices.GEMMS
            ]

        def preprocess_mm_configs(self, m: Any, n: Any, k: Any, configs: Any, dtype_size: int = 0, **rest: Any) -> Any:
            device = properties_of()

            def gemm(config: Any) -> choices.Gemm:
                return choices.Gemm(config.block_m, config.block_n, config.block_k, config.num_warps)

            fitting = [config for config in configs if choices.fits(gemm(config), device, dtype_size or 4)]
            rows, columns = hint(m), hint(n)
            if rows is not None and columns is not None:
                fitting = choices.occupying(
                    fitting, lambda config: (config.block_m, config.block_n), rows, columns, device
                )
            return super().preprocess_mm_configs(m, n, k, fitting or configs[:1], dtype_size=dtype_size, **rest)

        def get_flex_attn_fwd_configs(self, head_dim: int, *queries_and_type: Any) -> list[Any]:
            dtype = queries_and_type[-1]  # torch 2.13 does not give the number of queries
            rows = choices.flex_forward(properties_of(), head_dim, dtype.itemsize, autotune())
            return [module.FlexConfig(m, n, 1, warps) for m, n, warps in rows]

        def get_flex_attn_bwd_configs(self, head_dim: int, dtype: torch.dtype) -> list[Any]:
            rows = choices.flex_backward(properties_of(), head_dim, dtype.itemsize, autotune())
            return [module.FlexBwDConfig(*blocks, 1, warps) for blocks, warps in rows]

        def get_flex_decode_configs(self, head_dim: int, dtype: torch.dtype) -> list[Any]:
            rows = choices.flex_decode(properties_of(), head_dim, dtype.itemsize, autotune())
            return [module.FlexDecodeConfig(n, 1, warps) for n, warps in rows]

    def autotune() -> bool:
        from torch._inductor import config

        return bool(config.max_autotune)

    def hint(size: Any) -> int | None:
        try:
            return int(size)
        except (TypeError, ValueError):
            return None

    _tables.append(SPIRVConfigHeuristic)
    register = module.register_template_heuristic
    plain = type("SPIRVMMHeuristic", (module.MMTemplateConfigMixin, SPIRVConfigHeuristic), {})
    added = type("SPIRVAddMMHeuristic", (module.AddMMConfigMixin, plain), {})
    twice = type("SPIRVMMPlusMMHeuristic", (module.MMPlusMMTemplateConfigMixin, SPIRVConfigHeuristic), {})
    int8 = type("SPIRVInt8MMHeuristic", (module.INT8MMTemplateConfigMixin, SPIRVConfigHeuristic), {})
    for template, names, heuristic in (
        (module.mm_template, (None,), plain),
        (module.bmm_template, (None,), plain),
        (module.mm_template, ("addmm",), added),
        (module.bmm_template, ("baddbmm",), added),
        (module.mm_template, ("int_mm",), int8),
        (module.mm_plus_mm_template, (None,), twice),
    ):
        for name in names:
            register(template.uid, NAME, op_name=name)(heuristic)


def choices(module: Any) -> None:
    original = module.InductorChoices.get_config_heuristics

    def get_config_heuristics(self: Any, device_type: str | None = "cuda") -> Any:
        if device_type == NAME and (place := first_module(MODULE, FORMER_MODULE)):
            import_module(place)
        return _tables[0]() if device_type == NAME and _tables else original(self, device_type)

    module.InductorChoices.get_config_heuristics = get_config_heuristics


def flex_attention(module: Any) -> None:
    original = module._validate_device

    def validate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != NAME:
            original(query, key, value)

    module._validate_device = validate


def flex_decoding(module: Any) -> None:
    """Few queries with many keys: torch asks CUDA into how many parts the keys are split."""
    original = module.get_split_k

    def get_split_k(batch: Any, heads: Any, keys: Any) -> Any:
        if has_cuda() or torch.xpu.is_available():
            return original(batch, heads, keys)
        from .. import choices
        from ..interface import properties_of

        return choices.flex_splits(properties_of(), int(batch * heads))

    module.get_split_k = get_split_k


def block_pointers(module: Any) -> None:
    """Until torch 2.12 the kernel for few queries is written with block pointers, which Triton 3.9 has no longer: they
    go to the kernel for many."""
    original = module._use_flex_decoding

    def use_flex_decoding(query: Any, *args: Any, **kwargs: Any) -> bool:
        return query.get_device().type != NAME and bool(original(query, *args, **kwargs))

    module._use_flex_decoding = use_flex_decoding
