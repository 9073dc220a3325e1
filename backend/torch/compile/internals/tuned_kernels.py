"""Kernels of users in compiled functions, tuned by the file of TRITON_SPIRV_TUNED."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def tuned(module: Any) -> None:
    """Inductor measures the configurations of a user's autotuned kernel itself: what the file has is not measured, and
    what was measured goes into it. Inductor's own record of the best configuration is left out where there is a file:
    what it has would hide the other configurations from the file."""
    made = module.user_autotune

    def user_autotune(
        configs: Any, triton_meta: Any, filename: Any = None, inductor_meta: Any = None, **options: Any
    ) -> Any:
        from ....launching.tuned_choices import CHOICES

        if CHOICES.path() is not None:
            inductor_meta = {**(inductor_meta or {}), "force_disable_caches": True}
        return made(configs, triton_meta, filename, inductor_meta, **options)

    module.user_autotune = user_autotune
    original = module.CachingAutotuner.autotune_to_one_config

    def autotune_to_one_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        from ....launching.tuned_choices import CHOICES

        path = CHOICES.path() if self.heuristic_type is module.HeuristicType.USER_AUTOTUNE else None
        known, config = self.triton_meta.get("constants", {}), self.launchers[0].config
        names = [name for name in self.fn.arg_names if name not in config.kwargs and known.get(name, 0) is not None]
        if path is None or len(names) != len(args):
            return original(self, *args, **kwargs)
        values = dict(zip(names, args, strict=True))
        numbers = [name for name, value in values.items() if not hasattr(value, "dtype")]
        found = CHOICES.of_configs(path, self.fn, values, numbers, [one.config for one in self.launchers])
        if found is None:
            original(self, *args, **kwargs)
            CHOICES.write(path, self.fn, values, _keys(self.fn, numbers), self.launchers[0].config)
        else:
            self.launchers = [one for one in self.launchers if one.config is found]

    module.CachingAutotuner.autotune_to_one_config = autotune_to_one_config


def _keys(function: Any, numbers: Collection[str]) -> Collection[str]:
    """What the user's own autotuner of the kernel has as its key; all ``numbers``, if it is not known."""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    from ....launching.tuned_choices import CHOICES

    kernels: list[Any] = list(kernel_side_table.id_to_kernel.values())
    for kernel in kernels:
        if hasattr(kernel, "keys") and CHOICES.are_of_one(kernel, function):
            return list(kernel.keys)
    return numbers
