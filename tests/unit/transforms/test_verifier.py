"""What a rewrite may leave wrong is found, and named with the operation and the rewrite."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.transforms.table import TRANSFORMS, Stage, Transform, transform
from triton.backends.spirv.transforms.verifier import InvalidTTGIR, verify
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, LinearEncoding
from triton.backends.spirv.ttgir.ir import Block, DenseAttr, Module, Operation
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import IntegerType, TensorType

MODULE = """
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #row>
    %s = tt.splat %n : i32 -> tensor<128xi32, #row>
    %a = arith.addi %i, %s : tensor<128xi32, #row>
    %t = arith.constant dense<1.0> : tensor<16x16xf32, #wide>
    %u = "tt.reduce"(%t) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = arith.addf %l, %r : f32
      tt.reduce.return %m : f32
    }) : (tensor<16x16xf32, #wide>) -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #wide}>>
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %e = arith.addi %a, %s : tensor<128xi32, #row>
    cf.br ^bb2
  ^bb2:
    %f = arith.addi %a, %a : tensor<128xi32, #row>
    tt.return
  }
}
"""

OTHER = BlockedEncoding((1,), (8,), (4,), (0,))
I32 = IntegerType(32)


def named(module: Module) -> dict[str, Operation]:
    """The operations by the names of their results."""
    return {operation.results[0].name: operation for operation in module.walk() if operation.results}


def _replace_operand(one: dict[str, Operation], user: str, old: str, new: str) -> None:
    one[user].replace_operand(one[old].result, one[new].result)


def _swap(one: dict[str, Operation]) -> None:
    operations = one["s"].block.operations  # type: ignore[union-attr]
    operations[1], operations[2] = operations[2], operations[1]


def _retype(one: dict[str, Operation], name: str, type_: TensorType) -> None:
    one[name].result.type = type_


def _end_early(one: dict[str, Operation]) -> None:
    block = one["a"].block
    assert block is not None
    block.operations.append(block.operations.pop(0))


FAULTS: dict[str, tuple[Callable[[dict[str, Operation]], object], str]] = {
    "a use that is not known": (lambda one: one["i"].result.uses.clear(), "'tt.make_range': the users"),
    "a user that is gone": (lambda one: one["i"].result.uses.append(one["t"]), "'tt.make_range': the users"),
    "another block": (lambda one: setattr(one["a"], "block", Block()), "belongs to another block"),
    "another region": (lambda one: setattr(one["e"].block, "parent", None), "belongs to another region"),
    "another owner": (lambda one: setattr(one["m"].result, "index", 1), "'arith.addf': a result"),
    "another parent": (lambda one: setattr(one["u"].regions[0], "parent", one["a"]), "'tt.reduce': a region"),
    "segments": (lambda one: setattr(one["a"], "segments", (1,)), "'arith.addi': segments"),
    "an operation behind the end": (_end_early, "'cf.cond_br': it is not at the end"),
    "a use before the definition": (_swap, "'arith.addi': it uses a value that is not defined before it"),
    "a use in a block that is not dominated": (
        lambda one: _replace_operand(one, "f", "a", "e"),
        "'arith.addi': it uses a value that is not defined before it",
    ),
    "a type that does not follow": (
        lambda one: _retype(one, "a", TensorType((64,), I32, one["a"].result.type.encoding)),  # type: ignore[attr-defined]
        "'arith.addi': 'result' has the type",
    ),
    "a range of another extent": (
        lambda one: one["i"].attributes.update(end=64),
        "'tt.make_range': it does not go with the types",
    ),
    "a constant of another type": (
        lambda one: one["t"].attributes.update(value=DenseAttr(TensorType((16, 16), I32), (1,), True)),
        "'arith.constant': it does not go with the types",
    ),
    "no encoding": (lambda one: _retype(one, "s", TensorType((128,), I32)), "'tt.splat': .* has no encoding"),
    "an encoding for fewer lanes": (
        lambda one: _retype(one, "s", TensorType((128,), I32, BlockedEncoding((4,), (4,), (4,), (0,)))),
        "'tt.splat': the encoding of .* is not one of 4 subgroups of 8",
    ),
    "another encoding than follows": (
        lambda one: _retype(one, "u", TensorType((16,), one["m"].result.type, OTHER)),
        "'tt.reduce': tensor<16xf32> has another encoding than follows",
    ),
    "another end": (lambda one: setattr(one["m"].block.terminator, "name", "scf.yield"), "cannot end a region"),  # type: ignore[union-attr]
    "a hint for another number of dimensions": (
        lambda one: one["t"].attributes.update({"tt.contiguity": DenseAttr(TensorType((1,), I32), (16,), True)}),
        "'arith.constant': the hint 'tt.contiguity' has not one number for each of 2 dimensions",
    ),
    "a missing attribute": (lambda one: one["i"].attributes.pop("start"), "it lacks the attribute 'start'"),
}


def test_a_module_as_upstream_gives_it_is_valid() -> None:
    verify(parse_module(MODULE))


def test_registers_may_hold_one_element_more_often_where_the_element_counts() -> None:
    """As where upstream's layouts of a column and of its tile are one, and fragments replace the tile's."""
    module = parse_module(
        """
        #column = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
        #tile = #ttg.linear<{register = [[0, 1]], lane = [[0, 0], [0, 0], [1, 0]], warp = [], block = []}>
        module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32} {
          tt.func public @k() {
            %c = arith.constant dense<1> : tensor<2x1xi32, #column>
            %w = tt.broadcast %c : tensor<2x1xi32, #column> -> tensor<2x2xi32, #tile>
            tt.return
          }
        }
        """
    )
    verify(module)
    wide = named(module)["w"].result
    assert isinstance(wide.type, TensorType) and isinstance(wide.type.encoding, LinearEncoding)
    turned = replace(wide.type.encoding, lane=((0, 0), (1, 0), (0, 0)))
    wide.type = replace(wide.type, encoding=turned)
    with pytest.raises(InvalidTTGIR, match="'tt.broadcast': tensor<2x1xi32> has another encoding than follows"):
        verify(module)


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(fault: Callable[[dict[str, Operation]], object], said: str) -> None:
    module = parse_module(MODULE)
    fault(named(module))
    with pytest.raises(InvalidTTGIR, match=said + ".*, after the rewrite “it”"):
        verify(module, "it")


def test_it_runs_behind_each_rewrite_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(module: Module, device: Capabilities, options: Options) -> bool:
        named(module)["i"].result.uses.clear()
        return True

    rows = [Transform("spoil", Stage.PLANNING, spoil)]
    monkeypatch.setenv("TRITON_SPIRV_VERIFY", "0")
    assert transform(parse_module(MODULE), rows, PROFILES["lavapipe"], Options())
    monkeypatch.setenv("TRITON_SPIRV_VERIFY", "1")
    with pytest.raises(InvalidTTGIR, match="after the rewrite “spoil”"):
        transform(parse_module(MODULE), rows, PROFILES["lavapipe"], Options())


def test_it_runs_in_tests(pytestconfig: pytest.Config) -> None:
    from triton.backends.spirv.settings import VERIFY

    assert VERIFY.get() and len({row.name for row in TRANSFORMS}) == len(TRANSFORMS)
