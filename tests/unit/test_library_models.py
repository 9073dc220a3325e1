"""benchmarks/library_models: what is an error, what is wrong, and the table."""

import json
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks import library_models
from benchmarks.library_model_shapes import MODELS, PACKAGES, Case
from benchmarks.library_models import error, graphs, paged, table, trained, worst
from benchmarks.outcomes import FAILED, PASSED, WRONG

EXACT = {"large": torch.full((4,), 1000.0, dtype=torch.float64), "small": torch.ones(4, dtype=torch.float64)}


def _off(name: str, by: float) -> dict[str, torch.Tensor]:
    return {other: t + by * (other == name) for other, t in EXACT.items()}


def test_an_error_is_relative_to_all_numbers() -> None:
    assert error(EXACT, EXACT) == 0
    assert error(_off("large", 10.0), EXACT) == pytest.approx(1e-2, rel=1e-3)


def test_a_wrong_tensor_is_found_beside_a_larger_one() -> None:
    factor, name = worst(_off("small", 0.2), _off("large", 1e-4), EXACT)
    assert (name, factor > library_models.FACTOR) == ("small", True)
    assert worst(_off("small", 1e-6), _off("large", 1e-4), EXACT)[0] < 2


def test_a_tensor_may_have_the_error_that_the_cpus_float32_has() -> None:
    assert worst(_off("small", 0.2), _off("small", 0.1), EXACT) == (pytest.approx(2.0), "small")


def test_nothing_is_infinitely_far_from_nan() -> None:
    assert worst(_off("small", float("nan")), EXACT, EXACT) == (float("inf"), "small")


def test_a_missing_tensor_is_an_error() -> None:
    with pytest.raises(ValueError, match="other tensors: .'small'"):
        worst({"large": EXACT["large"]}, EXACT, EXACT)


class _Rounding(nn.Module):
    """Computes in float32, whatever its weights are of."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight.to(torch.float32) / 3 * x.float()).to(x.dtype)


def _rounding(module: nn.Module, inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    y = module(**inputs)
    return y.sum(), y


def test_float64_is_float64_where_a_model_asks_for_float32_by_name() -> None:
    case = Case(_Rounding(), {"x": torch.ones(2)}, _rounding)
    found = trained(case, "cpu", torch.float64, 1).tensors
    assert found["outputs"]["output"].tolist() == [1 / 3, 1.0]
    assert found["gradients"]["weight"].tolist() == [1 / 3, 1 / 3]
    assert torch.get_default_dtype() == torch.float32


class _Broken(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        torch._dynamo.graph_break()
        return y + 1


def test_graphs_are_counted() -> None:
    for kind, count in ((nn.Linear, 1), (_Broken, 2)):
        case = Case(kind(3, 3), {"x": torch.ones(2, 3)}, lambda module, inputs: (None, module(inputs["x"])))
        assert graphs(case, "cpu") == count


@pytest.mark.parametrize(("ours", "outcome"), [(1, PASSED), (2, WRONG), (0, WRONG)])
def test_other_graphs_than_on_the_cpu_are_wrong(ours: int, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_models, "build", lambda *_: Case(nn.Linear(3, 3), {}, _rounding))
    monkeypatch.setattr(library_models, "graphs", lambda _, device: ours if device == "spirv" else 1)
    line = library_models.measured("torch", "Linear", 0)
    assert (line["outcome"], line["graphs"]) == (outcome, {"cpu": 1, "spirv": ours})
    assert (f"{ours} graphs, 1 on the CPU" in line["why"]) == (outcome == WRONG)
    assert f" {'1 graphs; 1' if ours == 1 else f'wrong: {ours} graphs, 1 on the CPU'} |" in table([line])


def _line(**more: Any) -> dict[str, Any]:
    errors = {kind: {"spirv": 1.25e-7, "cpu": 2e-7} for kind in library_models.KINDS}
    return {
        "library": "timm", "version": "1.0", "model": "ResNet", "steps": 3, "parameters": 1234,
        "outcome": PASSED, "why": "",
        "errors": errors, "fallbacks": {}, "seconds": {"first": 3.21, "last": 0.123, "cpu_last": 0.01}, **more,
    }  # fmt: skip


def test_the_table_has_errors_and_what_fell_back() -> None:
    text = table([_line(), _line(fallbacks={"aten::eig": 1, "aten::ldl_factor": 3})])
    assert text.startswith("Of 2 models, 2 passed. Operations that ran on the CPU: 4.\n\n| library |")
    assert (
        "| timm 1.0 | `ResNet` | 1,234 | 1e-07; 2e-07 | 1e-07; 2e-07 | 1e-07; 2e-07 | 0 | 3.2; 0.12; 0.01 |\n" in text
    )
    assert "| 4 (`ldl_factor` 3, `eig` 1) |" in text
    assert len({line.count("|") for line in text.splitlines()[2:]}) == 1


def test_the_table_says_what_failed() -> None:
    failed = {"library": "timm", "model": "ResNet", "outcome": FAILED, "why": "on spirv: KeyError: a | b"}
    rows = table([failed, _line(outcome=WRONG, why="gradients of head: 70 times")]).splitlines()[4:]
    assert rows[0] == "| timm | `ResNet` |  | failed: on spirv: KeyError: a \\| b |  |  |  |  |"
    assert "; wrong: gradients of head: 70 times |" in rows[1]


def test_a_page_keeps_what_is_before_the_table() -> None:
    assert paged("# Title\n\nWords.\n\nLast written on 1\n\n| old |\n", "Last written on 2", "| new |\n") == (
        "# Title\n\nWords.\n\nLast written on 2\n\n| new |\n"
    )


def test_the_status_is_1_where_a_model_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    outcomes = {"nn.LSTM": PASSED, "nn.GRU": WRONG}
    monkeypatch.setattr(
        library_models, "in_a_process", lambda library, name, *_: _line(model=name, outcome=outcomes[name])
    )
    monkeypatch.setattr(library_models, "where", lambda: "Last written on 1")
    for names, status in ((["nn.LSTM"], 0), (["nn.GRU", "nn.LSTM"], 1)):
        out = tmp_path / names[0]
        monkeypatch.setattr("sys.argv", ["library_models", *names, "--out", str(out), "--table", f"{out}.md"])
        assert library_models.main() == status
        assert sorted(json.loads(line)["model"] for line in out.read_text().splitlines()) == sorted(names)
        assert out.with_name(f"{names[0]}.md").read_text().startswith("Last written on 1\n\nOf ")


def test_what_has_passed_is_not_trained_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    out = tmp_path / "models.jsonl"
    lines = [
        _line(library="torch", model=f"nn.{name}", outcome=how) for name, how in (("LSTM", PASSED), ("GRU", FAILED))
    ]
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    trained_now = []

    def in_a_process(library: str, name: str, *_: Any) -> dict[str, Any]:
        trained_now.append(name)
        return _line(library=library, model=name)

    monkeypatch.setattr(library_models, "in_a_process", in_a_process)
    monkeypatch.setattr(library_models, "where", lambda: "Last written on 1")
    arguments = ["nn.LSTM", "nn.GRU", "--resume", "--out", str(out), "--table", str(tmp_path / "table")]
    monkeypatch.setattr("sys.argv", ["library_models", *arguments])
    assert library_models.main() == 0
    assert trained_now == ["nn.GRU"]
    assert (tmp_path / "table").read_text().count("\n| torch 1.0 | ") == 2


def test_every_model_is_of_a_library_that_is_known() -> None:
    assert {library for library, _ in MODELS} == PACKAGES.keys()
