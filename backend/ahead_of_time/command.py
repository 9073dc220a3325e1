"""The verbs ``compile`` and ``profiles`` of ``triton-spirv``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..capabilities import Capabilities, profiles, read_profile
from ..options import add_choices, chosen
from ..runtime import context
from ..runtime.compiled.bundle import Variant, pack, unpack
from ..runtime.compiled.kernel_file import OBJECT_SUFFIX, json_path, object_path
from ..runtime.errors import DeviceUnavailable
from ..runtime.files import given_path, write_whole, written_beside
from ..runtime.measuring.measured import capabilities_of
from ..system import replace
from .errors import RequestError, in_one_line
from .kernel_source import find_kernel, split_request
from .widening import wider

if TYPE_CHECKING:
    from .build import Compiled

#: The target that stands for the device that is present.
DEVICE = "device"


def add_compile(parser: argparse.ArgumentParser) -> None:
    """The options of ``compile``."""
    parser.add_argument("kernel", metavar="FILE:FUNCTION", help="a @triton.jit function in a Python file, which is run")
    add_request(parser, required=True, several=True)
    parser.add_argument(
        "-o",
        "--output",
        type=given_path,
        metavar="FILE.spv",
        help="where the module goes, with its ABI in FILE.json (default: FUNCTION.spv), and for a processor its "
        "machine code in FILE.o; FILE.o for that alone",
    )
    parser.add_argument(
        "--bundle",
        type=given_path,
        metavar="FILE.tsb",
        help="put the kernel into a bundle, beside the other kernels there; with several --target a variant for each",
    )
    parser.add_argument("--name", help="the kernel's name in the bundle (default: FUNCTION)")
    parser.add_argument(
        "--debug-info", action="store_true", default=None, help="source lines and names of variables in the module"
    )


def add_request(parser: argparse.ArgumentParser, required: bool, several: bool = False) -> None:
    """The options that say what a function of a file is compiled for. ``required``: the signature is. ``several``:
    targets may be named; ``options.target`` is a list then, None if none is."""
    parser.add_argument(
        "-s",
        "--signature",
        required=required,
        metavar="ENTRIES",
        help="a type or constant for each parameter, separated by commas: '*fp32:16, *fp32, i32, 64'; "
        "':16' says that a value or address is a multiple of 16, 'i32:1' is the constant 1; an entry "
        "may go by name: BLOCK=64",
    )
    add_target(parser, several)
    add_choices(parser)


def add_target(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """The option that says for which device; ``several`` as above."""
    parser.add_argument(
        "-t",
        "--target",
        action="append" if several else "store",
        default=None if several else DEVICE,
        metavar="PROFILE",
        help="a profile's name (see `triton-spirv profiles`), a profile's JSON file, or 'device' for "
        "the device that is present (the default)",
    )


def run_compile(options: argparse.Namespace) -> int:
    """``triton-spirv compile``: 0, or 1 with one error on stderr and no file written."""
    try:
        if options.bundle:
            added = compile_to_bundle(options)
            print(f"{options.bundle}: {', '.join(added)}")
            return 0
        files = compile_to_file(options)
    except Exception as error:  # the user's file, the front end and the backend raise what they like
        kind = "" if isinstance(error, RequestError | DeviceUnavailable) else f"{type(error).__name__}: "
        print(f"triton-spirv compile: error: {kind}{in_one_line(error)}", file=sys.stderr)
        return 1
    *first, last = map(str, files)
    print(f"{', '.join(first)} and {last}")
    return 0


def compile_to_file(options: argparse.Namespace) -> list[Path]:
    """Compiles what the options ask for; the paths of what was written."""
    path, name = split_request(options.kernel)
    if len(options.target or ()) > 1 or options.name:
        raise RequestError("several targets, or --name, need --bundle")
    module = options.output or Path(f"{name}.spv")
    if module.suffix not in (".spv", OBJECT_SUFFIX):
        raise RequestError(
            f"the output {module} does not end in .spv, or for machine code in {OBJECT_SUFFIX}; its ABI goes into the "
            ".json next to it"
        )
    if not module.absolute().parent.is_dir():
        raise RequestError(f"there is no folder {module.parent} to write {module.name} in")
    capabilities = target((options.target or [DEVICE])[0])
    if module.suffix == OBJECT_SUFFIX and not capabilities.processor:
        raise RequestError(
            f"the output {module} is for machine code, and the target, of the driver {capabilities.driver}, is no "
            f"processor: name it {module.with_suffix('.spv').name}"
        )
    made = _compiled(options, path, name, [capabilities])[0]
    if module.suffix == OBJECT_SUFFIX:
        if made.machine_code is None:
            raise RequestError(made.lacks_code)
        return write(module, made.machine_code, made.abi.to_json())
    if made.lacks_code:
        print(f"triton-spirv compile: there is no {object_path(module)}: {made.lacks_code}", file=sys.stderr)
    return write(module, made.spirv, made.abi.to_json(), made.machine_code)


def compile_to_bundle(options: argparse.Namespace) -> list[str]:
    """Compiles a variant for each target and puts them into the bundle, replacing variants of the same kernel and
    target; what was put there. The bundle is replaced as a whole, or, after an error, not at all."""
    path, name = split_request(options.kernel)
    bundle = options.bundle
    if bundle.suffix != ".tsb" or options.output:
        raise RequestError(f"a bundle's name ends in .tsb, and it has no --output: {bundle}")
    if not bundle.absolute().parent.is_dir():
        raise RequestError(f"there is no folder {bundle.parent} to write {bundle.name} in")
    there = {}
    if bundle.is_file():
        there = {(one.name, one.abi.target): one for one in unpack(bundle.read_bytes(), bundle)}
    targets = [target(text) for text in options.target or [DEVICE]]
    called = options.name or name
    for made in _compiled(options, path, name, targets):
        if made.abi.reports:
            raise RequestError("kernels that report (--debug, --check-bounds) cannot go into a bundle")
        if made.lacks_code:
            raise RequestError(made.lacks_code)
        code = made.spirv if made.machine_code is None else made.machine_code
        there[called, made.abi.target] = Variant(called, made.abi, code)
    try:
        data = pack(there.values())
    except ValueError as error:
        raise RequestError(str(error)) from None
    try:
        write_whole(bundle, data)
    except OSError as error:
        raise RequestError(f"{bundle} cannot be written: {error.strerror}") from None
    return [f"{called} for {capabilities.driver}" for capabilities in targets]


def _compiled(options: argparse.Namespace, path: Path, name: str, targets: list[Capabilities]) -> list[Compiled]:
    """What the options ask for, for each target."""
    try:
        import triton.compiler  # noqa: F401  (a namespace `triton` may be there without it)
    except ModuleNotFoundError as error:
        raise RequestError(
            f"compiling needs Triton, which is not installed ({error}); `triton-spirv info` and loading "
            "a compiled module do not need it"
        ) from None
    from .build import compile_kernel, is_type

    kernel = find_kernel(path, name, "compile")
    choices = chosen(options) | {"debug_info": options.debug_info, **fusion()}
    found = [compile_kernel(kernel, options.signature, capabilities, choices) for capabilities in targets]
    if not found[0].abi.reports:  # checked accesses are single elements
        found_wider = wider(
            found[0].spirv,
            options.signature,
            is_type,
            lambda text: compile_kernel(kernel, text, targets[0], choices).spirv,
        )
        if found_wider is not None:
            print(f"triton-spirv compile: {found_wider}", file=sys.stderr)
    return found


def fusion() -> dict[str, object]:
    """The compile option for fused multiply-adds, as a launch takes it. Triton's own default is said outright: else 3.9
    warns of the next release's."""
    from triton import knobs

    chosen = "TRITON_DEFAULT_FP_FUSION" in os.environ
    return {"enable_fp_fusion": None if chosen else knobs.language.default_fp_fusion}


