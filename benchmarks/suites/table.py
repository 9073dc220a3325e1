"""Which tests of which libraries are run, where they are, what is left out, and which failures are not this project's.

A row of ``known`` is an expression that ``test: message`` is searched for, whose the failure is, and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Whose a failure is that this project does not mend: the library's or its test's, or a limit that docs/limits.md says.
THEIRS, LIMIT = "theirs", "limit"
#: What is said of a test that was ended.
OUT_OF_TIME = "the limit of processor time"
_TYPE = 'it compares a tensor\'s device.type with "cuda"'
_NOT_TUNED = "it expects tuning, which the run leaves out"


@dataclass(frozen=True)
class Suite:
    """``package`` and ``version``: as pip installs them. ``repository``: (owner/name, tag) of the tests, where the
    source distribution has none. ``files``: patterns of the test files. ``without``: files that test no kernel of
    Triton's, by the reason. ``needs``: what pip installs beside the package. ``environment``: variables of the run."""

    package: str
    version: str
    files: tuple[str, ...]
    repository: tuple[str, str] = ("", "")
    without: dict[str, str] = field(default_factory=dict)
    known: tuple[tuple[str, str, str], ...] = ()
    needs: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """What the unpacked sources are called."""
        return f"{self.package.replace('-', '_')}-{self.version}"


SUITES = (
    Suite(
        "liger-kernel",
        "0.8.5",
        ("test/transformers/test_*.py",),
        without={
            "how models of transformers are patched": "auto_model monkey_patch trainer_integration transformers utils",
            "torch's own flex attention": "flex_attention",
        },
        known=(
            (
                "'NoneType' object has no attribute 'pooler_output'",
                THEIRS,
                "the model of the installed transformers fails",
            ),
            ("which means the projection rounded its logits", LIMIT, _TYPE),
        ),
        needs=("transformers",),
    ),
    Suite(
        "helion",
        "1.4.0",
        ("test/test_*.py",),
        ("pytorch/helion", "v1.4.0"),
        without={
            "other backends than Triton": """
                metal metal_mpp_graph_transform pallas pallas_load_store pallas_worklist cute_backend cute_device_state
                cute_fuse_fp8_pair_decode cute_fuse_two_pass_loads cute_hoist_loop_invariant_recip
                cute_hoist_warp_reduce cute_hoist_warp_reduce_unit cute_layout cute_lowerings
                cute_merge_sibling_v_loops cute_online_to_3pass
                cute_pipeline_inner_loads cute_softmax_perf cute_tile_loop_vec_hoist cute_warp_per_row_layout tileir
                amd_cdna deep_ab_staging benchmarking
            """,
            "several GPUs": "distributed examples_dist",
        },
        known=(
            ("Block pointers have been removed", THEIRS, "it asks for block pointers, which Triton 3.9 no longer has"),
            ("TODO: implement for other devices|test_hardware_detection_list_of_tensors", LIMIT, _TYPE),
            ("test_store_binary_only_set_during_autotuning|test_to_triton_code_optional_config", LIMIT, _NOT_TUNED),
        ),
        needs=("filecheck", "psutil", "rich", "scikit-learn", "expecttest"),
        environment={"HELION_AUTOTUNE_EFFORT": "none"},
    ),
    Suite("conch-triton-kernels", "1.3", ("tests/*_test.py",)),
    Suite("cut-cross-entropy", "25.1.1", ("tests/test_*.py",)),
)
