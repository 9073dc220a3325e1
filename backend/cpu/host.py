"""What machine code is made for: a processor, by LLVM's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """A processor. ``arch``, ``name``: as LLVM calls the architecture and the set of instructions; ``tuned``: the
    processor whose latencies count, "" for none. ``vector_bits``: of a vector register; ``registers``: how many of them
    there are. ``masks``: a load or a store of the lanes that a mask names takes one instruction, for elements of any
    width. ``feature``: a key of FEATURES that it has, "" for none."""

    arch: str
    name: str
    tuned: str
    vector_bits: int
    registers: int
    masks: bool
    feature: str = ""

    @property
    def features(self) -> tuple[str, ...]:
        """``feature``, and those that come with it."""
        return with_implied(self.feature)

    @property
    def triple(self) -> str:
        """LLVM's target triple. It is that of Linux on each system: an object runs on all of them, as the runtime loads
        it and calls it in the way of the System V ABI (include/triton_spirv/)."""
        return f"{self.arch}-unknown-linux-gnu"

    @property
    def attributes(self) -> str:
        """Attributes of each function. Windows gives a stack its pages one after the other, and a frame may have many;
        what looks into exceptions there may write below the stack pointer."""
        return 'noredzone "probe-stack"="inline-asm"' if self.arch == "x86_64" else ""


#: Sets of instructions, the widest of an architecture first: those that the x86-64 psABI calls levels, and Armv8.
LEVELS = {
    "x86-64-v4": ("x86_64", 512, 32, True),
    "x86-64-v3": ("x86_64", 256, 16, False),
    "x86-64-v2": ("x86_64", 128, 16, False),
    "aarch64": ("aarch64", 128, 32, False),
}
#: Instructions beyond a level that multiply integers of 8 bits, or bfloat16, and add several products each, by LLVM's
#: name → the level that they are added to. Those of a level are in the order of preference.
#: include/triton_spirv/processor.hpp says which a processor has.
FEATURES = {
    "amx-int8": "x86-64-v4",
    "avx512bf16": "x86-64-v4",
    "avx512vnni": "x86-64-v4",
    "avxvnni": "x86-64-v3",
    "dotprod": "aarch64",
}
#: Those that come with another.
_IMPLIED = {"amx-int8": ("avx512vnni",), "avx512bf16": ("avx512vnni",)}
#: What LLVM calls the last one.
_NAMES = {"aarch64": "generic"}


def with_implied(feature: str) -> tuple[str, ...]:
    """A feature, and those that a processor with it has, too."""
    return (feature, *_IMPLIED.get(feature, ())) if feature in FEATURES else ()


def level_of(processor: str) -> tuple[str, str]:
    """The level that a processor's name begins with, and its feature, "" for none."""
    level, _, feature = processor.partition("/")[0].partition("+")
    return level, feature


def runs(processor: str, here: str) -> bool:
    """Whether a processor ``here`` has the instructions of code for ``processor`` (both as host_of's)."""
    (level, feature), (level_here, feature_here) = level_of(processor), level_of(here)
    if level not in LEVELS or level_here not in LEVELS or feature not in ("", *with_implied(feature_here)):
        return False
    levels = list(LEVELS)
    return LEVELS[level][0] == LEVELS[level_here][0] and levels.index(level) >= levels.index(level_here)


def host_of(processor: str) -> Host:
    """The host that Capabilities.processor names: LEVEL[+FEATURE][/TUNED]. Raises ValueError."""
    (level, feature), tuned = level_of(processor), processor.partition("/")[2]
    if level not in LEVELS or (feature and FEATURES.get(feature) != level):
        raise ValueError(
            f"{processor!r} is no processor: LEVEL[+FEATURE][/TUNED], with LEVEL one of {', '.join(LEVELS)}, and "
            f"FEATURE one of {', '.join(FEATURES)} that fits"
        )
    arch, bits, registers, masks = LEVELS[level]
    return Host(arch, _NAMES.get(level, level), tuned, bits, registers, masks, feature)
