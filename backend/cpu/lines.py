"""Where code comes from, as LLVM's debug information: lines of the user's source, for faults and for listings."""

from __future__ import annotations

import os


class Lines:
    """The places of one function. ``metadata``: the lines of LLVM IR that they refer to."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._next = 10
        self._files: dict[str, int] = {}
        self._places: dict[tuple[str, int, int], str] = {}
        self.metadata: list[str] = []
        #: The scopes of the function and of what it is inlined in, and the place of the call; "" where none is known.
        self.scope = self.entry = self.call = ""

    def place(self, line: tuple[str, int, int] | None) -> str:
        """What is appended to an instruction of a place; nothing for one that is not known."""
        if line is None:
            return f", !dbg !{self._entry()}" if self.scope else ""
        found = self._places.get(line)
        if found is None:
            number = self._number(f"!DILocation(line: {line[1]}, column: {line[2]}, scope: !{self._file(line[0])})")
            found = self._places[line] = f", !dbg !{number}"
        return found

    def _entry(self) -> int:
        found = self._places.get(("", 0, 0))
        if found is None:
            number = self._number(f"!DILocation(line: 0, column: 0, scope: {self.scope})")
            found = self._places["", 0, 0] = str(number)
        return int(found)

    def _number(self, text: str) -> int:
        self._next += 1
        self.metadata.append(f"!{self._next} = {text}")
        return self._next

    def _file(self, path: str) -> int:
        """The scope of a file: the function, or a block of it in another file."""
        if path not in self._files:
            folder, name = os.path.split(path)
            file = self._number(f'!DIFile(filename: "{_escaped(name)}", directory: "{_escaped(folder)}")')
            if not self._files:
                kind = self._number("!DISubroutineType(types: !{})")
                unit = self._number(
                    f"distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, isOptimized: true, "
                    "runtimeVersion: 0, emissionKind: LineTablesOnly)"
                )
                number, entry = (
                    self._number(
                        f'distinct !DISubprogram(name: "{_escaped(self._kernel)}", scope: !{file}, file: !{file}, '
                        f"line: 1, type: !{kind}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})"
                    )
                    for _ in range(2)
                )
                self.scope, self.entry = f"!{number}", f"!{entry}"
                self.call = f"!{self._number(f'!DILocation(line: 0, column: 0, scope: !{entry})')}"
                self.metadata.append(f"!llvm.dbg.cu = !{{!{unit}}}")
                self.metadata.append("!llvm.module.flags = !{!1, !2}")
                self.metadata.append('!1 = !{i32 2, !"Debug Info Version", i32 3}')
                self.metadata.append('!2 = !{i32 7, !"Dwarf Version", i32 4}')
                self._files[path] = number
            else:
                first = next(iter(self._files.values()))
                self._files[path] = self._number(
                    f"distinct !DILexicalBlockFile(scope: !{first}, file: !{file}, discriminator: 0)"
                )
        return self._files[path]


def _escaped(text: str) -> str:
    return "".join(
        c if c.isprintable() and c not in '"\\' and c.isascii() else "".join(f"\\{b:02X}" for b in c.encode())
        for c in text
    )
