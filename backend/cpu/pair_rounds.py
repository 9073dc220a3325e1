"""Products of the rounds of a loop whose factors are bfloat16, by an instruction that adds two products: VDPBF16PS.

It is used where it does twice as much as FMA (AMD's Zen 4 and 5; triton_spirv/processor.hpp says where). Results have
the bits of fused multiply-adds with k ascending. The instruction adds the product of a word's upper half first, and
rounds it (of 64 million random sums on a Zen 5 each had those bits), so the first k of two is there.

It takes subnormal numbers for zeros: factors, sums and results. All nonzero factors of A are multiples of 2^(a-134),
those of B of 2^(b-134), where a and b are the least biased exponents. If a + b is _LEAST_PRODUCT at least, products are
multiples of 2^-126, the least normal number. If each nonzero sum in C has a biased exponent of _LEAST_SUM at least, so
are all sums, and rounding keeps that. Words of which that is not known are multiplied by FMA:
those of the first rows, which are multiplied while B is packed, once more.
"""

from __future__ import annotations

from ..abi.tile_products import RoundsProduct
from .byte_kernels import ByteInstruction
from .byte_rounds import WORDS, ByteRounds, Packed
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock

_INSTRUCTION = ByteInstruction(2, "llvm.x86.avx512bf16.dpbf16ps.512", features="+avx512bf16")
_FACTORS, _SUMS, _WORDS, _BITS = "<32 x bfloat>", "<16 x float>", "<16 x i32>", "<32 x i16>"
#: All bits of factors.
_ALL = "splat (i16 -1)"
_LANES = 16
_LEAST_PRODUCT, _LEAST_SUM = 2 * 134 - 126, 24
#: Rows of C from which on it is worth packing the pairs: for fewer, FMA reads B where it is.
_LEAST_ROWS = 32


def suits(product: RoundsProduct, block: RegisterBlock, host: Host) -> bool:
    """Whether a product is one of pairs."""
    return (
        "avx512bf16" in host.features
        and product.a[0] == product.b[0] == "bf16"
        and product.element == "f32"
        and block.lanes == _LANES
        and product.m >= _LEAST_ROWS
    )


