"""NVIDIA's machine code, from caches that the test writes as its driver does, with code from upstream's ptxas."""

import ctypes
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from triton import knobs
from triton.backends.spirv.inspection import compilers, sass, zstandard
from triton.backends.spirv.inspection.nvidia_code import NoMachineCode, disassembled, machine_code
from triton.backends.spirv.inspection.zstandard import NoZstandard
from triton.backends.spirv.runtime.cuda import cuda_driver
from triton.backends.spirv.runtime.errors import DeviceUnavailable
from triton.backends.spirv.runtime.vulkan.statistics import Executable, Statistic

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
  .reg .pred %q; .reg .b32 %r<3>; .reg .b64 %a; .reg .f32 %f<3>; .shared .align 4 .b8 s[128];
  ld.param.u64 %a, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, s; mov.f32 %f0, 0f00000000;
LOOP:
  .pragma "nounroll";
  ld.global.f32 %f1, [%a]; bar.sync 0; st.shared.f32 [%r1], %f1; bar.sync 0; ld.shared.f32 %f2, [%r1];
  fma.rn.f32 %f0, %f2, %f1, %f0; sub.u32 %r0, %r0, 1; setp.ne.u32 %q, %r0, 0;
  @%q bra LOOP;
  st.global.f32 [%a], %f0; ret;
}
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The instructions of PTX for a Hopper GPU: a loop with one load and two barriers, and one store behind it."""
    folder = tmp_path_factory.mktemp("ptx")
    (folder / "k.ptx").write_text(PTX)
    command = [knobs.nvidia.ptxas.path, "-arch", "sm_90", folder / "k.ptx", "-o", folder / "k.cubin"]
    subprocess.run(command, check=True, timeout=60)
    elf = (folder / "k.cubin").read_bytes()
    (sections,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<3H", elf, 0x3A)
    (names_at,) = struct.unpack_from("<Q", elf, sections + names * size + 0x18)
    for number in range(count):
        name, _, _, _, at, length = struct.unpack_from("<2I4Q", elf, sections + number * size)
        if elf[names_at + name :].startswith(b".text.k\0"):
            return elf[at : at + length]
    raise AssertionError("the cubin has no code")


def frame(contents: bytes) -> bytes:
    """A Zstandard frame."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
    library.ZSTD_compress.restype = ctypes.c_size_t
    buffer = ctypes.create_string_buffer(2 * len(contents) + 1000)
    length = library.ZSTD_compress(buffer, len(buffer), contents, len(contents), 3)
    return buffer.raw[:length]


def program(code: bytes, offset: int | None = None, sections: int = 3) -> bytes:
    """What a frame holds: the object NVuc behind a prefix, with its code between two other sections, and bitcode."""
    start = 32 + 32 * 3
    name, tail = b"main\0\0\0\0", bytes(range(40))
    rows = [(0x21, len(name), start), (1, len(code), start + len(name) if offset is None else offset)]
    rows += [(0x7, len(tail), start + len(name) + len(code))]
    table = b"".join(struct.pack("<8I", *row, 0, 0, 0, 0, 0) for row in rows)
    header = struct.pack("<4sIHHIIIII", b"NVuc", 1, sections, 0, 0, 0, 0, start + len(code) + 48, 0)
    return b"NVDANVVM" + header + table + name + code + tail + b"BC\xc0\xde"


def pipeline_cache(*contents: bytes) -> bytes:
    """A VkPipelineCache's data: Vulkan's header and one entry a program."""
    entries = b""
    for one in contents:
        packed = struct.pack("<I", len(one)) + frame(one)
        fields = struct.pack("<I4sI16sIIII", len(packed), b"CPKV", 1, bytes(16), 2, 3, len(packed), 4)
        entries += bytes(16) + fields + packed
    return struct.pack("<4I16s", 32, 1, 0x10DE, 0x2330, bytes(16)) + struct.pack("<I", len(contents)) + entries


def disk_cache(contents: bytes) -> bytes:
    """A ``.bin`` file of the driver's cache on disk."""
    packed = frame(contents)
    section = struct.pack("<I24sII", 0x9846A19D, bytes(24), len(packed) + 4, len(contents))
    return b"CDVN" + bytes(28) + section + packed


@pytest.mark.parametrize("cache", [pipeline_cache, disk_cache])
def test_code_of_either_cache(code: bytes, cache: object) -> None:
    assert machine_code(cache(program(code))) == code  # type: ignore[operator]


def test_entries_without_a_program_are_passed_over(code: bytes) -> None:
    damaged = frame(bytes(1000))[:-6]
    assert machine_code(pipeline_cache(b"something else", program(code)) + damaged) == code


