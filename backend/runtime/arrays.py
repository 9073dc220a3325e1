"""NumPy arrays as kernel arguments, without torch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..abi.elements import ARRAY_TYPES


class Array:
    """A NumPy array as Triton wants a tensor: ``dtype``, ``shape``, ``stride()``, ``data_ptr()``.

    It shares the array's memory and keeps it alive; what a kernel writes is seen through the array.
    """

    __slots__ = ("_address", "_range", "array", "dtype")
    #: As torch's tensors have it: the memory is the host's.
    is_cpu = True

    def __new__(cls, array: Any) -> Array:
        """A ReadOnlyArray where the array is read-only."""
        return super().__new__(cls if array.flags.writeable else ReadOnlyArray)

    def __init__(self, array: Any) -> None:
        name = str(array.dtype)
        if name not in ARRAY_TYPES or not array.dtype.isnative:
            raise TypeError(
                f"an array of {array.dtype} cannot be passed to a kernel; convert it with astype() to one "
                f"of {', '.join(sorted(ARRAY_TYPES))}"
            )
        self.array = array
        self.dtype = array.dtype
        self._address: int = array.__array_interface__["data"][0]
        self._range = -1

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._address

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return tuple(self.array.shape)

    def stride(self, dimension: int | None = None) -> Any:
        """Elements (not bytes) between neighbours along a dimension, or along each."""
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if dimension is None else strides[dimension]

    def numel(self) -> int:
        """Number of elements."""
        return int(self.array.size)

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.array.itemsize)

    def storage(self) -> tuple[int, int, bool]:
        """(address, bytes, writeable) of the memory that the array is a view of."""
        base = self.array
        owner = base.base
        while owner is not None:  # NumPy's as_strided puts its own object between
            if hasattr(owner, "__array_interface__") and hasattr(owner, "strides"):
                base = owner
            owner = getattr(owner, "base", None)
        low = high = base.__array_interface__["data"][0]
        for size, step in zip(base.shape, base.strides, strict=True):
            if size == 0:
                return low, 0, False
            low, high = (low + min(0, (size - 1) * step), high + max(0, (size - 1) * step))
        return low, high + base.itemsize - low, bool(self.array.flags.writeable)

    def ptr_range(self) -> int:
        """Bytes of that memory. It does not change: NumPy resizes no array that something refers to."""
        if self._range < 0:
            self._range = self.storage()[1]
        return self._range

    def __repr__(self) -> str:
        return f"Array({self.array!r})"


class ReadOnlyArray(Array):
    """An array that kernels must not write: it is copied for a launch, and refused if the kernel may write it."""

    __slots__ = ()
    is_cpu = False
    #: What the native launcher knows it by.
    device = SimpleNamespace(type="read-only", index=None)


def array(values: Any) -> Array:
    """The NumPy array ``values`` as a kernel argument, sharing its memory. Raises TypeError on other objects."""
    if not hasattr(values, "__array_interface__") or not hasattr(values, "flags"):
        raise TypeError(f"array() takes a NumPy array, not {type(values).__name__}; convert it with numpy.asarray()")
    return Array(values)
