"""Vulkan is one kind of device: nothing outside its rooms names a type, a function or a constant of it."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton.backends.spirv.runtime.device_choice import KINDS

BACKEND = Path(__file__).parents[3] / "backend"
#: Vulkan's rooms.
ROOMS = (BACKEND / "runtime" / "vulkan", BACKEND / "native" / "vulkan")
#: VkBuffer, vkCmdDispatch, VK_TIMEOUT, PFN_vkCmdDispatch, #include <vulkan/…>, and the Python package's functions.
NAME = re.compile(r"\b(?:PFN_)?(?:Vk[A-Z]\w+|vk[A-Z]\w+|VK_[A-Z]\w+|vulkan_core)\b")


def is_outside(path: Path) -> bool:
    """Whether a file is in none of Vulkan's rooms."""
    return not any(path.is_relative_to(room) for room in ROOMS)


def without_comments(cpp: str) -> str:
    """C++ without comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", cpp, flags=re.DOTALL)


def python_names(text: str) -> Iterator[str]:
    """The names that Python code uses, without comments and strings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string


def test_cpp_outside_vulkans_room_names_nothing_of_vulkan() -> None:
    files = [path for path in (BACKEND / "native").rglob("*") if path.suffix in (".h", ".cpp")]
    found = {
        f"{path.relative_to(BACKEND)}: {name}"
        for path in files
        if is_outside(path)
        for name in NAME.findall(without_comments(path.read_text(encoding="utf-8")))
    }
    assert len(files) > 40 and found == set()
    assert NAME.search(without_comments((ROOMS[1] / "vulkan_device.h").read_text(encoding="utf-8")))


def test_python_outside_vulkans_room_names_nothing_of_vulkan() -> None:
    files = list(BACKEND.rglob("*.py"))
    found = {
        f"{path.relative_to(BACKEND)}: {name}"
        for path in files
        if is_outside(path)
        for name in python_names(path.read_text(encoding="utf-8"))
        if NAME.fullmatch(name)
    }
    assert len(files) > 400 and found == set()
    assert any(map(NAME.fullmatch, python_names((ROOMS[0] / "pipeline.py").read_text(encoding="utf-8"))))


def test_the_runtime_reaches_vulkan_through_the_table_of_kinds() -> None:
    """Other rooms of runtime/ import of Vulkan's nothing but its kind, and whether there may be a device."""
    found = set()
    for path in (BACKEND / "runtime").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vulkan") and is_outside(path):
                found.update(f"{path.name}: {node.module}.{alias.name}" for alias in node.names)
    assert found == {"device_choice.py: vulkan.kind.Vulkan", "device_choice.py: vulkan.presence.gpu_may_be_there"}


@pytest.mark.parametrize("api", KINDS)
def test_a_kind_lists_devices_that_name_it(api: str) -> None:
    kind = KINDS[api]
    assert kind.remedy()
    for device in kind.devices():
        assert device.api == api and device.describe().startswith(device.name)
