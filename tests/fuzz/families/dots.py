"""Dots of every type and of sizes from 1 on, in two and three dimensions, with and without an accumulator, of operands
as they were loaded or scaled along a dimension, on the device's matrix units and without them."""

import numpy as np

from tests.fuzz.steps import Family, Writer
from tests.fuzz.tiles import UNITS

#: Type of the operands → types of the result. Small integers are exact in all of them.
TYPES = {
    "tl.float16": ("tl.float32", "tl.float16"),
    "tl.bfloat16": ("tl.float32",),
    "tl.float32": ("tl.float32",),
    "tl.float64": ("tl.float64",),
    "tl.int8": ("tl.int32",),
    "tl.float8e5": ("tl.float32",),
    "tl.float8e4nv": ("tl.float32",),
}
_RESULTS = {"tl.float16": np.float16, "tl.float32": np.float32, "tl.float64": np.float64, "tl.int32": np.int32}
_SIZES = (1, 2, 4, 8, 16, 16, 32, 32, 64)
#: Types of a kernel's dots: any, or those of matrix units, which a kernel uses if they can do all its dots.
_CHOICES = (tuple(TYPES), ("tl.float16", "tl.bfloat16", "tl.int8"), ("tl.float16",))
#: Of one tile, and multiplications of one dot.
MOST_ELEMENTS, MOST_PRODUCTS = 2048, 32768


def _start(writer: Writer) -> None:
    """Each step loads what it multiplies."""
    writer.units, writer.types = writer.rng.choice(UNITS), writer.rng.choice(_CHOICES)


def _step(writer: Writer) -> None:
    rng = writer.rng
    types = writer.types
    sizes = _SIZES if len(types) == len(TYPES) else _SIZES[4:]
    while True:
        batch = () if rng.random() < 0.75 else (rng.choice((1, 2, 4)),)
        m, n, k = (rng.choice(sizes) for _ in range(3))
        times = batch[0] if batch else 1
        if times * max(m * k, k * n, m * n) <= MOST_ELEMENTS and times * m * n * k <= MOST_PRODUCTS:
            break
    type_ = rng.choice(types)
    result = rng.choice(TYPES[type_])
    dtype = _RESULTS[result]

    def operand(rows: int, columns: int) -> tuple[str, np.ndarray]:
        """A tile of that shape, which is stored either way around, maybe times a row or a column of signs."""
        turned = rng.random() < 0.4
        shape = (*batch, columns, rows) if turned else (*batch, rows, columns)
        loaded = rng.choice((np.int8, np.float32, np.float16 if type_ == "tl.float16" else np.float32))
        value = writer.load(writer.numbers.integers(-3, 4, shape).astype(loaded))
        name, array = value.name, value.array
        if rng.random() < 0.4:
            axis = rng.randrange(len(shape))
            signs = writer.load(writer.numbers.integers(-1, 2, shape[axis]).astype(array.dtype))
            index = ", ".join(":" if dim == axis else "None" for dim in range(len(shape)))
            name = f"({name} * {signs.name}[{index}])"
            array = array * signs.array.reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
        if type_.startswith("tl.float8") and array.dtype == np.int8:
            name = f"{name}.to(tl.float32)"
        name = f"{name}.to({type_})"
        order = (0, 2, 1) if batch else (1, 0)
        return (f"tl.permute({name}, {order})", array.transpose(order)) if turned else (name, array)

    (left, x), (right, y) = operand(m, k), operand(k, n)
    product = (x.astype(np.float64) @ y.astype(np.float64)).astype(dtype)
    options = ', input_precision="ieee"' if type_ == "tl.float32" else ""
    options += f", out_dtype={result}" if result != "tl.float64" else ""
    accumulator = writer.pick(lambda value: value.array.shape == product.shape and value.array.dtype == dtype)
    choice = rng.random()
    if choice < 0.3:
        name = accumulator.name if accumulator is not None else f"tl.full({list(product.shape)}, 5, {result})"
        before = accumulator.array if accumulator is not None else dtype(5)
        if np.abs(before).max() > 500:
            name, before = f"tl.full({list(product.shape)}, 5, {result})", dtype(5)
        writer.add(f"tl.dot({left}, {right}, {name}{options})", (before + product).astype(dtype))
    elif choice < 0.5 and result != "tl.float16":
        name = writer.name()
        writer.line(
            f"{name} = tl.zeros({list(product.shape)}, {result})\n"
            f"for {name}_at in range(n):\n    {name} = tl.dot({left}, {right}, {name}{options})"
        )
        writer.add(f"{name} + 1", (writer.scalar * product + 1).astype(dtype))
    else:
        writer.add(f"tl.dot({left}, {right}{options})", product)


FAMILY = Family("dots", _start, _step, most_steps=3)
