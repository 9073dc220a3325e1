"""What Python does in another way on Windows than on Linux, each fact once. native/platform/ is the same for C++.

Left out on Windows, by name: emulated devices (their subgroups change stacks by functions of Unix), memory shared
with CUDA (it goes by file descriptors here), and the question who may write in a folder (its rights have another form).
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

WINDOWS = sys.platform == "win32"

#: Whether kernels can run on emulated devices.
HAS_EMULATED_DEVICES = not WINDOWS

#: The libraries of the Vulkan loader, and of CUDA's driver, and the names that Zstandard's has.
VULKAN_LOADER = "vulkan-1.dll" if WINDOWS else "libvulkan.so.1"
CUDA_DRIVER = "nvcuda.dll" if WINDOWS else "libcuda.so.1"
ZSTANDARD = ("libzstd.dll", "zstd.dll") if WINDOWS else ("libzstd.so.1",)

#: How a Vulkan driver is installed and brought up to date. On Windows the GPU's maker has it, the loader included.
_MAKERS = "amd.com/support, intel.com/support, nvidia.com/drivers or the computer's maker"
_MESA = "apt-get install mesa-vulkan-drivers libvulkan1, or NVIDIA's own driver"
INSTALL_VULKAN = f"the driver of the GPU's maker ({_MAKERS})" if WINDOWS else _MESA
UPDATE_DRIVER = f"update the driver from {_MAKERS}" if WINDOWS else "update the driver"
#: How spirv-val, the validation layers and Zstandard are installed.
_SDK = "the Vulkan SDK (vulkan.lunarg.com)"
INSTALL_SPIRV_TOOLS = f"{_SDK}, whose Bin folder has to be on PATH" if WINDOWS else "apt-get install spirv-tools"
INSTALL_VALIDATION_LAYERS = INSTALL_SPIRV_TOOLS if WINDOWS else "apt-get install vulkan-validationlayers"
INSTALL_ZSTANDARD = "put libzstd.dll on PATH" if WINDOWS else "apt-get install libzstd1"

#: Where Windows' registry tells of the first processor.
_PROCESSOR = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
#: How often, and how many seconds apart, a file is replaced that another process has open.
_TRIES, _NAP = 50, 0.02


def after_fork_in_child(call: Callable[[], None]) -> None:
    """Call this in each forked child. Windows has no fork()."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


@contextmanager
def file_of(data: bytes) -> Iterator[str]:
    """A path at which ``data`` can be read meanwhile. On Linux it is in memory, so that no folder need be writable."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("triton-spirv")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    with tempfile.TemporaryDirectory(prefix="triton-spirv-") as folder:  # Windows opens no file a second time
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(data)
        yield path


def machine() -> str:
    """The architecture of this machine, by the name that Linux and LLVM have for it."""
    return {"AMD64": "x86_64", "ARM64": "aarch64"}.get(platform.machine(), platform.machine())


def registry_values(key: str, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The values, by their names, of a key below HKEY_LOCAL_MACHINE of Windows' registry, or of each of its keys
    ``depth`` levels down. Keys that are not there or that may not be read are left out."""
    import winreg

    registry: Any = winreg
    try:
        with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, key) as opened:
            keys, values, _ = registry.QueryInfoKey(opened)
            if depth:
                below = [registry.EnumKey(opened, index) for index in range(keys)]
            else:
                found = dict(registry.EnumValue(opened, index)[:2] for index in range(values))
    except OSError:
        return
    if not depth:
        yield found
        return
    for name in below:
        yield from registry_values(rf"{key}\{name}", depth - 1)


def processor_name() -> str:
    """What the processor calls itself, "" if the system does not tell it."""
    if WINDOWS:
        values: Mapping[str, Any] = next(registry_values(_PROCESSOR), {})
        return " ".join(str(values.get("ProcessorNameString", "")).split())
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            pairs = [line.partition(":") for line in lines]
    except OSError:
        return ""
    return next((" ".join(value.split()) for key, _, value in pairs if key.strip() == "model name"), "")


def memory() -> tuple[int | None, int]:
    """Bytes of memory that the system could give to this process without swapping, None if it does not tell, and of all
    that there is, 0 if it does not."""
    if WINDOWS:
        status = (ctypes.c_uint64 * 8)()  # MEMORYSTATUSEX: two numbers of 32 bits, then seven of 64
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
        kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
        return (status[2], status[1]) if kernel.GlobalMemoryStatusEx(status) else (None, 0)
    values = {}
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                values[key] = int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return values.get("MemAvailable"), values.get("MemTotal", 0)


def usable_processors() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    ours, all_ = ctypes.c_size_t(), ctypes.c_size_t()
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.GetProcessAffinityMask.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    if not kernel.GetProcessAffinityMask(kernel.GetCurrentProcess(), ctypes.byref(ours), ctypes.byref(all_)):
        return os.cpu_count() or 1
    # In a process on several groups of processors the mask is 0.
    return bin(ours.value).count("1") or os.cpu_count() or 1


def is_loaded(library: str) -> bool:
    """Whether this process has loaded a library of that name."""
    if WINDOWS:
        kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
        kernel.GetModuleHandleW.restype = ctypes.c_void_p
        return bool(kernel.GetModuleHandleW(library))
    try:
        ctypes.CDLL(library, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def replace(written: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """os.replace(). Windows refuses it while another process has ``path`` open, so it is tried for a second there."""
    for _ in range(_TRIES - 1 if WINDOWS else 0):
        try:
            os.replace(written, path)
        except PermissionError:
            time.sleep(_NAP)
        else:
            return
    os.replace(written, path)


def writable_by_others(folder: str | os.PathLike[str]) -> str:
    """Who besides this user and root can write in a folder, as a clause; "" if nobody can, or there is no such folder,
    or on Windows. A group whose only member is this user is nobody else, and the group of root is root."""
    if WINDOWS:
        return ""
    try:
        status = os.stat(folder)
    except OSError:
        return ""
    import grp
    import pwd

    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to {_named(pwd.getpwuid, status.st_uid, 'user')}"
    if status.st_mode & 0o002:
        return "everybody can write there"
    if status.st_mode & 0o020 and status.st_gid != 0 and not _is_private(status.st_gid, os.geteuid()):
        return f"{_named(grp.getgrgid, status.st_gid, 'group')} can write there"
    return ""


def _named(entry: Callable[[int], Any], number: int, kind: str) -> str:
    try:
        return f"{kind} {entry(number)[0]}"
    except KeyError:
        return f"{kind} {number}"


@cache
def _is_private(group: int, user: int) -> bool:
    """Whether nobody but a user, and root, is a member of a group."""
    import grp
    import pwd

    try:
        members, name = set(grp.getgrgid(group).gr_mem), pwd.getpwuid(user).pw_name
    except KeyError:
        return False
    members |= {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    return members <= {name, "root"}


def ending_of(status: int) -> str | None:
    """How a process was ended from outside, by its exit status: the signal's name, or the number of the exception on
    Windows. None: it ended itself."""
    if WINDOWS:
        # Statuses of severity "error" (NTSTATUS): 0xC0000005 is a wild access.
        return f"exception {status & 0xFFFFFFFF:#x}" if status & 0xC0000000 == 0xC0000000 else None
    if status >= 0:
        return None
    import signal

    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
