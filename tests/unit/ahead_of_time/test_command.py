"""``triton-spirv compile`` and ``profiles`` without a device: what they refuse, and that nothing is half-written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import triton
from triton.backends.spirv import cli
from triton.backends.spirv.ahead_of_time import command
from triton.backends.spirv.ahead_of_time.build import SCALARS, block_of, describe
from triton.backends.spirv.ahead_of_time.errors import RequestError
from triton.backends.spirv.ahead_of_time.features import ELSEWHERE, EVERYWHERE, FEATURE_OF, required_features
from triton.backends.spirv.capabilities import FEATURES, FLOAT_CONTROLS, PROFILES, Capabilities, profiles
from triton.backends.spirv.driver_quirks import DRIVERS
from triton.backends.spirv.runtime import files
from triton.backends.spirv.runtime.compiled.ahead_of_time import ANY_DRIVER
from triton.backends.spirv.runtime.launches.launch import argument_plan
from triton.backends.spirv.spirv.opcodes import Capability_

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

@triton.jit
def refused(x):
    tl.store(x, tl.inline_asm_elementwise("bar.sync 0;", "=r,r", [tl.load(x)], tl.int32, True, 1))

@triton.jit
def wrong(x):
    tl.store(x, undefined)

@triton.jit
def large(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.histogram(tl.load(x + at), BLOCK))

@triton.jit
def typed(x, TYPE: tl.constexpr, SHAPE: tl.constexpr):
    tl.static_assert(TYPE == tl.float16)
    tl.static_assert(SHAPE[1] == 3)
    tl.store(x, tl.full((), SHAPE[0], TYPE))

def no_kernel(x):
    return x
"""
ADD = "*fp32, *fp32, i32, 64"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A file with kernels, and nothing else in its folder."""
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return path


def _compile(path: Path, kernel: str, signature: str, *options: str) -> int:
    return cli.main(
        [
            "compile",
            f"{path}:{kernel}",
            "-s",
            signature,
            "-o",
            str(path.with_name("out.spv")),
            *(options or ("-t", "generic")),
        ]
    )


@pytest.mark.parametrize(
    ("kernel", "signature", "options", "message"),
    [
        ("sub", ADD, (), "has no 'sub'; its kernels are add, large, refused, typed, wrong"),
        ("no_kernel", ADD, (), "'no_kernel' in .*kernels.py is not a @triton.jit function but a function"),
        ("add", "*fp32, *fp32, i32", (), "3 entries and none for BLOCK; the kernel's 4 parameters are x, y, n, BLOCK"),
        ("add", "", (), "0 entries and none for x, y, n, BLOCK"),
        ("add", f"{ADD}, 1", (), "has 5 entries, the kernel 4 parameters"),
        ("add", "*fp32, *fp32, int, 64", (), "'n': 'int' is neither a type nor a constant; the types are i1, i8"),
        ("add", "*fp33, *fp32, i32, 64", (), r"'x': '\*fp33' is neither"),
        ("add", "fp8e5, *fp32, i32, 64", (), "'x': 'fp8e5' is neither"),
        ("add", "**fp32, *fp32, i32, 64", (), r"'x': '\*\*fp32' is neither"),
        ("add", "*tensordesc<fp32[16, 16]>, *fp32, i32, 64", (), r"'x': '\*tensordesc<fp32\[16, 16\]>' is neither"),
        ("add", "*constexpr, *fp32, i32, 64", (), r"'x': '\*constexpr' is neither"),
        ("add", "tensordesc<fp32[15, 16]>, *fp32, i32, 64", (), r"'x': 'tensordesc<fp32\[15, 16\]>' is neither"),
        ("add", "tensordesc<*fp32[16, 16]>, *fp32, i32, 64", (), "is neither a type nor a constant"),
        ("add", "tensordesc<fp32[16, 16], layout>, *fp32, i32, 64", (), "is neither a type nor a constant"),
        ("add", "*fp32, *fp32, i32, tl.float17", (), "'BLOCK': there is no type 'tl.float17'; there are .*tl.float16"),
        ("add", "*fp32, *fp32, (i32, i32), 64", (), r"'n': '\(i32, i32\)' is neither"),
        ("add", "*fp32:8, *fp32, i32, 64", (), "the hint ':8' of .* is none of ':1' .*, ':16'"),
        ("add", "*fp32:1, *fp32, i32, 64", (), "':1' is for integers, ':16' for integers and pointers"),
        ("add", "*fp32, *fp32, i32, i32", (), "'BLOCK' is a tl.constexpr: give its value, not the type 'i32'"),
        ("add", "*fp32, *fp32, N=i32, BLOCK=64", (), "the signature names 'N'; the kernel's parameters are x, y, n"),
        ("add", "*fp32, *fp32, n=i32, 64", (), "entry 4, '64', has no name but follows one that has"),
        ("add", "*fp32, *fp32, n=i32, n=i32", (), "two entries for 'n'"),
        ("add", "*fp32, *fp32, i32, 'a", (), "no closing '"),
        (
            "add",
            ADD,
            ("-t", "geforce"),
            "no device profile 'geforce'; there are amd-rdna3, apple-m1, .*generic, intel-xe, lavapipe",
        ),
        ("add", ADD, ("-t", "missing.json"), "the profile missing.json cannot be read: No such file"),
        ("add", ADD, ("-t", "vulkan1.3;driver=x"), "nor an arch string"),
        ("add", ADD, ("-t", "generic", "-w", "3"), "num_warps=3 must be a power of two"),
        ("add", ADD, ("-t", "generic", "-w", "16"), "num_warps=16 needs workgroups of 512 invocations"),
        ("refused", "*i32", (), "inline"),
        ("wrong", "*i32", (), "undefined"),
        ("large", "*i32, 16384", ("-t", "generic"), "bytes of shared memory, the target has 32768"),
    ],
)
def test_requests_that_are_refused(
    kernels: Path,
    kernel: str,
    signature: str,
    options: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _compile(kernels, kernel, signature, *options) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("triton-spirv compile: error: ")
    assert re.search(message, shown.err), shown.err
    assert {path.name for path in kernels.parent.iterdir()} <= {"kernels.py", "__pycache__"}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ("missing.py:add", "there is no file missing.py"),
        ("kernels.py", "is not of the form FILE:FUNCTION"),
        ("{folder}/broken.py:add", "cannot be imported: ZeroDivisionError"),
        ("{folder}/leaves.py:add", "cannot be imported: SystemExit: 0"),
        ("{folder}/text.txt:add", "is not a Python file"),
    ],
)
def test_files_that_hold_no_kernel(
    kernels: Path, request_: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = kernels.parent
    (folder / "broken.py").write_text("1 / 0")
    (folder / "leaves.py").write_text("raise SystemExit(0)")
    (folder / "text.txt").write_text(SOURCE)
    assert (
        cli.main(["compile", request_.format(folder=folder), "-s", ADD, "-t", "generic", "-o", str(folder / "out.spv")])
        == 1
    )
    assert message in capsys.readouterr().err
    assert not list(folder.glob("*.spv")) and not list(folder.glob("out.*"))


def test_the_output_must_be_a_module(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for output, message in (("out.json", "does not end in .spv"), ("no/out.spv", "there is no folder")):
        path = str(kernels.parent / output)
        assert cli.main(["compile", f"{kernels}:add", "-s", ADD, "-t", "generic", "-o", path]) == 1
        assert message in capsys.readouterr().err


def test_a_refused_kernel_leaves_the_earlier_files(kernels: Path) -> None:
    assert _compile(kernels, "add", ADD) == 0
    names = ("out.spv", "out.json")
    before = [kernels.with_name(name).read_bytes() for name in names]
    assert _compile(kernels, "refused", "*i32") == 1
    assert [kernels.with_name(name).read_bytes() for name in names] == before


def test_a_write_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(RequestError, match="out.spv cannot be written: No space"):
        command.write(tmp_path / "out.spv", b"module", "{}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", [None, b"earlier"])
@pytest.mark.parametrize("in_the_way", ["out.spv", "out.json"])
def test_where_one_of_the_two_cannot_be_written_neither_is(
    tmp_path: Path, in_the_way: str, before: bytes | None
) -> None:
    module = tmp_path / "out.spv"
    if before is not None and in_the_way == "out.json":
        module.write_bytes(before)
    (tmp_path / in_the_way).mkdir()
    there = sorted(tmp_path.iterdir())
    with pytest.raises(RequestError, match=f"{in_the_way} cannot be written: Is a directory"):
        command.write(module, b"module", "{}")
    assert sorted(tmp_path.iterdir()) == there
    assert not module.is_file() or module.read_bytes() == before


def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    command.write(tmp_path / f"{'a' * 250}.spv", b"module", "{}")
    with pytest.raises(RequestError, match="cannot be written: File name too long"):
        command.write(tmp_path / f"{'a' * 300}.spv", b"module", "{}")


def test_global_scratch_memory_is_refused() -> None:
    """No @triton.jit kernel needs any; one that does has nobody to ask for it where Triton is not installed."""
    with pytest.raises(RequestError, match="kernel 'k' needs global scratch memory"):
        describe(b"", SimpleNamespace(name="k", global_scratch_size=16), PROFILES["generic"], [])


def test_what_is_written(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        _compile(kernels, "add", "*fp32:16, *fp32, i32:1, BLOCK=64", "-t", "intel-xe", "-w", "2", "--num-stages", "1")
        == 0
    )
    assert capsys.readouterr().out == f"{kernels.with_name('out.spv')} and {kernels.with_name('out.json')}\n"
    told = json.loads(kernels.with_name("out.json").read_text())
    assert (told["format"], told["version"], told["kernel"]) == ("triton-spirv-kernel", 2, "add")
    assert told["workgroup_size"] == [64, 1, 1] and told["subgroup_size"] == 32
    assert [
        (entry["name"], entry["type"], entry.get("value"), entry["divisible_by"]) for entry in told["parameters"]
    ] == [("x", "*fp32", None, 16), ("y", "*fp32", None, 1), ("n", None, 1, 1), ("BLOCK", None, 64, 1)]
    assert [(entry["name"], entry["offset"], entry["bytes"], entry["parameter"]) for entry in told["arguments"]] == [
        ("x", 0, 8, 0),
        ("y", 8, 8, 1),
    ]
    assert (told["block_bytes"], told["indirect_arguments"], told["reports"]) == (16, False, [])
    assert told["options"]["num_stages"] == 1
    assert kernels.with_name("out.spv").stat().st_mode & 0o777 == 0o666 & ~files._umask()


def test_a_kernel_in_a_package_is_imported_as_part_of_it(tmp_path: Path) -> None:
    package = tmp_path / "some_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "block.py").write_text("import triton.language as tl\nSIZE = tl.constexpr(64)\n")
    (package / "fill.py").write_text(
        "import triton\nimport triton.language as tl\nfrom .block import SIZE\n\n"
        "@triton.jit\ndef fill(x):\n    tl.store(x + tl.arange(0, SIZE), 1)\n"
    )
    assert (
        cli.main(
            ["compile", f"{package / 'fill.py'}:fill", "-s", "*i32", "-t", "generic", "-o", str(tmp_path / "fill.spv")]
        )
        == 0
    )


@pytest.mark.parametrize(
    ("signature", "better"),
    [
        ("*fp32, *fp32, i32, 1024", "*fp32:16, *fp32:16, i32:16, 1024"),
        ("*fp32:16, *fp32, n=i32:16, BLOCK=1024", "*fp32:16, *fp32:16, n=i32:16, BLOCK=1024"),
        ("*fp32:16, *fp32:16, i32:16, 1024", None),
        ("*fp32, *fp32, i32, 16", None),  # a lane has one element
    ],
)
def test_hints_that_would_widen_accesses_are_said(
    signature: str, better: str | None, kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line; and the signature that it names has nothing left to say."""
    assert _compile(kernels, "add", signature) == 0
    said = capsys.readouterr().err
    if better is None:
        assert said == ""
        return
    assert re.fullmatch(
        r"triton-spirv compile: ':16' would widen accesses: 6 loads and stores of up to 128 bits instead of "
        r'(24 of up to 32|12 of up to 128), with --signature "(.*)"\. '
        r"Launches then refuse values and addresses that are not multiples of 16\.\n",
        said,
    )
    assert f'"{better}"' in said
    assert _compile(kernels, "add", better) == 0
    assert capsys.readouterr().err == ""


