"""How a kernel of an emulated device is entered: native/cpu/emulation.cpp calls a function for each subgroup."""

from __future__ import annotations

#: What the function is told of its program, (type, value) each, in a struct on the stack.
_TOLD = (
    ("ptr", "%arguments"),
    *(("i32", value) for value in ("%x", "%y", "%z", "%gx", "%gy", "%gz")),
    ("ptr", "%scratch"),
    ("ptr", "%stop"),
)
_STRUCT = "{ " + ", ".join(type_ for type_, _ in _TOLD) + " }"

#: Of the entry: room for the struct.
FRAME = f"  %frame = alloca {_STRUCT}, align 16\n"


def _fields(line: str) -> list[str]:
    """For each field of the struct its place, %at<number>, and a line with its number, type and value."""
    lines = []
    for number, (type_, value) in enumerate(_TOLD):
        lines.append(f"  %at{number} = getelementptr {_STRUCT}, ptr %frame, i32 0, i32 {number}")
        lines.append(line.format(number=number, type=type_, value=value))
    return lines


def run(subgroups: int, shared_bytes: int) -> str:
    """Lines of the entry that run a program's subgroups."""
    told = f"ptr @subgroup, ptr %frame, i32 {subgroups}, ptr %scratch, i64 {shared_bytes}"
    stores = _fields("  store {type} {value}, ptr %at{number}")
    return "\n".join([*stores, f"  call void @triton_spirv_run_subgroups({told})"]) + "\n"


def function() -> str:
    """The function of a subgroup, and what runs it."""
    values = ", ".join(f"{type_} %value{number}" for number, (type_, _) in enumerate(_TOLD))
    return "\n".join(
        [
            "declare void @triton_spirv_run_subgroups(ptr, ptr, i32, ptr, i64)",
            "define internal void @subgroup(ptr %frame, i32 %number) nounwind {",
            *_fields("  %value{number} = load {type}, ptr %at{number}"),
            f"  call void @program({values}, i32 %number, i1 false, ptr null)",
            "  ret void",
            "}",
            "",
        ]
    )
