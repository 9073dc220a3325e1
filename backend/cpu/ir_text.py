"""Text of LLVM IR: one function under construction, with counted loops whose bodies are callables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .code import Code


class FunctionText(Code):
    """A function's blocks, one after the other. Values are their names in the text."""

    def __init__(self) -> None:
        super().__init__()
        self._allocas: list[str] = []

    #: Appends an instruction with a result.
    value = Code.emit

    def alloca(self, type_: str, align: int) -> str:
        """Memory of the function's own, made when it is entered."""
        name = "%" + self.name()
        self._allocas.append(f"  {name} = alloca {type_}, align {align}")
        return name

    def spread(self, vector: str, scalar: str) -> str:
        """A vector of a type such as ``<8 x float>``, all of whose elements are ``scalar``."""
        lanes, _, element = vector[1:-1].split(" ")
        first = self.value(f"insertelement {vector} poison, {element} {scalar}, i64 0")
        return self.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def prefetch(self, pointer: str, level: int) -> None:
        """Asks for a line of memory, for reading; ``level``: 3 is the nearest cache. The line need not exist."""
        self.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {level}, i32 1)")

    def fill(self, pointer: str, size: int, byte: int = 0) -> None:
        """Makes so many bytes ``byte``."""
        self.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 {byte}, i64 {size}, i1 false)")

    def add(self, value: str, constant: int) -> str:
        """An i64 and a constant."""
        if value.isdigit():
            return str(int(value) + constant)
        return value if not constant else self.value(f"add i64 {value}, {constant}")

    def sum(self, left: str, right: str) -> str:
        """Two numbers of i64."""
        if "0" in (left, right):
            return right if left == "0" else left
        if left.isdigit() and right.isdigit():
            return str(int(left) + int(right))
        return self.value(f"add i64 {left}, {right}")

    def times(self, value: str, factor: int) -> str:
        """An i64 times a constant."""
        if factor == 0 or value == "0":
            return "0"
        if value.isdigit():
            return str(int(value) * factor)
        return value if factor == 1 else self.value(f"mul i64 {value}, {factor}")

    def element(self, type_: str, pointer: str, index: str) -> str:
        """The address of an element."""
        return pointer if index == "0" else self.value(f"getelementptr {type_}, ptr {pointer}, i64 {index}")

    def loop(
        self,
        count: int,
        step: int,
        body: Callable[[str, list[str]], list[str] | None],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """``body(index, values)`` for the index 0, ``step``, … below ``count``, each giving the next values.
        ``carried``: (type, first value). The last values; a loop of one iteration is none."""
        if count <= step:
            return body("0", [value for _, value in carried]) or []
        head, phis = self._begin_loop(carried)
        following = body(phis[0], phis[1:]) or []
        after = self._again(phis, step, following)
        self.branch(self.value(f"icmp ult i64 {after}, {count}"), head, f"{head}x")
        self.label(f"{head}x")
        return following

    def counted(
        self,
        count: str,
        step: int,
        body: Callable[[str, list[str]], list[str] | None],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """``loop`` for a ``count`` that is an i64, and may be 0."""
        head, phis = self._begin_loop(carried)
        self.branch(self.value(f"icmp ult i64 {phis[0]}, {count}"), f"{head}b", f"{head}x")
        self.label(f"{head}b")
        self._again(phis, step, body(phis[0], phis[1:]) or [])
        self.jump(head)
        self.label(f"{head}x")
        return phis[1:]

    def _begin_loop(self, carried: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
        """The label of a loop's head, and its phis: the index, and what is carried."""
        head, before = self.name("loop"), self.block
        self.jump(head)
        self.label(head)
        return head, [self.phi(type_, [(first, before)]) for type_, first in (("i64", "0"), *carried)]

    def _again(self, phis: list[str], step: int, following: Sequence[str]) -> str:
        """The next index. The loop begins anew from here with it and what follows."""
        after = self.value(f"add nuw nsw i64 {phis[0]}, {step}")
        for phi, value in zip(phis, (after, *following), strict=True):
            self.add_incoming(phi, value, self.block)
        return after

    def either(self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """One of two pieces of code, by an i1."""
        name = self.name("either")
        self.branch(condition, f"{name}t", f"{name}f")
        for letter, body in (("t", then), ("f", otherwise)):
            self.label(f"{name}{letter}")
            body()
            self.jump(f"{name}x")
        self.label(f"{name}x")

    def define(self, head: str) -> str:
        """The whole function; ``head``: all before its body."""
        return "\n".join([f"{head} {{", "entry:", *self._allocas, self.text(), "  ret void", "}"])