def test_a_package_of_anothers_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was imported before, such as the standard library's, is not taken for the file."""
    package = tmp_path / "email"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "message.py").write_text(SOURCE)
    assert _compile(package / "message.py", "add", ADD) == 1
    assert re.search(
        "message.py is the module email.message of a package, but Python finds that in .*another",
        capsys.readouterr().err,
    )


def test_the_file_of_a_package_itself_runs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "kernels_in_a_package"
    package.mkdir()
    (package / "__init__.py").write_text(f"print('it runs as', __name__)\n{SOURCE}")
    assert _compile(package / "__init__.py", "add", ADD) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == ["it runs as kernels_in_a_package"]


def test_types_and_tuples_as_constants(kernels: Path) -> None:
    assert _compile(kernels, "typed", "*fp16, tl.float16, SHAPE=(2, 3)") == 0
    told = json.loads(kernels.with_name("out.json").read_text())
    assert [entry.get("value") for entry in told["parameters"]] == [None, "fp16", "(2, 3)"]


def test_profiles_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profiles"]) == 0
    shown = capsys.readouterr().out
    for name, profile in profiles().items():
        assert f"{name} " in shown and profile.description in shown
        assert profile.sources, "a profile says where its figures are from"
        assert Capabilities.parse(name) == Capabilities.parse(profile.capabilities.arch()) == PROFILES[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a device profile"),
        ("[]", "it holds no JSON object"),
        ("{}", "it lacks description"),
        (None, "has unknown entries more"),
        ({"shared_bytes": "1"}, "shared_bytes is '1', which is not int"),
        ({"features": ["wings"]}, "unknown device features"),
        ({"native_math": ["sin"]}, "unknown native functions"),
        ({"corrections": ["-likes_tea"]}, "unknown facts of drivers"),
        ({"subgroup_size": 33}, "not a power of two"),
    ],
)
def test_files_that_are_no_profile(
    tmp_path: Path, text: object, message: str, kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.json"
    names = ("sources", "features", "native_math", "tile_products", "corrections")
    lists: dict[str, list[str]] = {name: [] for name in names}
    entries = {"description": "", **vars(PROFILES["generic"]), **lists}
    changed = {"more": 1} if text is None else text
    path.write_text(json.dumps(entries | changed) if isinstance(changed, dict) else str(text))
    assert _compile(kernels, "add", ADD, "-t", str(path)) == 1
    assert message in capsys.readouterr().err


def test_every_capability_stands_for_a_feature() -> None:
    known = {value for name, value in vars(Capability_).items() if not name.startswith("_")}
    assert known == EVERYWHERE | ELSEWHERE | FEATURE_OF.keys()
    assert not (EVERYWHERE | ELSEWHERE) & FEATURE_OF.keys()
    controls = {f"{control}{width}" for control in FLOAT_CONTROLS for width in (16, 32, 64)}
    assert set(FEATURE_OF.values()) | controls == FEATURES.keys()
    with pytest.raises(ValueError, match="SPIR-V capability VariablePointers \\(4442\\)"):
        required_features(b"".join(word.to_bytes(4, "little") for word in (0x07230203, 0, 0, 0, 0, 2 << 16 | 17, 4442)))


def test_generic_is_what_the_others_have_in_common() -> None:
    elsewhere = {"generic", "qualcomm-adreno7", "apple-m1"}  # it stands for desktop GPUs
    others = [capabilities for name, capabilities in PROFILES.items() if name not in elsewhere]
    common = frozenset.intersection(*(capabilities.features for capabilities in others))
    left_out = {feature for feature in common if feature.startswith((*FLOAT_CONTROLS, "float32_", "float64_"))}
    assert PROFILES["generic"].features == common - left_out
    for limit in ("shared_bytes", "push_constant_bytes", "max_workgroup_invocations"):
        assert getattr(PROFILES["generic"], limit) <= min(getattr(capabilities, limit) for capabilities in others)


def test_every_type_that_can_be_passed_has_its_size() -> None:
    types = (*SCALARS, "*fp32")
    plan = argument_plan([((index,), type_, type_) for index, type_ in enumerate(types)])
    arguments, size = block_of([(type_, type_, 0, None) for type_ in types])
    assert ([entry.offset for entry in arguments], size) == (plan.offsets, plan.bytes)


def test_no_device_is_needed(kernels: Path) -> None:
    command_ = [
        sys.executable,
        "-m",
        "triton.backends.spirv.cli",
        "compile",
        f"{kernels}:add",
        "-s",
        ADD,
        "-o",
        str(kernels.with_name("out.spv")),
    ]
    nothing = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    done = subprocess.run(
        [*command_, "-t", "nvidia-hopper"], env=os.environ | nothing, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    nothing["TRITON_SPIRV_DEVICE"] = "llvmpipe"
    done = subprocess.run(command_, env=os.environ | nothing, check=False, capture_output=True, text=True)
    refused = "triton-spirv compile: error: TRITON_SPIRV_DEVICE='llvmpipe' matches no device; "
    assert done.returncode == 1 and done.stderr.startswith(refused), done.stderr


def test_drivers_with_workarounds_need_a_target_of_their_own() -> None:
    for known in DRIVERS.values():
        faults = known.faults
        assert faults.own_modules or not (faults.loop_limit or faults.folds_zeros)
    assert PROFILES["generic"].driver == ANY_DRIVER


def test_a_reader_that_has_enough_ends_the_command_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "triton.backends.spirv.cli", "profiles"],
        stdout=write,
        text=True,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_launches_of_the_file_are_warned_about(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    launched: list[str] = []
    monkeypatch.setattr(triton.runtime.JITFunction, "run", lambda self, *_, **__: launched.append(self.__name__))
    kernels.write_text(kernels.read_text() + "\nadd[(1,)](None, None, 1, 64)\nadd[(1,)](None, None, 1, 64)\n")
    line = kernels.read_text().splitlines().index("add[(1,)](None, None, 1, 64)") + 1
    assert _compile(kernels, "add", ADD) == 0
    assert launched == ["add", "add"]
    (warning,) = [text for text in capfd.readouterr().err.splitlines() if "warning" in text]
    assert warning.startswith(f"triton-spirv compile: warning: {kernels}, line {line}, launches 'add' while the file ")
    assert '`if __name__ == "__main__":`' in warning


def test_the_warning_of_a_launch_names_the_verb(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(triton.runtime.JITFunction, "run", lambda self, *_, **__: None)
    kernels.write_text(kernels.read_text() + "\nadd[(1,)](None, None, 1, 64)\n")
    request = [f"{kernels}:add", "-s", ADD, "-t", "generic", "-o", str(kernels.with_name("out.html"))]
    assert cli.main(["inspect", *request]) == 0
    (warning,) = [text for text in capfd.readouterr().err.splitlines() if "warning" in text]
    assert warning.startswith(f"triton-spirv inspect: warning: {kernels}, line ")


def test_compiling_shows_no_warning_of_upstream(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_DEFAULT_FP_FUSION"}
    request = [f"{kernels}:add", "-s", ADD, "-t", "generic", "-o", str(kernels.with_name("out.spv"))]
    command = [sys.executable, "-m", "triton.backends.spirv.cli", "compile", *request]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
