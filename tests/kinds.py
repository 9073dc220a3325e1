"""The kinds of devices that tests run on.

Tests run on the device that the machine has by default: without a GPU, the CPU device. What only one kind of device has
is tested there: ``@pytest.mark.only_on("Vulkan", "why")``. A test whose layouts are written down for subgroups of one
size says that size, too: ``only_on("Vulkan", "why", subgroup_size=8)``. ``--vulkan-part`` runs what has to pass on a
Vulkan device too: the tests with that mark, and the files of vulkan_part.py. ``python3 -m tools test`` runs both.
"""

from pathlib import Path

import pytest

from tests.vulkan_part import FILES

ROOT = Path(__file__).parents[1]
MARK = "only_on"
#: Fixtures that only some kinds of devices have → (the kinds, why).
FIXTURES = {"faulty_layer": (("Vulkan",), "a layer of the Vulkan loader makes calls of the driver fail")}


def needed(item: pytest.Item) -> tuple[tuple[str, ...], str] | None:
    """(The kinds of devices that a test is for, why). None: any."""
    mark = item.get_closest_marker(MARK)
    if mark is not None:
        *kinds, why = mark.args
        return tuple(kinds), why
    return next((FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES), None)


def needed_subgroup_size(item: pytest.Item) -> int | None:
    """The only number of invocations of a subgroup that a test is for. None: any."""
    mark = item.get_closest_marker(MARK)
    return None if mark is None else mark.kwargs.get("subgroup_size")


def in_vulkan_part(item: pytest.Item) -> bool:
    """Whether a test has to pass on a Vulkan device, too."""
    needs = needed(item)
    if needs is not None:
        return "Vulkan" in needs[0]
    return _is_listed(item.path)


def may_be_in_vulkan_part(path: Path) -> bool:
    """Whether a file may have tests that have to pass on a Vulkan device, by its text: False for no file that has."""
    if path.is_dir() or path.suffix != ".py" or _is_listed(path):
        return True
    text = path.read_text(encoding="utf-8")
    return any(word in text for word in (MARK, *FIXTURES))


def _is_listed(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return name in FILES or any(name.startswith(f"{folder}/") for folder in FILES)


def kind_in_use() -> str:
    """The kind of device that kernels run on in this process, as in device_choice.KINDS."""
    from triton.backends.spirv.runtime.device_choice import selected

    return selected().api


def subgroup_size_in_use() -> int:
    """The number of invocations of a subgroup of that device."""
    from tests.device.helpers import device_capabilities

    return device_capabilities().subgroup_size


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the Vulkan part's tests, if it is asked for, and skips those of other kinds of devices."""
    if config.getoption("vulkan_part"):
        left = [item for item in items if not in_vulkan_part(item)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if in_vulkan_part(item)]
    of_one_kind = [(item, found) for item in items if (found := needed(item)) is not None]
    if not of_one_kind:
        return
    here = kind_in_use()
    for item, (kinds, why) in of_one_kind:
        if here not in kinds:
            item.add_marker(pytest.mark.skip(reason=f"only on a device of kind {' or '.join(kinds)}: {why}"))
        elif (size := needed_subgroup_size(item)) is not None and size != subgroup_size_in_use():
            item.add_marker(pytest.mark.skip(reason=f"only on a device with subgroups of {size}: {why}"))
