"""Which tests of which libraries are run, where they are, what is left out, and which failures are not this project's.

A row of ``known`` is an expression that ``test: message`` is searched for, whose the failure is, and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Whose a failure is that this project does not mend: the library's or its test's, or a limit that docs/limits.md says.
THEIRS, LIMIT = "theirs", "limit"
#: What is said of a test that was ended.
OUT_OF_TIME = "the limit of processor time"
_TYPE = 'it compares a tensor\'s device.type with "cuda": as_cuda(types=True)'
_BLOCKS = "it asks for block pointers, which Triton 3.9 no longer has"
_NO_BLOCKS = ("Block pointers have been removed", THEIRS, _BLOCKS)
_EXTENSION = "it calls the library's compiled extension for CUDA"
_NOT_BUILT = "it needs what the library's build for a GPU adds"
_CUDA_ALONE = "it calls an operation that torch has for CUDA alone"
_MEMORY = "it takes more memory than a test may"
_NO_MEMORY = r".*(is out of memory\. |can't allocate memory: you tried|Unable to allocate .* for an array)"
#: What is known of tests of any library; the second of those whose launches are compared, with copies in float64.
OF_ALL = (
    (OUT_OF_TIME, LIMIT, "it takes more processor time than a test may"),
    (r"MemoryError: .*\((differences|host_copies|(from)?numeric)\.py", LIMIT, _MEMORY),
)
_LOADS = "it loads a model"
_NOT_TUNED = "it expects tuning, which the run leaves out"


@dataclass(frozen=True)
class Suite:
    """``package`` and ``version``: as pip installs them. ``repository``: (owner/name, tag) of the library and tests,
    where no source distribution has them, and ``inside`` its folder. ``files``: patterns of the test files; each has
    ``text`` in it. ``without``: files that test no kernel of Triton's, by the reason. ``needs``: what pip installs for
    them. ``path``: folders of the sources that modules are imported from. ``absent``: compiled modules, empty in the
    run. ``arguments``: of pytest, as the tests define them. ``environment``: variables of the run. ``largest``: how
    many elements of a tensor a test's name may state, if not 0 (recorder.py). ``types``: whether ``device.type`` is
    CUDA's, too. ``first``: what is changed in the library before its tests, as statements, and why."""

    package: str
    version: str
    files: tuple[str, ...]
    repository: tuple[str, str] = ("", "")
    without: dict[str, str] = field(default_factory=dict)
    known: tuple[tuple[str, str, str], ...] = ()
    needs: tuple[str, ...] = ()
    inside: str = ""
    text: str = ""
    path: str = "."
    absent: str = ""
    arguments: str = ""
    largest: int = 0
    types: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    first: tuple[str, str] = ("", "")

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
            ("test_sparsemax_large_row_offset" + _NO_MEMORY, LIMIT, _MEMORY),
            # Two programs (one without CUDA's type) are up to 0.0008 away from float64, where it allows 0.0004.
            (
                r"test_poly_norm\.py::test_correctness\[dtype0.* mismatched elements: 1 ",
                LIMIT,
                "its programs, as many as multiprocessors, each add up more rows in float32 than on a GPU",
            ),
            # Its gradients of v_proj and torch's are equally far from float64's: 0.18 of 46, of which 0.06 are two
            # units in the last place of terms that cancel.
            (
                r"test_fused_neighborhood_attention_correctness\[dtype1-0\.05-0\.05-False-2-32-128-4-7.* elements: 2 ",
                THEIRS,
                "its sums in bfloat16 cancel, and neither side is nearer to float64",
            ),
        ),
        needs=("transformers",),
        path="src .",
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
            _NO_BLOCKS,
            ("Vulkan cannot promise that a whole grid is resident", LIMIT, "it asks for a cooperative grid"),
            ("test_config_fragment1", LIMIT, "it expects configurations for more than one multiprocessor"),
            # 18 of its 20 configurations do.
            ("test_autotune_continues_when_accuracy_check_crashes", THEIRS, _BLOCKS),
            (
                "test_run_ref_matches_compiled_for_multiple_implicit_rng_callsites",
                LIMIT,
                "it expects that drawing two numbers moves the generator as far as drawing one, as CUDA's does",
            ),
            (
                "test_store_binary_only_set_during_autotuning|test_to_triton_code_optional_config|test_remote_put_payload",
                LIMIT,
                _NOT_TUNED,
            ),
        ),
        needs=("filecheck", "psutil", "rich", "scikit-learn", "expecttest"),
        environment={"HELION_AUTOTUNE_EFFORT": "none"},
        types=True,
    ),
    Suite(
        "flash-linear-attention",
        "0.5.2",
        ("tests/ops/test_*.py", "tests/modules/test_*.py", "tests/layers/test_*.py", "tests/models/test_*.py"),
        ("fla-org/flash-linear-attention", "v0.5.2"),
        without={"other compilers of kernels": "dplr_tilelang"},
        needs=("transformers", "einops"),
        largest=1 << 17,
        known=(
            ("Only support CUDA/NPU tensors", LIMIT, _TYPE),
            # 0.0051 off with each step rounded; it allows 0.0050, and passes since the sum alone is.
            (
                "test_channel_mixing_gradients",
                LIMIT,
                "products in bfloat16 were rounded before they were added, until 2026-12",
            ),
            # With other random numbers they are 2,000 times as large, and as near to float64 as the reference's.
            (r"test_attnres\[L15-B1-T15-D4096.* dq diff", THEIRS, "its gradients cancel, by more than float32 has"),
        ),
    ),
    Suite(
        "flag-gems",
        "3.0",
        ("tests/test_*.py",),
        ("FlagOpen/FlagGems", "v3.0"),
        needs=("scipy", "pyyaml"),
        known=(
            (
                r"pow_scalar_tensor.*float32, triton\.language\.float16\)",
                THEIRS,
                "it gives fp16 to a function of libdevice, of which Triton 3.9 converts nothing for CUDA, either",
            ),
            _NO_BLOCKS,
            (
                r"\(triton\.language\.float32, triton\.language\.int64\) .*pow_func",
                THEIRS,
                "it asks CUDA's libdevice for a power of float32 and int64, which it does not have",
            ),
            (
                r"argument 'DUMMY' \(i32\) was not passed",
                THEIRS,
                "it gives compiled kernels their arguments as Triton 3.3 alone takes them",
            ),
            (
                "test_concat_and_cache_mla.*attribute 'device' do not match",
                THEIRS,
                "it compares tensors of two devices where its reference is on the CPU",
            ),
        ),
        path="src .",
        arguments="--ref cpu",
        types=True,
        environment={"GEMS_VENDOR": "nvidia"},
        first=(
            """
            import os, tempfile
            os.environ["FLAGGEMS_CACHE_DIR"] = tempfile.mkdtemp()
            from flag_gems.utils.codegen_config_utils import get_codegen_config
            get_codegen_config().prefer_block_pointer = False
            """,
            "its generator of elementwise kernels makes block pointers, which Triton 3.9 no longer has, and it reads "
            "no choices that were tuned with 3.9",
        ),
    ),
    Suite(
        "triton-kernels",
        "main",
        ("tests/test_*.py", "tests/*/test_*.py"),
        ("triton-lang/triton-cpu", "main"),
        inside="python/triton_kernels",
        without={
            "several GPUs": "distributed",
            "layouts of other devices, whose instructions they need": "layout_cdna4 layout_gfx1250 layout_blackwell",
        },
        known=(
            ("neither CUDA nor ROCm detected", LIMIT, "it measures the vendor's own library of products"),
            (r"opt_flags\.py:517", LIMIT, "it has settings for the back ends of Triton that it names alone"),
            ("No module named 'triton._C.libproton'", LIMIT, "it measures with Proton"),
        ),
        needs=("matplotlib",),
    ),
    Suite(
        "bitsandbytes",
        "0.50.1",
        ("tests/test_*.py",),
        ("bitsandbytes-foundation/bitsandbytes", "0.50.1"),
        without={"libraries of CUDA": "cuda_setup_evaluator", "models from the network": "generation"},
        known=(
            ("CUDA SETUP ERROR: Missing dependency", LIMIT, _EXTENSION),
            ("test_4bit_quant_large" + _NO_MEMORY, LIMIT, _MEMORY),
            ("test_fsdp_state_dict_save_4bit", LIMIT, "it starts a program, which is not inside `as_cuda()`"),
            (r"FixtureLookupError: \('device'", THEIRS, "it asks for a fixture that the tests do not have"),
            (
                "TestNonContiguousInputs::test_quantize_4bit_.*Tensor-likes are not close",
                THEIRS,
                "it leaves out the devices whose kernels are Triton's, since these take contiguous tensors alone",
            ),
        ),
        needs=("einops", "lion-pytorch"),
        environment={"BNB_TEST_DEVICE": "cuda"},
        types=True,
        absent="bitsandbytes.backends.cuda.ops",
        first=(
            """
            import torch
            from bitsandbytes import _ops
            _ops.register_kernel = lambda name, device: torch.library.register_kernel(name, "cuda")
            from bitsandbytes.backends.xpu import ops
            """,
            "on CUDA none of its tests reaches a kernel of Triton's, as it has compiled ones: those that it has for "
            "another vendor's devices are registered in their place, and 357 of 468 tests reach them",
        ),
    ),
    Suite(
        "torchao",
        "0.18.0",
        ("test/**/test_*.py",),
        ("pytorch/ao", "v0.18.0"),
        text="triton",
        without={"several GPUs": "fsdp2 dtensor fsdp2_tp nvfp4_parallel nvfp4_fsdp2_tp a2a_dispatch mxfp8_a2a"},
        known=(
            ("GPTQ only supports CUDA currently|test_benchmark_model_cuda", LIMIT, _TYPE),
            ("Could not run 'aten::_convert_weight_to_int4pack'", LIMIT, _CUDA_ALONE),
        ),
        needs=("parameterized", "expecttest", "tabulate", "transformers"),
    ),
    Suite(
        "mamba-ssm",
        "2.3.2.post1",
        ("tests/ops/test_*.py", "tests/ops/triton/test_*.py", "tests/test_determinism.py", "tests/modules/test_*.py"),
        ("state-spaces/mamba", "v2.3.2.post1"),
        known=(
            (
                "'selective_scan_cuda' has no attribute|causal_conv1d_cuda is not available|ssd_combined",
                LIMIT,
                _EXTENSION,
            ),
            (r"test_mamba3_siso_(combined_(batched|varlen)|step)\b" + _NO_MEMORY, LIMIT, _MEMORY),
            ("installed the necessary dependencies, such as TileLang", THEIRS, "it needs another compiler, TileLang"),
            (
                r"test_selective_state_update_with_batch_indices\[2048-64-True-itype2\]",
                THEIRS,
                "its reference in bfloat16 is further from the values in float64 than it allows, the kernel is not",
            ),
            (
                # With the scaled input in bfloat16 and all else in float64, one element is past its tolerance, too.
                r"test_chunk_state_varlen\[64-1-dtype2\]",
                THEIRS,
                "its two ways to a state round in other places, by more than it allows",
            ),
        ),
        needs=("einops", "transformers"),
        absent="selective_scan_cuda causal_conv1d_cuda",
    ),
    Suite(
        "flash-attn",
        "2.8.3.post1",
        (
            "tests/ops/triton/test_*.py",
            "tests/test_rotary.py",
            "tests/layers/test_*.py",
            "tests/losses/test_cross_entropy.py",
        ),
        ("Dao-AILab/flash-attention", "v2.8.3.post1"),
        needs=("einops",),
        known=(
            ("cannot import name 'RotaryEmbedding' from 'transformers", THEIRS, "it needs an older transformers"),
            (r"test_cross_entropy_loss\[(50257|128256)" + _NO_MEMORY, LIMIT, _MEMORY),
        ),
        absent="flash_attn_2_cuda",
    ),
    Suite(
        "xformers",
        "0.0.35",
        ("tests/test_*.py",),
        ("facebookresearch/xformers", "v0.0.35"),
        without={
            "several GPUs": "seqpar sequence_parallel_fused_ops multiprocessing_utils",
            "no kernel of Triton's": """
                attention_patterns checkpoint fmha_flop_formula profiler sparse_tensors sparsity24
            """,
        },
        types=True,
        known=(
            _NO_BLOCKS,
            ("operator wasn't built - see|No operator found for `memory_eff", LIMIT, _EXTENSION),
            ("Could not run 'aten::_(efficient|flash)_attention_forward'", LIMIT, _CUDA_ALONE),
            (r"(test_rope_padded\.py.*-18300-4098-|test_merge_attentions_nobias)" + _NO_MEMORY, LIMIT, _MEMORY),
        ),
        needs=("scipy",),
        first=(
            """
            from xformers.ops.fmha import common
            common._built_with_cuda = True
            """,
            "it takes its attention of Triton's on CUDA only where its compiled part was built for CUDA",
        ),
    ),
    Suite(
        "vllm",
        "0.33.0",
        ("tests/kernels/**/test_*.py",),
        ("vllm-project/vllm", "v0.33.0"),
        text="triton",
        known=(
            ("'_OpNamespace' '_(moe_C|C|vllm_fa2_C)", LIMIT, _EXTENSION),
            (
                "No module named 'torchvision'|requires helion|tilelang is required",
                THEIRS,
                "it needs a further package",
            ),
            ("No module named 'triton_kernels'|No Unquantized MoE backend", LIMIT, _NOT_BUILT),
            (
                r"test_(ep_gather_uses_64_bit.*Comparing|(decode_attention_int64|swap_blocks\[.*-10000-|contexted_kv_)"
                + f"{_NO_MEMORY})",
                LIMIT,
                _MEMORY,
            ),
            ("Invalid repository ID|couldn't connect to 'https://hugg|LocalEntryNotFound", LIMIT, _LOADS),
            ("dummy base class CUDAGraph", LIMIT, "it records launches as a graph of CUDA's"),
            (
                "test_fp8_tp_default_keeps_refined_layout",
                LIMIT,
                "it expects products of float8, of a compute capability past the 8.0 of `as_cuda()`",
            ),
        ),
        # All that it requires but torch and what needs an NVIDIA GPU.
        needs=tuple(
            """
            regex cachetools psutil sentencepiece numpy requests certifi tqdm blake3 py-cpuinfo transformers
            huggingface_hub tokenizers safetensors protobuf fastapi starlette aiohttp multidict openai pydantic
            orjson prometheus_client pillow prometheus-fastapi-instrumentator tiktoken lm-format-enforcer
            outlines_core lark typing_extensions filelock partial-json-parser jsonschema pyzmq msgspec
            mistral_common opencv-python-headless pyyaml six setuptools einops compressed-tensors depyf
            cloudpickle watchfiles python-json-logger ninja pybase64 cbor2 ijson setproctitle oss-harmony
            anthropic model-hosting-container-standards mcp opentelemetry-sdk opentelemetry-api
            opentelemetry-exporter-otlp opentelemetry-semantic-conventions-ai numba tblib
            """.split()
        ),
        types=True,
        absent="vllm._C_stable_libtorch vllm.vllm_flash_attn._vllm_fa2_C",
        first=(
            """
            from vllm import _custom_ops, platforms
            from vllm.platforms.cuda import NonNvmlCudaPlatform
            platforms._current_platform = NonNvmlCudaPlatform()
            for name in dir(_custom_ops):
                if name.startswith("cutlass_") and "support" in name:
                    setattr(_custom_ops, name, lambda *_: False)
            """,
            "it looks for its platform by NVIDIA's library, and asks its compiled part for CUDA what that part can do",
        ),
    ),
    Suite(
        "unsloth",
        "2026.8.19",
        (
            "unsloth/kernels/moe/tests/test_*.py",
            "tests/test_fast_gemv_dispatch.py",
            "tests/test_fp8_*.py",
            "tests/test_grouped_gemm_optional_gather_indices.py",
            "tests/utils/test_packing.py",
        ),
        ("unslothai/unsloth", "v0.1.801-beta"),
        without={"models from the network": "llama4_moe qwen3_moe"},
        # Older than what other libraries are run with: it has an environment of its own.
        needs=tuple(
            """
            unsloth_zoo==2026.8.13 transformers==5.5.0 trl==0.24.0 datasets==4.3.0 tokenizers==0.22.2 bitsandbytes
            peft accelerate tyro sentencepiece protobuf hf_transfer psutil cut_cross_entropy torchao msgspec pillow
            """.split()
        ),
        path="unsloth/kernels/moe .",
        types=True,
        known=(
            ("couldn't connect to 'https://huggingface.co'|Failed to load model", LIMIT, _LOADS),
            (r"test_grouped_gemm_backward_dW.*(num_experts=128|intermediate_size=8192)" + _NO_MEMORY, LIMIT, _MEMORY),
            # Both sides are sums in float32, which round to neighbours where the exact sum is within 0.002 of a unit
            # in the last place of the middle: 1 element of 8,192 in 16 of 200 seeds, of which neither side is nearer.
            (
                r"backward_dW.*bfloat16.*outputs mismatch: 0\.0(01953|03906|07812|15625) ",
                THEIRS,
                "its tolerance is less than one unit in the last place of bfloat16 from 0.25 on",
            ),
        ),
    ),
    Suite("conch-triton-kernels", "1.3", ("tests/*_test.py",)),
    Suite("cut-cross-entropy", "25.1.1", ("tests/test_*.py",)),
)
