"""Dots, in every precision."""

import numpy as np

from tests.fuzz.families.functions import drawing, judging
from tests.fuzz.families.functions.drawing import EIGHTS, Dtype, is_float
from tests.fuzz.families.functions.row import Row
from tests.fuzz.steps import TYPES, Writer

#: How far off the product of two f32 may be, for each precision, as a part of it: their parts have so many bits.
_PRECISIONS = {"ieee": 2.0**-24, "tf32": 2.0**-10, "tf32x3": 2.0**-19, "bf16x3": 2.0**-14, "bf16x6": 2.0**-20}
#: Of one tile, and multiplications.
_MOST_ELEMENTS, _MOST_PRODUCTS = 1024, 16384


def _write(writer: Writer, dtype: Dtype) -> None:
    rng = writer.rng
    while True:
        batch = () if rng.random() < 0.8 else (rng.choice((1, 2, 4)),)
        m, n, k = (rng.choice((1, 2, 8, 16, 32, 64)) for _ in range(3))
        times = batch[0] if batch else 1
        if times * max(m * k, k * n, m * n) <= _MOST_ELEMENTS and times * m * n * k <= _MOST_PRODUCTS:
            break
    into = np.dtype("int32") if dtype == np.int8 else dtype if dtype == np.float64 else np.dtype("float32")
    if dtype == np.float16 and rng.random() < 0.3:
        into = dtype
    shapes = ((*batch, m, k), (*batch, k, n), (*batch, m, n))
    draw = drawing.numbers if dtype == np.int8 else drawing.moderate
    a, b, before = (draw(writer, shape, type_) for shape, type_ in zip(shapes, (dtype, dtype, into), strict=True))
    precision = rng.choice(list(_PRECISIONS)) if dtype == np.float32 else ""
    if is_float(dtype) and dtype.itemsize > 1 and precision in ("", "ieee") and rng.random() < 0.1:
        where = writer.numbers.random(a.shape) < 0.02
        a = np.where(where, dtype.type(rng.choice((np.inf, -np.inf, np.nan))), a)
    text = ", ".join(writer.load(part).name for part in (a, b))
    wide = np.longdouble if is_float(dtype) else np.int64
    with np.errstate(all="ignore"):
        wanted = a.astype(wide) @ b.astype(wide)
        size = np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
        if rng.random() < 0.5:
            text += f", {writer.load(before).name}"
            wanted, size = wanted + before.astype(wide), size + np.abs(before.astype(wide))
    text += f", input_precision='{precision}'" if precision else ""
    text = f"tl.dot({text}, out_dtype={TYPES[into]})" if into != np.float64 else f"tl.dot({text})"
    if not is_float(into):
        judge = judging.exact(wanted.astype(np.int32))
    else:
        judge = judging.within(((k + 2) * float(np.finfo(into).eps) + _PRECISIONS.get(precision, 0)) * size, wanted)
    writer.add_judged(text, (wanted.astype(into), judge))


PRODUCTS = [
    Row("dot", ("float16", "bfloat16", "float32", "float64", "int8", *EIGHTS),
        "the sum of products, and an accumulator", _write,
        "of the magnitudes' sum: a unit an addition, and what is cut off of an operand's bits",
        "numbers of a few units, some infinite or NaN; all 8-bit integers"),
]  # fmt: skip