@pytest.mark.parametrize(
    ("cached", "message"),
    [
        (lambda code: b"", "0 bytes has 0 programs"),
        (lambda code: pipeline_cache(b"something else"), "has 0 programs"),
        (lambda code: pipeline_cache(program(code), program(code)), "has 2 programs"),
        (lambda code: pipeline_cache(program(code))[:-1], "has 0 programs"),
        (lambda code: pipeline_cache(program(code[:-8])), "which are no instructions of 16 bytes"),
        (lambda code: pipeline_cache(program(code, offset=1 << 20)), "which are no instructions of 16 bytes"),
        (lambda code: pipeline_cache(program(code, sections=500)), "ends within the table"),
        (lambda code: pipeline_cache(program(code, sections=1)), "0 sections with code"),
        (lambda code: pipeline_cache(b"NVuc"), "ends within the table"),
    ],
)
def test_what_is_no_program_is_refused(code: bytes, cached: object, message: str) -> None:
    with pytest.raises(NoMachineCode, match=message):
        machine_code(cached(code))  # type: ignore[operator]


def test_instructions_are_counted(code: bytes) -> None:
    text = disassembled(code, (9, 0))
    found = sass.instructions(text)
    assert sass.unknown(text, code) == 0
    assert len(found) < len(code) // 16  # without the padding
    rows = {name.partition(".")[0]: (every, looped) for name, every, looped, _ in sass.counts(found)}
    assert {name: rows[name] for name in ("LDG", "LDS", "STS", "STG", "BAR", "FFMA")} == {
        "LDG": (1, 1),
        "LDS": (1, 1),
        "STS": (1, 1),
        "STG": (1, 0),
        "BAR": (2, 2),
        "FFMA": (1, 1),
    }
    assert sum(every for every, _ in rows.values()) == len(found)
    heading, *lines = sass.commented(text, code).splitlines()
    assert heading.split()[1:] == ["instruction", "all", "in", "loops"]
    assert any(line.split()[:4] == ["//", "STG.E", "1", "0"] for line in lines)
    assert any("BAR.SYNC" in line and not line.startswith("//") for line in lines)


def test_instructions_that_nvdisasm_leaves_out_are_told(code: bytes) -> None:
    text = disassembled(code, (9, 0))
    missing = "\n".join(line for line in text.splitlines() if "BAR" not in line)
    assert sass.unknown(missing, code) == 2
    assert "// nvdisasm does not know 2 instructions" in sass.commented(missing, code)


def test_another_architecture_than_nvdisasm_knows(code: bytes) -> None:
    with pytest.raises(NoMachineCode, match=r"nvdisasm --binary SM30 failed: .*"):
        disassembled(code, (3, 0))


@pytest.fixture
def no_zstandard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(zstandard, "ZSTANDARD", ("libnothing.so.1",))
    zstandard._library.cache_clear()
    yield
    zstandard._library.cache_clear()


@pytest.mark.usefixtures("no_zstandard")
def test_a_machine_without_zstandard(code: bytes) -> None:
    cached = pipeline_cache(b"\x28\xb5\x2f\xfd")
    with pytest.raises(NoZstandard, match="apt-get install libzstd1"):
        machine_code(cached)


def test_a_machine_without_nvdisasm(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        nvdisasm = property(lambda self: _raise(RuntimeError("Cannot find nvdisasm")))

    tool = knobs.nvidia.nvdisasm.path
    monkeypatch.setattr(knobs, "nvidia", Nothing())
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NoMachineCode, match=r"no nvdisasm \(Cannot find nvdisasm\): .* in TRITON_NVDISASM_PATH"):
        disassembled(code, (9, 0))
    monkeypatch.setenv("PATH", str(Path(tool).parent))
    assert "BAR.SYNC" in disassembled(code, (9, 0))


def _raise(error: Exception) -> None:
    raise error


def test_the_drivers_answer_has_it(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "compute_capability", lambda uuid: {"8f" * 16: (9, 0)}[uuid])
    found = [Executable("main", 32, (Statistic("Register Count", 40),))]
    (executable,), why = compilers._with_machine_code(found, pipeline_cache(program(code)), "8f" * 16)
    assert (why, executable.statistics) == ("", found[0].statistics)
    (representation,) = executable.representations
    assert representation.name == "SASS" and "BAR.SYNC" in representation.text
    same, why = compilers._with_machine_code(found, b"", "8f" * 16)
    assert same == found and why.startswith("there is no machine code to show: the driver's cache of 0 bytes")


def test_a_machine_without_cuda(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "_libcuda", lambda: _raise(OSError("libcuda.so.1: cannot open it")))
    _, why = compilers._with_machine_code([], pipeline_cache(program(code)), "8f" * 16)
    assert why.endswith("CUDA's driver was not found: libcuda.so.1: cannot open it")


def test_the_gpu_that_the_process_uses_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two alike; CUDA_VISIBLE_DEVICES may hide the other."""
    first, second, other = (SimpleNamespace(driver=name, capabilities=object()) for name in ("a", "a", "b"))
    monkeypatch.setattr(compilers, "devices", lambda: [first, second, other])
    monkeypatch.setattr(compilers, "VulkanDeviceInfo", SimpleNamespace)
    for used, driver, asked in ((second, "a", second), (other, "a", first), (first, "b", other), (first, "c", None)):
        monkeypatch.setattr(compilers, "selected", lambda used=used: used)
        assert compilers._device(driver) is asked

    def refuse() -> None:
        raise DeviceUnavailable("TRITON_SPIRV_DEVICE='x' matches no device")

    monkeypatch.setattr(compilers, "selected", refuse)
    assert compilers._device("a") is first
