"""The encodings of tensors and buffers read from tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

from .attribute_values import TypedInt
from .encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    Encoding,
    LinearEncoding,
    NvidiaMmaEncoding,
    OpaqueEncoding,
    PaddedSharedEncoding,
    SharedLinearEncoding,
    SliceEncoding,
    SwizzledSharedEncoding,
)
from .lexer import Tokens
from .type_reader import TypeReader


class _Fields(NamedTuple):
    """How an encoding's ``{key = value, …}`` becomes a dataclass: keys in the order of its fields."""

    build: type[Encoding]
    keys: tuple[str, ...]
    optional: tuple[str, ...] = ()


ENCODINGS = {
    "ttg.blocked": _Fields(BlockedEncoding, ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")),
    "ttg.slice": _Fields(SliceEncoding, ("dim", "parent")),
    "ttg.dot_op": _Fields(DotOperandEncoding, ("opIdx", "parent"), ("kWidth",)),
    "ttg.nvidia_mma": _Fields(NvidiaMmaEncoding, ("versionMajor", "versionMinor", "warpsPerCTA", "instrShape")),
    "ttg.linear": _Fields(LinearEncoding, ("register", "lane", "warp", "block")),
    "ttg.swizzled_shared": _Fields(SwizzledSharedEncoding, ("vec", "perPhase", "maxPhase", "order")),
}

#: Encodings that are named but not taken apart.
OPAQUE_ENCODINGS = frozenset(
    {
        "ttg.generic_linear",
        "ttg.amd_mfma",
        "ttg.amd_wmma",
        "ttg.nvmma_shared",
        "ttg.amd_rotating_shared",
        "ttg.partitioned_shared",
        "ttng.tensor_memory_encoding",
        "ttng.tensor_memory_scales_encoding",
    }
)


class EncodingReader(TypeReader):
    """Reads the bodies of encodings."""

    __slots__ = ()

    def _braces(self, body: Tokens) -> dict[str, Any]:
        """``{key = value, …}``."""
        raise NotImplementedError

    def _structured_encoding(self, body: Tokens, name: str, text: str) -> Encoding:
        layout = ENCODINGS[name]
        values = self._braces(body)
        body.finished("the encoding")
        if "CGALayout" in values:
            return OpaqueEncoding(name.partition(".")[2], text)
        missing = [key for key in layout.keys if key not in values]
        extra = [key for key in values if key not in layout.keys + layout.optional]
        if missing or extra:
            body.error(
                f"#{name} has the parameters {', '.join(layout.keys + layout.optional)}; "
                f"missing: {', '.join(missing) or 'none'}, unknown: {', '.join(extra) or 'none'}"
            )
        for key, value in values.items():
            valid = isinstance(value, Encoding) if key == "parent" else isinstance(value, (int, tuple))
            if not valid or isinstance(value, bool):
                body.error(f"parameter '{key}' of #{name} has a value of the wrong kind")
        return layout.build(*[_plain(values[key]) for key in layout.keys + layout.optional if key in values])

    def _padded(self, body: Tokens, text: str) -> Encoding:
        body.expect("[")
        intervals: list[tuple[int, int]] = []
        while True:
            interval = body.integer()
            body.expect(":")
            body.expect("+")
            intervals.append((interval, body.integer()))
            if not body.accept(","):
                break
        body.expect("]")
        values = self._braces(body)
        body.finished("the encoding")
        if not values.keys() <= {"order", "shape", "offset", "block"}:
            return OpaqueEncoding("padded_shared", text)
        return PaddedSharedEncoding(tuple(intervals), **_plain(values))

    def _shared_linear(self, body: Tokens, text: str) -> Encoding:
        values = self._braces(body)
        alignment = 16
        if body.accept(","):
            body.expect("alignment")
            body.expect("=")
            alignment = body.integer()
        body.finished("the encoding")
        if "offset" not in values or not values.keys() <= {"offset", "block"}:
            body.error("#ttg.shared_linear has the parameters offset and block")
        return SharedLinearEncoding(_plain(values["offset"]), _plain(values.get("block", ())), alignment)


def _plain(value: Any) -> Any:
    """The parameters of an encoding: numbers without types."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return int(value) if isinstance(value, TypedInt) else value
