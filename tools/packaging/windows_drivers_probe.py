"""What `python3 -m tools windows` runs about Vulkan drivers: those that Windows' registry names are asked for their
devices in a process of their own, which answers, and are used.

A line for each that was right; an assertion for the first that was not.
"""

from __future__ import annotations

import os

from triton.backends.spirv.runtime.vulkan import asking, manifests


def main() -> None:
    """Looks for them, and has them asked."""
    chosen = [name for name in (*manifests.REPLACING, manifests.ADDING) if os.environ.get(name)]
    assert not chosen, f"{', '.join(chosen)} choose the drivers"
    drivers = manifests.used()
    assert drivers, "no driver in the registry"
    assert all(one.path.is_file() and one.library for one in drivers), drivers
    print(f"drivers of the registry: {', '.join(one.path.name for one in drivers)}")
    assert asking.left_out() == {}
    records = [asking.record_of(one.path) for one in drivers]
    assert all(record is not None and record.is_file() for record in records), records
    print(f"all {len(drivers)} answered in a process of their own")


if __name__ == "__main__":
    main()
