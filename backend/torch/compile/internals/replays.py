"""mode="reduce-overhead": Inductor leaves graphs to this backend, which captures and replays launches."""

from __future__ import annotations

from typing import Any

from ....autoload.placeholder import NAME


def graphs(module: Any) -> None:
    """Inductor leaves graphs to replay(): its own are CUDA's."""
    original = module.check_multiple_devices_or_any_cpu_nodes

    def check(device_node_mapping: Any) -> Any:
        if any(device.type == NAME for device in device_node_mapping):
            return module.format_default_skip_message(
                f"the device '{NAME}': Inductor's graphs are CUDA's; its launches are captured by "
                "triton.backends.spirv.runtime.Graph instead"
            )
        return original(device_node_mapping)

    module.check_multiple_devices_or_any_cpu_nodes = check


def replay(module: Any) -> None:
    """mode="reduce-overhead" captures the launches of compiled functions."""
    original = module.CompiledFxGraph.post_compile

    def post_compile(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        from torch._inductor import config

        if config.triton.cudagraphs and set(self.device_types) == {NAME}:
            from ..graphs import Replayed

            static, mutated = self.fx_kwargs["static_input_idxs"] or (), self.mutated_input_idxs
            self.current_callable = Replayed(self.current_callable, static, mutated, self.fx_kwargs["is_backward"])

    module.CompiledFxGraph.post_compile = post_compile