def target(text: str) -> Capabilities:
    """What the target of that name can do. Raises RequestError, DeviceUnavailable."""
    if text == DEVICE:
        capabilities = capabilities_of(context.current().device)
        assert capabilities is not None, "the current device runs kernels"
        return capabilities
    try:
        if text.endswith(".json"):
            return read_profile(given_path(text)).capabilities
        return Capabilities.parse(text)
    except OSError as error:
        raise RequestError(f"the profile {given_path(text)} cannot be read: {error.strerror}") from None
    except ValueError as error:
        if text.endswith(".json") or ";" in text:
            raise RequestError(str(error)) from None
        raise RequestError(
            f"there is no device profile '{text}'; there are {', '.join(profiles())}, '{DEVICE}' for "
            "the device that is present, or the path of a profile's .json"
        ) from None


def write(module: Path, data: bytes, abi: str, machine_code: bytes | None = None) -> list[Path]:
    """Writes a module, its machine code if that is not the module, and its ABI: each file whole, and all or, after an
    error, none; their paths. If a process is killed meanwhile, files that do not belong together are refused when they
    are loaded. Raises RequestError."""
    files = {module: data}
    if machine_code is not None:
        files[object_path(module)] = machine_code
    files[json_path(module)] = abi.encode()
    temporaries: list[Path] = []
    replaced: dict[Path, bytes | None] = {}
    path = module
    try:
        before = {path: path.read_bytes() if path.is_file() else None for path in files}
        for path, data in files.items():
            temporaries.append(written_beside(path, data))
        for path, temporary in zip(files, temporaries, strict=True):
            try:
                replace(temporary, path)
            except BaseException:
                for one, data_before in replaced.items():
                    _put_back(one, data_before)
                raise
            replaced[path] = before[path]
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)
    return list(files)


def _put_back(path: Path, data: bytes | None) -> None:
    """A file as it was before; None: there was none."""
    if data is None:
        path.unlink()
    else:
        write_whole(path, data)


def run_profiles() -> int:
    """``triton-spirv profiles``: the profiles that come with the backend."""
    width = max(map(len, profiles()))
    for name, profile in profiles().items():
        has = profile.capabilities
        print(f"{name:{width}}  {profile.description}")
        print(
            f"{'':{width}}  subgroups of {has.subgroup_size}, {has.shared_bytes // 1024} KiB of shared memory, "
            f"{has.max_workgroup_invocations} invocations a workgroup, {has.push_constant_bytes} bytes of push "
            "constants"
        )
        print(f"{'':{width}}  {', '.join(sorted(has.features))}")
    return 0
