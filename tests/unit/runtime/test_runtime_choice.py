"""Which device a process takes, and the command that tells it."""

import json
from dataclasses import replace

import pytest
from triton.backends.spirv import cli
from triton.backends.spirv.runtime import context, device_choice
from triton.backends.spirv.runtime.device_choice import choose
from triton.backends.spirv.runtime.device_kind import DeviceInfo
from triton.backends.spirv.runtime.errors import DeviceUnavailable
from triton.backends.spirv.runtime.streams import DeviceInterface
from triton.backends.spirv.runtime.vulkan.devices import VulkanDeviceInfo


def _device(name: str, kind: str, uuid: str, lacks: tuple[str, ...] = ()) -> DeviceInfo:
    return VulkanDeviceInfo(name, kind, uuid, "test", lacks, None, api_version=(1, 3), max_subgroups=32)


FOUND = (
    _device("Big 0", "discrete", "a0"),
    _device("Big 1", "discrete", "a1"),
    _device("lavapipe", "cpu", "c0"),
    _device("Old", "discrete", "b0", ("Vulkan 1.3",)),
)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_SPIRV_DEVICE", raising=False)
    monkeypatch.delenv("LOCAL_RANK", raising=False)


def test_the_best_device_without_a_wish() -> None:
    assert choose(FOUND) == (FOUND[0], "the first of the best kind")


@pytest.mark.parametrize(("rank", "index"), [("0", 0), ("1", 1), ("2", 0), ("7", 1)])
def test_ranks_share_the_devices_of_the_best_kind(monkeypatch: pytest.MonkeyPatch, rank: str, index: int) -> None:
    monkeypatch.setenv("LOCAL_RANK", rank)
    device, reason = choose(FOUND)
    assert device == FOUND[index]
    assert reason == f"LOCAL_RANK={rank}, of 2 discrete device(s)"


def test_gpus_are_counted_and_the_rest_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, count in ((FOUND, 2), (FOUND[1:], 1), (FOUND[2:3], 1), (FOUND[2:], 2), (FOUND[2:3] * 2, 2)):
        monkeypatch.setattr(context, "devices", lambda found=found: found)
        assert context.device_count() == DeviceInterface().device_count() == count
        for index, device in enumerate(found):
            if not device.lacks:
                context._check(index)


def test_a_wish_goes_before_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("TRITON_SPIRV_DEVICE", "lavapipe")
    assert choose(FOUND) == (FOUND[2], "TRITON_SPIRV_DEVICE=lavapipe")


def test_a_rank_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "first")
    with pytest.raises(ValueError, match="LOCAL_RANK='first' is not a number"):
        choose(FOUND)


def test_info_names_what_a_device_lacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    only = (replace(FOUND[3], name="Old"),)
    monkeypatch.setattr(cli, "installed", lambda: only)
    monkeypatch.setattr(cli, "devices", lambda: only)
    monkeypatch.setattr(device_choice, "devices", lambda: only)
    assert cli.main(["info", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["devices"][0]["lacks"] == ["Vulkan 1.3"] and not told["devices"][0]["usable"]
    assert "Old (discrete, Vulkan 1.3, lacks Vulkan 1.3) cannot run Triton kernels" in told["error"]
    assert cli.main(["info"]) == 1
    assert "cannot run kernels: it lacks Vulkan 1.3" in capsys.readouterr().out


def test_info_without_a_driver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none() -> tuple[DeviceInfo, ...]:
        raise DeviceUnavailable("no Vulkan driver was found; install one")

    monkeypatch.setattr(cli, "installed", none)
    assert cli.main(["info"]) == 1
    assert capsys.readouterr().out == "no device\nnone is used: no Vulkan driver was found; install one\n"
