"""Plans of dots on matrix units, carried out on element names: every product is made once, of the right elements."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.dot_fragments import MatrixDot, plan_matrix_dot
from triton.backends.spirv.layouts.linear import LinearLayout, Point, unflatten
from triton.backends.spirv.matrices import MatrixConfiguration, Position
from triton.backends.spirv.ttgir.encodings import DotOperandEncoding, Encoding, FragmentEncoding, NvidiaMmaEncoding

_HOPPER = PROFILES["nvidia-hopper"].matrices
F16, S8 = (next(one for one in _HOPPER if one.n == 8 and one.a == name) for name in ("f16", "s8"))
BF16 = replace(F16, a="bf16", b="bf16")
OTHER = PROFILES["lavapipe-26"].matrices[1]
EXTENTS = st.sampled_from((1, 2, 4, 8, 16, 32, 64))


def carry_out(
    plan: MatrixDot, configuration: MatrixConfiguration, a: LinearLayout, b: LinearLayout, c: LinearLayout
) -> None:
    """Multiplies as the hardware does, and checks that each element of the result sums every step of K once."""
    for warp in range(c.input_size("warp")):

        def matrix(
            fragment: tuple[int | None, ...], use: int, layout: LinearLayout, warp: int = warp
        ) -> dict[Position, Point | None]:
            found: dict[Position, Point | None] = {}
            for lane in range(configuration.lanes):
                for component, register in enumerate(fragment):
                    element = None
                    if register is not None:
                        index = layout.apply_flat(register=register, lane=lane, warp=warp)
                        element = unflatten(index, layout.shape)
                    place = configuration.maps[use].place(component, lane)
                    assert found.setdefault(place, element) == element  # lanes that hold copies agree
            return found

        sums: dict[tuple[int, Position], Counter[int]] = {}
        for left, right, result in plan.products:
            rows, columns = matrix(plan.left[left], 0, a), matrix(plan.right[right], 1, b)
            for place, element in matrix(plan.result[result], 2, c).items():
                assert element is not None
                *batch, row, column = element
                total = sums.setdefault((result, place), Counter())
                for k in range(configuration.k):
                    x, y = rows[place[0], k], columns[k, place[1]]
                    assert (x is None) == (y is None)
                    if x is not None and y is not None:
                        assert (*batch, row) == x[:-1] and (*batch, column) == (*y[:-2], y[-1]) and x[-1] == y[-2]
                        total[x[-1]] += 1
        assert all(total == Counter(range(a.shape[-1])) for total in sums.values())
    images = c.images("register")
    assert [images[plan.result[fragment][component] or 0] for fragment, component in plan.owners] == images


def layouts(
    encodings: tuple[Encoding, Encoding, Encoding], batch: tuple[int, ...], m: int, n: int, k: int
) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    a, b, c = encodings
    return (
        distributed_layout(a, (*batch, m, k)),
        distributed_layout(b, (*batch, k, n)),
        distributed_layout(c, (*batch, m, n)),
    )


@given(st.data(), EXTENTS, EXTENTS, EXTENTS, st.sampled_from((0, 1, 4)))
def test_upstreams_fragments(data: st.DataObject, m: int, n: int, k: int, batch: int) -> None:
    configuration, k_width = data.draw(st.sampled_from(((F16, 2), (F16, 4), (F16, 8), (S8, 4))))
    warps = tuple(data.draw(st.sampled_from((1, 2, 4))) for _ in range(3 if batch else 2))
    mma = NvidiaMmaEncoding(2, 0, warps, (1, 16, 8)[0 if batch else 1 :])
    encodings = DotOperandEncoding(0, mma, k_width), DotOperandEncoding(1, mma, k_width), mma
    a, b, c = layouts(encodings, (batch,) if batch else (), m, n, k)
    plan = plan_matrix_dot(a, b, c, configuration)
    if plan is None:  # the lanes alone hold more steps of K than there are
        assert k < 4 * k_width
    else:
        carry_out(plan, configuration, a, b, c)
        assert len(plan.products) * 16 * 8 * configuration.k * c.input_size("warp") >= m * n * k


@given(EXTENTS, EXTENTS, EXTENTS, st.sampled_from(((1, 1), (2, 1), (2, 4))))
def test_a_devices_own_fragments(m: int, n: int, k: int, warps: tuple[int, int]) -> None:
    def own(use: int, private: int | None) -> FragmentEncoding:
        map_ = OTHER.maps[use]
        return FragmentEncoding(*OTHER.extents[use], map_.registers, map_.lanes, warps, private)

    a, b, c = layouts((own(0, 1), own(1, 0), own(2, None)), (), m, n, k)
    plan = plan_matrix_dot(a, b, c, OTHER)
    assert plan is not None or k < OTHER.k
    if plan is not None:
        carry_out(plan, OTHER, a, b, c)


def test_layouts_of_other_subgroups_are_not_fragments() -> None:
    mma = NvidiaMmaEncoding(2, 0, (1, 1), (16, 8))
    a, b, c = layouts((DotOperandEncoding(0, mma, 2), DotOperandEncoding(1, mma, 2), mma), (), 16, 8, 16)
    assert plan_matrix_dot(a, b, c, OTHER) is None
    assert plan_matrix_dot(a, b, c, BF16) is not None
