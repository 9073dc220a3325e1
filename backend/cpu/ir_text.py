"""Text of LLVM IR: one function under construction, with counted loops whose bodies are callables."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class FunctionText:
    """A function's blocks, one after the other. Values are their names in the text."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._allocas: list[str] = []
        self._count = 0
        self._block = "entry"
        #: Declarations of what is called.
        self.declarations: set[str] = set()

    def value(self, text: str) -> str:
        """Appends an instruction with a result."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Appends an instruction without a result."""
        self._lines.append(f"  {text}")

    def alloca(self, type_: str, align: int) -> str:
        """Memory of the function's own, made when it is entered."""
        self._count += 1
        name = f"%v{self._count}"
        self._allocas.append(f"  {name} = alloca {type_}, align {align}")
        return name

    def call(self, result: str, name: str, arguments: Sequence[tuple[str, str]]) -> str:
        """A call of a declared function; ``arguments``: (type, value)."""
        self.declarations.add(f"declare {result} @{name}({', '.join(type_ for type_, _ in arguments)})")
        return self.value(f"call {result} @{name}({', '.join(f'{type_} {value}' for type_, value in arguments)})")

    def prefetch(self, pointer: str, level: int) -> None:
        """Asks for a line of memory, for reading; ``level``: 3 is the nearest cache. The line need not exist."""
        self.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {level}, i32 1)")

    def fill(self, pointer: str, size: int) -> None:
        """Makes so many bytes 0."""
        self.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")

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
        initial = [value for _, value in carried]
        if count <= step:
            return body("0", initial) or []
        self._count += 1
        head, before = f"loop{self._count}", self._block
        index, names = f"%i{self._count}", [f"%c{self._count}_{number}" for number in range(len(carried))]
        self.do(f"br label %{head}")
        self._label(head)
        place = len(self._lines)
        following = body(index, names) or []
        after = self.value(f"add nuw nsw i64 {index}, {step}")
        again = self.value(f"icmp ult i64 {after}, {count}")
        self.do(f"br i1 {again}, label %{head}, label %{head}x")
        phis = [f"  {index} = phi i64 [0, %{before}], [{after}, %{self._block}]"]
        for name, (type_, first), value in zip(names, carried, following, strict=True):
            phis.append(f"  {name} = phi {type_} [{first}, %{before}], [{value}, %{self._block}]")
        self._lines[place:place] = phis
        self._label(f"{head}x")
        return following

    def counted(
        self,
        count: str,
        step: int,
        body: Callable[[str, list[str]], list[str] | None],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """``loop`` for a ``count`` that is an i64, and may be 0."""
        self._count += 1
        head, before = f"loop{self._count}", self._block
        index, names = f"%i{self._count}", [f"%c{self._count}_{number}" for number in range(len(carried))]
        self.do(f"br label %{head}")
        self._label(head)
        place = len(self._lines)
        self.do(f"br i1 {self.value(f'icmp ult i64 {index}, {count}')}, label %{head}b, label %{head}x")
        self._label(f"{head}b")
        following = body(index, names) or []
        after = self.value(f"add nuw nsw i64 {index}, {step}")
        self.do(f"br label %{head}")
        phis = [f"  {index} = phi i64 [0, %{before}], [{after}, %{self._block}]"]
        for name, (type_, first), value in zip(names, carried, following, strict=True):
            phis.append(f"  {name} = phi {type_} [{first}, %{before}], [{value}, %{self._block}]")
        self._lines[place:place] = phis
        self._label(f"{head}x")
        return names

    def either(self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """One of two pieces of code, by an i1."""
        self._count += 1
        name = f"either{self._count}"
        self.do(f"br i1 {condition}, label %{name}t, label %{name}f")
        for letter, body in (("t", then), ("f", otherwise)):
            self._label(f"{name}{letter}")
            body()
            self.do(f"br label %{name}x")
        self._label(f"{name}x")

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name

    def define(self, head: str) -> str:
        """The whole function; ``head``: all before its body."""
        return "\n".join([f"{head} {{", "entry:", *self._allocas, *self._lines, "  ret void", "}"])
