"""The plan by which a kernel was laid out goes to the stage that emits it, so that no module is planned twice."""

from typing import Any

import pytest
from triton._C.libtriton import ir
from triton.backends.compiler import Language
from triton.backends.spirv import stages
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.target import target_of

from tests.unit.planning.test_shared_bytes import matmul


def stages_of(backend: SPIRVBackend, m: int) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """The stages of a kernel, what its front end gives to the first of them, and its metadata."""
    context = ir.context()
    ir.load_dialects(context)
    options = backend.parse_options({"num_stages": 1})
    functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    module = matmul("fp32", m, 32, 16).make_ir(backend.target, options, functions, modules, context)
    found: dict[str, Any] = {}
    backend.add_stages(found, options, Language.TRITON)
    return found, module, {}


def test_compilations_that_take_turns_plan_each_kernel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Any] = []
    plan_kernel = stages.plan_kernel

    def counted(*arguments: Any) -> Any:
        planned.append(plan_kernel(*arguments))
        return planned[-1]

    monkeypatch.setattr(stages, "plan_kernel", counted)
    capabilities = PROFILES["generic"]
    backend = SPIRVBackend(target_of(capabilities))
    compilations = [stages_of(backend, m) for m in (16, 32)]
    modules = [module for _, module, _ in compilations]
    for stage in ("ttir", "ttgir", "spv"):
        modules = [
            found[stage](module, metadata) for (found, _, metadata), module in zip(compilations, modules, strict=True)
        ]
        if stage == "ttgir":
            kernels = len(planned)
    assert modules[0] != modules[1]
    assert len(planned) == kernels >= 2


def test_a_module_that_was_changed_in_between_is_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[str] = []
    plan = stages.plan
    monkeypatch.setattr(stages, "plan", lambda *arguments: plans.append("again") or plan(*arguments))
    capabilities = PROFILES["generic"]
    backend = SPIRVBackend(target_of(capabilities))
    found, module, metadata = stages_of(backend, 16)
    module = found["ttgir"](found["ttir"](module, metadata), metadata)
    first = found["spv"](module, metadata)
    assert plans == []
    assert found["spv"](module, metadata) == first and plans == ["again"]
