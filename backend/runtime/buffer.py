"""Arrays in device memory, without torch. Kernels on any device take them without a copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..abi.elements import ARRAY_TYPES
from .context import NAME, Context, current
from .interpreted import InterpretedBuffer

Shape = int | Sequence[int]


class SpirvDevice:
    """Where a DeviceBuffer is, as ``torch.device`` says it: ``type`` "spirv" and ``index`` of the device."""

    __slots__ = ("index", "type")

    def __init__(self, index: int) -> None:
        self.type = NAME
        self.index = index

    def __repr__(self) -> str:
        return f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return (getattr(other, "type", None), getattr(other, "index", None)) == (self.type, self.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


@cache
def _device(index: int) -> SpirvDevice:
    return SpirvDevice(index)


class DeviceBuffer:
    """A contiguous array in the memory of a Vulkan device, with what Triton asks of a tensor.

    ``dtype`` is NumPy's or ml_dtypes'. Reading and writing from the host wait for the kernels launched before.
    """

    __slots__ = ("_address", "_context", "_memory", "device", "dtype", "shape")
    is_cpu = False

    def __init__(self, context: Context, memory: Any, address: int, shape: tuple[int, ...], dtype: Any) -> None:
        self._context = context
        self._memory = memory
        self._address = address
        self.device = _device(context.index)
        self.dtype = dtype
        self.shape = shape

    def data_ptr(self) -> int:
        """Device address of the first element. Raises RuntimeError once freed."""
        if not self._memory.address:
            raise RuntimeError(f"{self!r} was freed")
        return self._address

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.element_size()

    def stride(self, dimension: int | None = None) -> Any:
        """Elements between neighbours along a dimension, or along each."""
        steps = [1]
        for size in reversed(self.shape[1:]):
            steps.append(steps[-1] * size)
        strides = tuple(reversed(steps[: len(self.shape)]))
        return strides if dimension is None else strides[dimension]

    def storage(self) -> tuple[int, int, bool]:
        """(address, bytes, writeable) of the memory that it is a view of."""
        return self._memory.address, self._memory.bytes, True

    def ptr_range(self) -> int:
        """Bytes of that memory."""
        return self._memory.bytes

    def reshape(self, *shape: int) -> DeviceBuffer:
        """This memory with another shape of as many elements."""
        wanted = _shape(shape[0] if len(shape) == 1 else shape)
        if math.prod(wanted) != self.numel():
            raise ValueError(f"{self.numel()} elements have no shape {wanted}")
        return DeviceBuffer(self._context, self._memory, self._address, wanted, self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int | slice) -> DeviceBuffer:
        """A view along the first dimension: a row, or consecutive rows. Raises IndexError, ValueError."""
        if not self.shape:
            raise IndexError("a buffer without dimensions cannot be indexed")
        row = math.prod(self.shape[1:]) * self.element_size()
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            if step != 1:
                raise ValueError(f"a device buffer's slice has step 1, not {step}")
            shape = (max(0, stop - start), *self.shape[1:])
        else:
            start = index + self.shape[0] if index < 0 else index
            if not 0 <= start < self.shape[0]:
                raise IndexError(f"index {index} is out of range for {self.shape[0]} rows")
            shape = self.shape[1:]
        return DeviceBuffer(self._context, self._memory, self._address + start * row, shape, self.dtype)

    def to_numpy(self) -> Any:
        """A NumPy array with a copy of the values, after all kernels launched before."""
        import numpy

        values = numpy.empty(self.shape, self.dtype)
        if values.nbytes:
            self._context.native.download(values.__array_interface__["data"][0], self.data_ptr(), values.nbytes)
        return values

    def copy_from(self, values: Any) -> DeviceBuffer:
        """Copy the values of an array, or of another buffer, of the same shape and dtype; self. A buffer on another
        device goes through host memory."""
        if isinstance(values, DeviceBuffer):
            self._check_same(values)
            if values._context is not self._context:
                return self.copy_from(values.to_numpy())
            self._context.native.copy(self.data_ptr(), values.data_ptr(), self.nbytes)
            return self
        import numpy

        array = numpy.ascontiguousarray(values)
        self._check_same(array)
        if array.nbytes:
            self._context.native.upload(self.data_ptr(), array.__array_interface__["data"][0], array.nbytes)
        return self

    def _check_same(self, values: Any) -> None:
        # NumPy makes an array without dimensions one-dimensional.
        if values.dtype != self.dtype or (tuple(values.shape) or (1,)) != (self.shape or (1,)):
            raise ValueError(
                f"{tuple(values.shape)} of {values.dtype} does not fit a device buffer of {self.shape} of {self.dtype}"
            )

    def fill(self, value: Any) -> DeviceBuffer:
        """Set every element; self."""
        import numpy

        one = numpy.full(1, value, self.dtype).tobytes()
        repeats = len(one) <= 4 or one[:4] * (len(one) // 4) == one
        if repeats and self.nbytes % 4 == 0 and self.data_ptr() % 4 == 0:
            self._context.native.fill(self.data_ptr(), self.nbytes, int.from_bytes((one * 4)[:4], "little"))
            return self
        return self.copy_from(numpy.full(self.shape, value, self.dtype))

    def free(self) -> None:
        """Give the memory back now; it and its views are unusable from then on."""
        self._memory.free()

    def interpreted(self) -> InterpretedBuffer:
        """What stands for this buffer in a launch that Triton's interpreter runs (``TRITON_INTERPRET=1``)."""
        return InterpretedBuffer(self)

    def __repr__(self) -> str:
        return f"DeviceBuffer({self.shape}, {self.dtype}, {self.device!r})"


def _shape(shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"a shape has no negative sizes: {sizes}")
    return sizes


def empty(shape: Shape, dtype: Any, context: Context | None = None) -> DeviceBuffer:
    """A buffer of ``shape`` whose values are what was there. ``dtype``: NumPy's name or dtype, or ml_dtypes'.

    ``context``: of the device that it is made on; None: the current one. Raises TypeError on a dtype that kernels do
    not know, OutOfDeviceMemory, DeviceUnavailable.
    """
    import numpy

    element = numpy.dtype(dtype)
    if str(element) not in ARRAY_TYPES or not element.isnative:
        raise TypeError(f"a kernel cannot point at {element}; known: {', '.join(sorted(ARRAY_TYPES))}")
    context = context or current()
    sizes = _shape(shape)
    memory = context.memory.allocate(math.prod(sizes) * element.itemsize)
    return DeviceBuffer(context, memory, memory.address, sizes, element)


def zeros(shape: Shape, dtype: Any, context: Context | None = None) -> DeviceBuffer:
    """A buffer as ``empty`` gives it, with zeros."""
    return empty(shape, dtype, context).fill(0)


def full(shape: Shape, value: Any, dtype: Any, context: Context | None = None) -> DeviceBuffer:
    """A buffer as ``empty`` gives it, with ``value`` everywhere."""
    return empty(shape, dtype, context).fill(value)


def from_numpy(values: Any, context: Context | None = None) -> DeviceBuffer:
    """A buffer with a copy of a NumPy array's values."""
    return empty(values.shape, values.dtype, context).copy_from(values)
