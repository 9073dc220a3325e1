"""``triton-spirv``: what the SPIR-V backend has to work with on this machine, and compiling ahead of time."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .ahead_of_time import command
from .ahead_of_time.stubs import run_stubs
from .capabilities import FEATURES
from .inspection.bisect import add_bisect, run_bisect
from .inspection.device_report import add_report, run_profile_of, run_report
from .inspection.doctor import run_doctor
from .inspection.kernels import NotInCache, run_kernels
from .inspection.listing import SHOWN, text_of
from .inspection.nvidia_code import NoMachineCode
from .inspection.optimise import add_opt, run_opt
from .inspection.profile import add_profile, run_profile
from .inspection.report import add_inspect, run_inspect
from .inspection.tuned_report import add_tuned, run_tuned
from .inspection.whose_fault import add_verdict, run_verdict
from .matrices import MatrixConfiguration
from .runtime import context
from .runtime.device_choice import choose, devices, installed
from .runtime.device_kind import DeviceInfo
from .runtime.errors import DeviceUnavailable
from .runtime.files import given_path
from .runtime.measuring.measured import capabilities_of
from .settings import IMPORTED, STAGED, ZERO_COPY
from .warming.warm import add_warm, run_warm


def _device(index: int, device: DeviceInfo) -> dict[str, Any]:
    described: dict[str, Any] = {
        "index": index,
        "name": device.name,
        "kind": device.kind,
        "uuid": device.uuid,
        "driver": device.driver,
        "driver_version": device.driver_version,
        "interface": device.interface,
        "usable": not device.lacks,
        "lacks": list(device.lacks),
        **device.details(),
    }
    try:
        capabilities = capabilities_of(device)
    except DeviceUnavailable as error:  # its self-test fails
        described |= {"usable": False, "lacks": [str(error)]}
        return described
    if capabilities is not None:
        described["capabilities"] = {
            entry.name: getattr(capabilities, entry.name)
            for entry in fields(capabilities)
            if entry.name not in ("features", "driver", "matrices", "native_math", "tile_products", "corrections")
        }
        described["matrices"] = [str(one) for one in capabilities.matrices]
        described["native_math"] = sorted(capabilities.native_math)
        described["tile_products"] = sorted(capabilities.tile_products)
        described["corrections"] = sorted(capabilities.corrections)
        described["features"] = {name: capabilities.has(name) for name in sorted(FEATURES)}
        described["target"] = capabilities.arch()
    return described


def information() -> dict[str, Any]:
    """What ``info --json`` prints: ``devices``, and ``used`` or ``error``.

    ``used`` has the device's index, why it is used, how host memory reaches it, the torch device of its tensors, and
    whether CUDA tensors can be passed.
    """
    try:
        found = installed()
    except DeviceUnavailable as error:
        return {"devices": [], "error": str(error)}
    result: dict[str, Any] = {"devices": [_device(index, device) for index, device in enumerate(found)]}
    try:
        chosen, reason = choose(devices())
        opened = context.current()
    except (DeviceUnavailable, ValueError) as error:
        result["error"] = str(error)
        return result
    in_place = opened.host_memory == ZERO_COPY
    result["used"] = {
        "index": found.index(chosen),
        "name": chosen.name,
        "because": reason,
        "host_memory": opened.host_memory,
        "torch_device": "cpu" if in_place else f"spirv:{opened.index}",
        "cuda_tensors": opened.shares_memory,
        "device_timestamps": opened.native.has_timestamps,
    }
    return result


_HOST_MEMORY = {
    ZERO_COPY: "used in place",
    STAGED: "copied to the device and back at every launch: keep tensors on the torch device",
    IMPORTED: "read by the device over the bus, in place",
}


def _text(known: dict[str, Any]) -> str:
    lines = []
    for device in known["devices"]:
        lines.append(f"{device['index']}: {device['name']}")
        lines.append(
            f"   {device['kind']}, {device['interface']}, driver {device['driver']} {device['driver_version']}"
        )
        if device["uuid"]:
            lines.append(f"   UUID {device['uuid']}")
        if device["lacks"]:
            lines.append(f"   cannot run kernels: it lacks {', '.join(device['lacks'])}")
            continue
        limits = device["capabilities"]
        lines.append(
            f"   subgroups of {limits['subgroup_size']}, {limits['shared_bytes'] // 1024} KiB of shared "
            f"memory, {limits['max_workgroup_invocations']} invocations a workgroup, "
            f"{limits['push_constant_bytes']} bytes of push constants"
        )
        has = [name for name, there in device["features"].items() if there]
        not_there = [name for name, there in device["features"].items() if not there]
        lines.append(f"   has the optional features {', '.join(has) or '(none)'}")
        units = [
            f"{one.shape} of {one.a} into {one.result}" for one in map(MatrixConfiguration.parse, device["matrices"])
        ]
        lines.append(f"   matrix units: {', '.join(units) or 'none'}")
        lines.append(f"   the device's own functions that kernels use: {', '.join(device['native_math']) or 'none'}")
        if device["corrections"]:
            lines.append(f"   what kernels found of its driver: {', '.join(device['corrections'])}")
        lines.append(f"   lacks {', '.join(not_there) or 'nothing'}")
    if not lines:
        lines.append("no device")
    if "error" in known:
        lines.append(f"none is used: {known['error']}")
    else:
        used = known["used"]
        lines += [
            f"used: device {used['index']}: {used['because']}",
            f"CPU tensors: {_HOST_MEMORY[used['host_memory']]}",
            f"torch device of its tensors: {used['torch_device']}",
            "CUDA tensors: "
            + (
                "shared where their memory can be (triton.backends.spirv.runtime.cuda)"
                if used["cuda_tensors"]
                else "cannot be passed"
            ),
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status: 1 where no device can be used, nothing could be compiled, or nobody reads on."""
    for stream in (sys.stdout, sys.stderr):  # pipes of Windows have an encoding with few letters
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not written at exit either
        return 1
    return status


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="triton-spirv", description="Triton's SPIR-V backend.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    info = verbs.add_parser("info", help="the devices, what each can do, which one is used and why")
    info.add_argument("--json", action="store_true", help="print JSON")
    command.add_compile(verbs.add_parser("compile", help="compile a kernel to a SPIR-V module and the JSON of its ABI"))
    stubs = verbs.add_parser("stubs", help="typed C++ and Python code for the kernels of a bundle")
    stubs.add_argument("bundle", type=given_path, metavar="FILE.tsb", help="a bundle that `compile --bundle` wrote")
    stubs.add_argument(
        "-o", "--output", type=given_path, metavar="FOLDER", help="the output folder (default: the bundle's)"
    )
    listed = verbs.add_parser("profiles", help="the device profiles that come with the backend, or one of a report")
    listed.add_argument(
        "--from", dest="report", type=given_path, metavar="REPORT", help="make a profile of this report"
    )
    listed.add_argument("-o", "--output", type=given_path, metavar="PROFILE.json", help="the profile to write")
    verbs.add_parser("include", help="the folder of triton_spirv.hpp, which launches compiled kernels from C++")
    verbs.add_parser("doctor", help="whether kernels can run on this machine, and what to do if they cannot")
    listing = verbs.add_parser("kernels", help="the compiled kernels in Triton's cache, newest first")
    listing.add_argument("name", nargs="?", help="only kernels whose name contains this")
    listing.add_argument("--limit", type=int, default=30, help="how many to show; 0: all (default: 30)")
    listing.add_argument("--json", action="store_true", help="print JSON")
    add_report(verbs.add_parser("report", help="one JSON file about this device, for an issue: doctor, tests, times"))
    code = verbs.add_parser("disassemble", help="a kernel's SPIR-V, or another stage of it, to read")
    code.add_argument("kernel", help="a .spv file, or a kernel's name or key in Triton's cache")
    code.add_argument(
        "--stage", choices=SHOWN, default="spv", help="what to print (default: spv); a file has spv and machine"
    )
    add_profile(verbs.add_parser("profile", help="run a script and time each of its launches on the device"))
    add_warm(verbs.add_parser("warm", help="record the kernels of a program, and compile them before it runs"))
    add_inspect(verbs.add_parser("inspect", help="one HTML page about a kernel, from its source to the SPIR-V"))
    add_tuned(verbs.add_parser("tuned", help="show, check or merge files with choices of autotuning"))
    add_bisect(verbs.add_parser("bisect", help="run a script, and name the pass or rewrite that changes a value"))
    add_verdict(verbs.add_parser("verdict", help="run a script with all checks: is a wrong result the kernel's fault?"))
    add_opt(verbs.add_parser("opt", help="a file of TTIR or TTGIR after the compiler's passes, or some of them"))
    options = parser.parse_args(arguments)
    if options.verb == "compile":
        return command.run_compile(options)
    if options.verb == "stubs":
        return run_stubs(options.bundle, options.output)
    if options.verb == "profiles" and options.report is not None:
        return run_profile_of(options.report, options.output or options.report.with_suffix(".profile.json"))
    if options.verb == "profiles":
        return command.run_profiles()
    if options.verb == "report":
        return run_report(options.output, information)
    if options.verb == "kernels":
        return run_kernels(options.name, options.limit, options.json)
    if options.verb == "profile":
        return run_profile(options)
    if options.verb == "warm":
        return run_warm(options)
    if options.verb == "tuned":
        return run_tuned(options)
    if options.verb == "bisect":
        return run_bisect(options)
    if options.verb == "verdict":
        return run_verdict(options)
    if options.verb == "opt":
        return run_opt(options)
    if options.verb == "inspect":
        return run_inspect(options)
    if options.verb == "disassemble":
        try:
            print(text_of(options.kernel, options.stage), end="")
        except (NotInCache, NoMachineCode, DeviceUnavailable, ValueError) as error:
            print(f"triton-spirv: {error}", file=sys.stderr)
            return 1
        return 0
    if options.verb == "include":
        print(Path(__file__).parent / "include")
        return 0
    if options.verb == "doctor":
        return run_doctor()
    known = information()
    print(json.dumps(known, indent=2, ensure_ascii=False) if options.json else _text(known))
    return int("error" in known)


if __name__ == "__main__":
    sys.exit(main())
