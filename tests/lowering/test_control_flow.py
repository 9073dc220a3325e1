"""Control flow: what SPIR-V it becomes."""

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.errors import UnsupportedOperation

from tests.lowering.harness import compile_body


def nested(depth: int) -> str:
    """A store under ``depth`` branches."""
    return (
        "%c = arith.cmpi sgt, %n, %n : i32\n"
        + "scf.if %c {\n" * depth
        + "tt.store %p, %n : !tt.ptr<i32>\n"
        + "}\n" * depth
    )


@pytest.mark.parametrize(("profile", "limit"), [("lavapipe", 72), ("nvidia-hopper", 120)])
def test_nesting_that_the_driver_does_not_follow_is_refused(profile: str, limit: int) -> None:
    compile_body(nested(limit), "%p: !tt.ptr<i32>, %n: i32", capabilities=PROFILES[profile])
    with pytest.raises(UnsupportedOperation, match=f"nested more than {limit} deep here; .*merge their conditions"):
        compile_body(nested(limit + 1), "%p: !tt.ptr<i32>, %n: i32", capabilities=PROFILES[profile])
