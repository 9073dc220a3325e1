"""The optional items: their order, what the options that leave them out accept, and what each of them does."""

import pytest
from triton.backends.spirv import optional, passes, reference
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.compiler import SPIRVBackend
from triton.backends.spirv.reference import ITEMS, KEPT, NAMES
from triton.backends.spirv.target import target_of
from triton.backends.spirv.transforms.table import TRANSFORMS


@pytest.fixture
def backend() -> SPIRVBackend:
    """For Mesa's CPU driver."""
    return SPIRVBackend(target_of(PROFILES["lavapipe"]))


def test_each_item_has_a_name_of_its_own() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) >= KEPT


def test_what_is_needed_is_no_item() -> None:
    needed = {row.name for row in TRANSFORMS if row.needed}
    assert needed == {
        "check steps of loops",
        "lay out matrix fragments",
        "structure branches and inline calls",
        "wait where assembly waits",
    }
    assert needed.isdisjoint(NAMES)
    assert {row.name for row in TRANSFORMS} - needed <= set(NAMES)
    assert {row.item for row in passes.TTIR if row.needed} == {"inliner", "rewrite_tensor_descriptor_to_pointer"}


def test_passes_of_kernels_with_layouts_have_the_names_of_other_kernels_passes() -> None:
    assert {row.item for row in passes.GLUON if not row.needed} <= set(NAMES)


def test_items_are_in_the_order_in_which_they_run() -> None:
    order = ["coalesce", "remove_layout_conversions", "canonicalizer 2", "merge arrays", optional.WHOLE_ROUNDS]
    assert sorted(order, key=NAMES.index) == order


def test_an_item_says_what_it_is() -> None:
    said = {item.name: str(item) for item in ITEMS}
    assert said["coalesce"] == "upstream's pass 'coalesce'"
    assert said["merge arrays"] == "the rewrite 'merge arrays'"
    assert said[optional.LATE_LOADS] == "the analysis 'late loads'"


def test_the_option_without(backend: SPIRVBackend) -> None:
    assert backend.parse_options({}).without == ()
    assert backend.parse_options({"without": "coalesce"}).without == ("coalesce",)
    found = backend.parse_options({"without": ["merge arrays", "coalesce", "merge arrays"]})
    assert found.without == ("coalesce", "merge arrays")
    assert not found.has("coalesce") and found.has("cse")
    assert found.hash() != backend.parse_options({}).hash()


def test_the_option_reference(backend: SPIRVBackend) -> None:
    assert backend.parse_options({"reference": True}).without == tuple(name for name in NAMES if name not in KEPT)
    assert set(backend.parse_options({"reference": True, "without": KEPT}).without) == set(NAMES)


def test_the_environment(backend: SPIRVBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_WITHOUT", " coalesce , late loads,")
    assert backend.parse_options({}).without == ("coalesce", "late loads")
    assert backend.parse_options({"without": ()}).without == ()


def test_an_unknown_item(backend: SPIRVBackend) -> None:
    with pytest.raises(ValueError, match=r"'colaesce' is no pass, .* did you mean 'coalesce'\?"):
        backend.parse_options({"without": ("colaesce",)})


def test_what_machine_code_leaves_out_is_in_the_module() -> None:
    left_out = reference.left_out(NAMES, False)
    said = {item.name for item in ITEMS if item.kind == "the machine code's"}
    assert said >= {optional.WHOLE_ROUNDS, optional.LLVM_OPTIMISATION}
    assert optional.noted(optional.note(left_out)) == said
    assert optional.note(["coalesce", optional.VALUE_NUMBERING]) == ""
    assert optional.noted("subgroup_size=32") == frozenset()