class PairRounds(ByteRounds):
    """The text of one product."""

    _together = 1

    def __init__(self, text: FunctionText, product: RoundsProduct, block: RegisterBlock) -> None:
        super().__init__(text, product, block, _INSTRUCTION)
        #: Where what tells the least exponents of copied factors is (_lesser).
        self._least = text.alloca(_BITS, 64)
        self._store_least(_ALL)
        #: The least exponent of A's words; where it is whether all sums of products are multiples of 2^-126, an i1.
        self._least_of_a, self._are_exact = "", text.alloca("i1", 1)

    def write(self) -> str:
        """Writes everything between the head of the function and its return; the attributes that it needs."""
        self.emit_rounds()
        self._lines.add_zeros()
        return _INSTRUCTION.attribute

    # -- words --------------------------------------------------------------------------------------------------------
    def _prepare_rows(self, start: str, count: str, apart: tuple[str, str]) -> None:
        """Extends ByteRounds._prepare_rows()."""
        self._store_least(_ALL)
        super()._prepare_rows(start, count, apart)
        self._least_of_a = self._exponent(self._text.value(f"load {_BITS}, ptr {self._least}, align 64"))

    def _copy(self, source: str, target: str, count: str, flips: bool) -> None:
        """Implements ByteRounds._copy(): halves of words change places. The last word may have one factor."""
        text, together = self._text, 2 * _LANES
        least = text.value(f"load {_BITS}, ptr {self._least}, align 64")

        def vector(at: str, least: list[str]) -> list[str]:
            value = text.value(f"load {_WORDS}, ptr {text.element('i16', source, at)}, align 1")
            value = text.intrinsic("fshl", _WORDS, value, value, "splat (i32 16)")
            text.do(f"store {_WORDS} {value}, ptr {text.element('i16', target, at)}, align 1")
            return [self._lesser(least[0], self._cast(value, _WORDS, _BITS))]

        vectors = text.value(f"and i64 {count}, {-together}")
        self._store_least(text.counted(vectors, together, vector, [(_BITS, least)])[0])
        rest = text.value(f"sub i64 {count}, {vectors}")

        def factor(number: str, _: list[str]) -> None:
            at = text.sum(number, vectors)
            value = text.value(f"load i16, ptr {text.element('i16', source, at)}, align 1")
            place = text.element("i16", target, text.value(f"xor i64 {at}, 1"))
            text.do(f"store i16 {value}, ptr {place}, align 1")

        def others() -> None:
            place = text.element("i16", target, vectors)
            text.do(f"store {_BITS} zeroinitializer, ptr {place}, align 1")
            text.counted(rest, 1, factor)
            value = text.value(f"load {_BITS}, ptr {place}, align 1")
            least = text.value(f"load {_BITS}, ptr {self._least}, align 64")
            self._store_least(self._lesser(least, value))

        text.either(text.value(f"icmp ne i64 {rest}, 0"), others, lambda: None)

    def _ordered(self, places: list[str]) -> list[str]:
        """Implements ByteRounds._ordered()."""
        type_ = f"<{self._block.columns} x i16>"
        return [self._text.value(f"load {type_}, ptr {place}, align 1") for place in reversed(places)]

    def _within(self, k: str) -> str:
        """Implements ByteRounds._within()."""
        return self._text.value(f"xor i64 {super()._within(k)}, 1")

    def _pack_apart(self, column: str, behind: str, count: str) -> None:
        """Extends ByteRounds._pack_apart()."""
        text = self._text
        super()._pack_apart(column, behind, count)

        def vector(at: str, least: list[str]) -> list[str]:
            value = text.value(f"load {_BITS}, ptr {text.element('i32', self._panel, at)}, align 64")
            return [self._lesser(least[0], value)]

        self._note(text.loop(WORDS * self._block.columns, _LANES, vector, [(_BITS, _ALL)])[0])

    # -- exponents ----------------------------------------------------------------------------------------------------
    def _store_least(self, value: str) -> None:
        self._text.do(f"store {_BITS} {value}, ptr {self._least}, align 64")

    def _lesser(self, least: str, factors: str) -> str:
        """The least of numbers that tell exponents: twice the factors without their signs, less 1, so that a zero has
        the largest."""
        text = self._text
        value = text.value(f"add {_BITS} {text.value(f'add {_BITS} {factors}, {factors}')}, splat (i16 -1)")
        return text.intrinsic("umin", _BITS, least, value)

    def _note(self, least: str) -> None:
        """Notes whether all sums are exact, by what tells the least exponent of B."""
        text = self._text
        total = text.value(f"add i32 {self._exponent(least)}, {self._least_of_a}")
        text.do(f"store i1 {text.value(f'icmp sge i32 {total}, {_LEAST_PRODUCT}')}, ptr {self._are_exact}, align 1")

    def _exponent(self, least: str) -> str:
        """The least biased exponent, an i32: for a subnormal factor one that is too small for any other."""
        text = self._text
        found = text.value(f"zext i16 {text.call('llvm.vector.reduce.umin.v32i16', 'i16', [(_BITS, least)])} to i32")
        exponent = text.value(f"lshr i32 {text.value(f'add i32 {found}, 1')}, 8")
        return text.value(f"select i1 {text.value(f'icmp eq i32 {exponent}, 0')}, i32 -1024, i32 {exponent}")

    # -- C ------------------------------------------------------------------------------------------------------------
    def _multiply(self, row: str, column: str, rows: int, words: str, packed: Packed | None = None) -> None:
        """Implements ByteRounds._multiply()."""
        text, block, step = self._text, self._block, self._rounds.row
        c = text.element("float", "%c", text.sum(text.times(row, step), column))
        left = text.element("i32", self._words_of_a, text.times(row, WORDS))
        places = [(i, j) for i in range(rows) for j in range(block.vectors)]
        pointers = [text.element("float", c, str(i * step + j * block.lanes)) for i, j in places]
        initial = [text.value(f"load {_SUMS}, ptr {pointer}, align 4") for pointer in pointers]
        least = "splat (i32 -1)"
        for total in initial:
            bits = text.value(f"bitcast {_SUMS} {total} to {_WORDS}")
            bits = text.value(f"add {_WORDS} {text.value(f'add {_WORDS} {bits}, {bits}')}, splat (i32 -1)")
            least = text.intrinsic("umin", _WORDS, least, bits)
        least = text.call("llvm.vector.reduce.umin.v16i32", "i32", [(_WORDS, least)])
        exact = text.value(f"icmp uge i32 {least}, {(_LEAST_SUM << 24) - 1}")

        def products(pairs: bool, packed: Packed | None = None) -> list[str]:
            """The sums; those of what is packed meanwhile, and what tells its least exponent."""

            def body(k: str, found: list[str]) -> list[str]:
                if packed:
                    columns = packed(k)
                else:
                    below = text.element("i32", self._panel, text.times(k, block.columns))
                    columns = [self._load(_WORDS, below, j * block.lanes) for j in range(block.vectors)]
                beside = text.element("i32", left, k)
                spread = [self._spread(self._load("i32", beside, i * WORDS)) for i in range(rows)]
                add = self._add_pair if pairs else self._add_apart
                totals = [add(spread[i], columns[j], total) for (i, j), total in zip(places, found, strict=False)]
                for least in found[len(places) :]:
                    for column in columns:
                        least = self._lesser(least, self._cast(column, _WORDS, _BITS))
                    totals.append(least)
                return totals

            carried = [*((_SUMS, value) for value in initial), *([(_BITS, _ALL)] if packed else [])]
            return text.counted(words, 1, body, carried)

        def store(totals: list[str]) -> None:
            for pointer, total in zip(pointers, totals, strict=True):
                text.do(f"store {_SUMS} {total}, ptr {pointer}, align 4")

        # They may turn out not to be exact, and are done again then.
        totals = products(True, packed) if packed else []
        if packed:
            self._note(totals.pop())
        both = text.value(f"and i1 {exact}, {text.value(f'load i1, ptr {self._are_exact}, align 1')}")
        text.either(both, lambda: store(totals or products(True)), lambda: store(products(False)))

    def _add_pair(self, left: str, right: str, total: str) -> str:
        """Adds the products of words to sums."""
        factors = [(_FACTORS, self._cast(word, _WORDS, _FACTORS)) for word in (left, right)]
        return self._text.call(_INSTRUCTION.name, _SUMS, [(_SUMS, total), *factors])

    def _add_apart(self, left: str, right: str, total: str) -> str:
        """Adds the products of words of any numbers, the upper halves' first."""
        text = self._text
        for how in (f"and {_WORDS} {{}}, splat (i32 -65536)", f"shl {_WORDS} {{}}, splat (i32 16)"):
            factors = [self._cast(text.value(how.format(word)), _WORDS, _SUMS) for word in (left, right)]
            total = text.intrinsic("fma", _SUMS, *factors, total)
        return total
