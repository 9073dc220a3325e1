"""Tensor encodings of the ``ttg`` dialect, as frozen data.

The field names are upstream's, of TritonGPUAttrDefs.td. What an encoding *means* (which lane holds which
element) is the business of ``layouts/``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """Base of every encoding."""


@dataclass(frozen=True)
class BlockedEncoding(Encoding):
    """``#ttg.blocked``: a tile of sizePerThread × threadsPerWarp × warpsPerCTA, repeated over the tensor."""

    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True)
class SliceEncoding(Encoding):
    """``#ttg.slice``: ``parent`` with dimension ``dim`` removed."""

    dim: int
    parent: Encoding


@dataclass(frozen=True)
class DotOperandEncoding(Encoding):
    """``#ttg.dot_op``: operand ``op_idx`` (0 = A, 1 = B) of a dot whose result has encoding ``parent``."""

    op_idx: int
    parent: Encoding
    k_width: int = 0


@dataclass(frozen=True)
class NvidiaMmaEncoding(Encoding):
    """``#ttg.nvidia_mma``: results of NVIDIA's matrix instructions; ``instr_shape`` is what one instruction of a warp
    computes, in the last two dimensions."""

    version_major: int
    version_minor: int
    warps_per_cta: tuple[int, ...]
    instr_shape: tuple[int, ...]


@dataclass(frozen=True)
class FragmentEncoding(Encoding):
    """Matrices as a device's subgroups hold them (``matrices.ComponentMap``), over the last two dimensions. This
    encoding is not upstream's.

    ``rows``, ``columns``: of one fragment. ``private``: the dimension, of the last two, along which all warps hold the
    same: 1 in a dot's operand A, 0 in B, None in its result.
    """

    rows: int
    columns: int
    registers: tuple[tuple[int, int], ...]
    lanes: tuple[tuple[int, int], ...]
    warps_per_cta: tuple[int, ...]
    private: int | None


@dataclass(frozen=True)
class TransposedEncoding(Encoding):
    """``inner`` with its dimensions exchanged: dimension i is dimension ``order[i]`` of ``inner``. This encoding is not
    upstream's."""

    inner: Encoding
    order: tuple[int, ...]


@dataclass(frozen=True)
class FoldedEncoding(Encoding):
    """``inner``, laid out for larger subgroups, in subgroups of ``lanes`` invocations: each does the work of several,
    and holds their registers after its own. This encoding is not upstream's."""

    inner: Encoding
    lanes: int


@dataclass(frozen=True)
class LinearEncoding(Encoding):
    """``#ttg.linear``: bases given outright. Each basis is one coordinate tuple; one list per input dimension."""

    register: tuple[tuple[int, ...], ...]
    lane: tuple[tuple[int, ...], ...]
    warp: tuple[tuple[int, ...], ...]
    block: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class SwizzledSharedEncoding(Encoding):
    """``#ttg.swizzled_shared``: row-major in ``order``, vectors of ``vec`` permuted by the row's phase."""

    vec: int
    per_phase: int
    max_phase: int
    order: tuple[int, ...]


@dataclass(frozen=True)
class PaddedSharedEncoding(Encoding):
    """``#ttg.padded_shared``: after every ``interval`` elements, ``padding`` elements are left unused.

    ``order`` and ``shape``, or ``offset``/``block`` bases, say where an element lies before the padding.
    """

    intervals: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    offset: tuple[tuple[int, ...], ...] = ()
    block: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class SharedLinearEncoding(Encoding):
    """``#ttg.shared_linear``: bases of the offset given outright."""

    offset: tuple[tuple[int, ...], ...]
    block: tuple[tuple[int, ...], ...]
    alignment: int = 16


@dataclass(frozen=True)
class OpaqueEncoding(Encoding):
    """An encoding the reader can name but that this backend gives no meaning to (``#ttg.nvidia_mma`` and the like)."""

    mnemonic: str
    text: str


def unsliced(encoding: Encoding | None) -> Encoding | None:
    """What ``encoding`` is a slice of, or a slice of a slice."""
    while isinstance(encoding, SliceEncoding):
        encoding = encoding.parent
    return encoding


def transposed(encoding: Encoding, order: tuple[int, ...]) -> Encoding:
    """The encoding of a tensor of ``encoding`` that is transposed: its dimension i was dimension ``order[i]``."""
    if isinstance(encoding, TransposedEncoding):
        order = tuple(encoding.order[dim] for dim in order)
        encoding = encoding.inner
    return encoding if order == tuple(range(len(order))) else TransposedEncoding(encoding, order)


def transposed_back(encoding: Encoding, order: tuple[int, ...]) -> Encoding:
    """The encoding that ``transposed`` makes ``encoding`` of."""
    return transposed(encoding, tuple(order.index(dim) for dim in range(len(order))))
