# mypy: allow-untyped-defs
"""Images of convolutions as kernels read them."""

from __future__ import annotations

from functools import cached_property
from math import gcd, prod

import torch
import triton
import triton.language as tl

from .dtypes import OnHost
from .launching import launch
from .strided_shapes import power_of_two

#: Bytes of an access, and places that are counted in 32 bits.
BYTES, LIMIT = 16, 2**31
#: Positions of a tile that is copied, and bytes of its channels.
_POSITIONS, _CHANNELS = 64, 128


@triton.jit
def channels_last_kernel(
    out, image, spans, C, channels, pitch,
    SPAN: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out (N, positions, groups, CP) of image (N, groups, C, positions), both contiguous, with ``spans`` positions of
    SPAN each. The second axis of the grid are images and groups."""
    tiles = tl.cdiv(channels * VECTOR, COLUMNS)
    positions = spans * SPAN
    groups = pitch // channels
    n, group = tl.program_id(1) // groups, tl.program_id(1) % groups
    position, c = tl.program_id(0) // tiles * ROWS, tl.program_id(0) % tiles * COLUMNS
    row, column = position + tl.arange(0, ROWS)[None, :], c + tl.arange(0, COLUMNS)[:, None]
    place = ((n * groups + group) * C + column) * positions + row
    values = tl.load(image + place, mask=(row < positions) & (column < C), other=0.0)
    row, column = position + tl.arange(0, ROWS)[:, None], c + tl.arange(0, COLUMNS)[None, :]
    place = ((n * positions + row) * pitch + group * channels) * VECTOR + column
    tl.store(out + place, tl.trans(values), mask=(row < positions) & (column < channels * VECTOR))


def five_dimensions(tensor: torch.Tensor) -> torch.Tensor:
    """An image, or weights, of which the dimensions that were not there have size 1."""
    while tensor.dim() < 5:
        tensor = tensor.unsqueeze(2)
    return tensor


class Image:
    """An image (N, groups C, D, H, W) that is read: ``dense``, without gaps, and ``last``, with its channels last and
    each group's padded with zeros to ``pitch`` elements."""

    def __init__(self, given: torch.Tensor, groups: int) -> None:
        self.given, self.groups = five_dimensions(given), groups
        self.channels = self.given.shape[1] // groups
        self.vector = BYTES // given.element_size()
        self.pitch = -(-self.channels // self.vector) * self.vector
        if self.given.numel() // self.channels * self.pitch >= LIMIT:
            raise OnHost("more elements than are counted in 32 bits")

    @cached_property
    def has_channels_last(self) -> bool:
        """Whether they follow each other in memory."""
        return self.given.is_contiguous(memory_format=torch.channels_last_3d)

    @cached_property
    def dense(self) -> torch.Tensor:
        """The image, its channels last or as contiguous memory has them."""
        return self.given if self.has_channels_last else self.given.contiguous()

    @cached_property
    def last(self) -> torch.Tensor:
        """(N, D, H, W, groups, pitch)."""
        n, _, *sizes = self.given.shape
        if self.has_channels_last and self.pitch == self.channels:
            return self.given
        image, positions = self.dense, prod(sizes)
        if self.has_channels_last:  # of few channels, which are padded
            image = torch.empty(image.shape, dtype=image.dtype, device=image.device).copy_(image)
        out = image.new_empty((n, *sizes, self.groups, self.pitch))
        vector = self.vector
        rows = min(_POSITIONS, power_of_two(positions))
        columns = min(_CHANNELS // image.element_size(), power_of_two(self.pitch))
        grid = -(-positions // rows) * -(-self.pitch // columns), n * self.groups, 1
        span = gcd(vector, positions)
        arguments = {"out": out, "image": image, "spans": positions // span, "C": self.channels}
        arguments |= {"channels": self.pitch // vector, "pitch": self.groups * self.pitch // vector}
        constants = {"SPAN": span, "VECTOR": vector, "ROWS": rows, "COLUMNS": columns}
        launch(channels_last_kernel, grid, arguments, constants, divisible=frozenset())
        return out
