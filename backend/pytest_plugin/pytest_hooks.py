"""What pytest loads of this backend in every run: two options, a marker and two fixtures.

The wheel installs this package outside of triton as well, because pytest imports its plugins at its start, also where
no test has to do with Triton. Nothing of triton is imported before an option, the marker or a fixture asks for it. What
happens then is in ``kernel_tests.py``. docs/testing-kernels.md has what users read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from triton.backends.spirv.kernel_tests import CountedKernel, KernelTests

_HELP = "see docs/testing-kernels.md of triton-spirv"
_MARKER = "triton(checks): check the kernels that this test launches, as --triton-checks does"
_KERNELS = pytest.StashKey["dict[str, CountedKernel]"]()
_PLUGIN = "triton-kernel-tests"


def _leave_triton_as_it_is(plugins: pytest.PytestPluginManager) -> None:
    """pytest rewrites the assertions of all packages in the distribution of a plugin. Those of Triton say what users
    are to read, and stay."""
    rewritten: set[str] = getattr(getattr(plugins, "rewrite_hook", None), "_must_rewrite", set())
    rewritten -= {name for name in rewritten if name.partition(".")[0].startswith("triton")}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    _leave_triton_as_it_is(pluginmanager)
    group = parser.getgroup("triton", "kernels of Triton, on the SPIR-V backend")
    group.addoption(
        "--triton-checks",
        metavar="CHECKS",
        help=f"check every launch: names of checks, with commas between them, such as bounds,races; {_HELP}",
    )
    group.addoption(
        "--triton-device",
        metavar="DEVICES",
        help="the device of all launches, as TRITON_SPIRV_DEVICE names it; several with commas between them, and "
        f"'emulated' for all GPUs that can be emulated: a run for each; {_HELP}",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.stash[_KERNELS] = {}
    if config.getoption("triton_checks") is not None or config.getoption("triton_device") is not None:
        _asked(config)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """A run for each of several devices: a process has one."""
    if config.getoption("triton_device") is None or hasattr(config, "workerinput"):
        return None
    from triton.backends.spirv.kernel_tests import devices_of, run_each

    devices = devices_of(config.getoption("triton_device"))
    return run_each(config, devices) if len(devices) > 1 else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any(item.get_closest_marker("triton") for item in items):
        _asked(config).check_markers(items)


def _asked(config: pytest.Config) -> KernelTests:
    """The plugin that checks and counts launches, from now on."""
    plugin: KernelTests | None = config.pluginmanager.get_plugin(_PLUGIN)
    if plugin is None:
        from triton.backends.spirv.kernel_tests import KernelTests

        plugin = KernelTests(config, config.stash[_KERNELS])
        config.pluginmanager.register(plugin, _PLUGIN)
    return plugin


@pytest.fixture
def triton_device(request: pytest.FixtureRequest) -> Any:
    """The ``torch.device`` whose tensors kernels take."""
    return _asked(request.config).torch_device()


@pytest.fixture
def triton_kernels(request: pytest.FixtureRequest) -> Iterator[dict[str, CountedKernel]]:
    """Name → CountedKernel of each kernel that the test has launched so far."""
    with _asked(request.config).counting() as kernels:
        yield kernels


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Adds what a worker of pytest-xdist has counted."""
    total = node.config.stash[_KERNELS]
    told: dict[str, dict[str, Any]] = getattr(node, "workeroutput", {}).get(_PLUGIN, {})
    if told:
        from triton.backends.spirv.kernel_tests import add_all

        add_all(total, told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    kernels = config.stash[_KERNELS]
    if kernels or config.pluginmanager.get_plugin(_PLUGIN):
        from triton.backends.spirv.kernel_tests import table, title

        terminalreporter.section(title(config))
        for line in table(kernels):
            terminalreporter.write_line(line)
