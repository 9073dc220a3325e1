"""torch's device-generic interfaces on the device ``spirv``: torch.accelerator, streams, events, generators, memory."""

import gc
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from triton.backends.spirv.runtime.context import current  # noqa: E402
from triton.backends.spirv.torch import registration  # noqa: E402
from triton.backends.spirv.torch.device import accelerator_functions  # noqa: E402

from tests.device.processes import run  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()


def test_the_accelerator_is_this_device() -> None:
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("spirv")
    assert torch.accelerator.device_count() == torch.spirv.device_count() >= 1
    assert torch.accelerator.current_device_index() == torch.spirv.current_device() == 0
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(0):
        torch.accelerator.synchronize()
    assert {torch.float32, torch.bfloat16, torch.int64} <= torch.accelerator.get_device_capability()["supported_dtypes"]
    with pytest.raises(RuntimeError, match="there is no device 'spirv:99'"):
        torch.accelerator.set_device_index(99)


def test_synchronize_waits() -> None:
    x = torch.ones(1 << 20, device="spirv")
    for wait in (
        torch.accelerator.synchronize,
        torch.accelerator.current_stream().synchronize,
        torch.spirv.synchronize,
    ):
        x.mul_(1.5)
        wait()
        assert current().native.done(current().native.submitted)


@pytest.mark.parametrize(
    "make", [lambda: torch.Event("spirv", enable_timing=True), lambda: torch.Event(enable_timing=True)]
)
def test_events_take_the_devices_time(make: Any) -> None:
    start, end = make(), make()
    assert start.query() and start.device == torch.device("spirv", 0)
    with pytest.raises(RuntimeError, match="two recorded events"):
        start.elapsed_time(end)
    start.record()
    torch.ones(1 << 18, device="spirv").mul_(2)
    end.record(torch.accelerator.current_stream())
    end.synchronize()
    assert start.query() and end.query() and start.elapsed_time(end) > 0
    end.wait()
    assert isinstance(start, torch.Event) and not isinstance(torch.accelerator.current_stream(), torch.Event)
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        torch.Event("spirv").elapsed_time(end)
    with pytest.raises(NotImplementedError, match="between processes"):
        torch.Event("spirv", interprocess=True)


def test_streams_are_the_current_ones_in_blocks() -> None:
    first, stream = torch.spirv.default_stream(), torch.Stream("spirv")
    assert (
        first == torch.spirv.current_stream() == torch.accelerator.current_stream() != stream != torch.Stream("spirv")
    )
    assert isinstance(stream, torch.Stream) and issubclass(torch.spirv.Stream, torch.Stream)
    for choose in (torch.accelerator.set_stream, torch.spirv.set_stream):
        choose(stream)
        assert torch.accelerator.current_stream() == stream
        choose(first)
    with stream, torch.spirv.stream(torch.Stream("spirv")), torch.spirv.stream(None), stream:
        assert torch.spirv.current_stream() == stream
        x = torch.ones(100, device="spirv") + 1
    assert torch.spirv.current_stream() == first
    event = stream.record_event()
    stream.wait_event(event)
    stream.wait_stream(torch.Stream("spirv"))
    stream.synchronize()
    assert stream.query() and event.query() and x.sum().item() == 200
    x.record_stream(stream)


def test_other_devices_keep_their_own_classes() -> None:
    assert type(torch.Generator()) is torch._C.Generator and isinstance(torch.Generator(), torch.Generator)

    class Mine(torch.Generator):
        pass

    assert isinstance(Mine(), Mine) and isinstance(Mine(), torch.Generator) and not isinstance(torch.Generator(), Mine)


def test_a_generator_has_numbers_of_its_own() -> None:
    before = registration.FALLBACKS.copy()
    generator = torch.Generator(device="spirv").manual_seed(5)
    other = torch.Generator("spirv:0").manual_seed(5)
    assert generator.device == torch.device("spirv") and generator.initial_seed() == 5
    first = torch.rand(50, device="spirv", generator=generator)
    torch.rand(7, device="spirv")
    assert torch.equal(first.cpu(), torch.rand(50, device="spirv", generator=other).cpu())
    state, offset = generator.get_state(), generator.get_offset()
    second = torch.randn(50, device="spirv", generator=generator)
    assert len({*first.tolist(), *second.tolist()}) == 100
    for again in (other, generator.set_state(state), generator.clone_state()):
        again.set_offset(offset)
        assert torch.equal(second.cpu(), torch.randn(50, device="spirv", generator=again).cpu())
    assert dict(registration.FALLBACKS - before) == {}, "drawn on the device"
    orders = [torch.randperm(20, device="spirv", generator=generator.manual_seed(3)).tolist() for _ in range(2)]
    assert orders[0] == orders[1] and sorted(orders[0]) == list(range(20))


def test_states_of_random_numbers() -> None:
    def draw() -> Any:
        return torch.rand(9, device="spirv").cpu()

    torch.manual_seed(3)
    with torch.random.fork_rng(device_type="spirv"):
        inside = draw()
    assert torch.equal(inside, draw())
    state = torch.spirv.get_rng_state()
    expected = draw()
    torch.spirv.set_rng_state(state)
    assert torch.equal(expected, draw())
    torch.spirv.set_rng_state_all([state])
    assert torch.equal(expected, draw()) and torch.spirv.initial_seed() == 3
    torch.spirv.seed()
    assert torch.spirv.initial_seed() != 3


def test_torchs_viewers_read_a_snapshot_of_memory() -> None:
    gc.collect()
    torch.spirv.empty_cache()
    kept = [torch.empty(size, dtype=torch.uint8, device="spirv") for size in (5 << 20, 700, 3 << 20)]
    del kept[1]
    segments = torch.spirv.memory_snapshot()
    text = torch.cuda._memory_viz.segsum({"segments": segments})
    assert f"segments: {len(segments)}\n" in text
    in_use = {block["address"]: block for part in segments for block in part["blocks"] if block["requested_size"]}
    for tensor in kept:
        assert in_use[tensor.data_ptr()]["size"] == tensor.numel()
    assert sum(block["size"] for block in in_use.values()) == torch.spirv.memory_allocated()
    assert sum(segment["total_size"] for segment in segments) == torch.spirv.memory_reserved()
    for segment in segments:
        ends = [(block["address"], block["address"] + block["size"]) for block in segment["blocks"]]
        assert [start for start, _ in ends[1:]] == [end for _, end in ends[:-1]]


def test_memory_statistics() -> None:
    gc.collect()
    for module in (torch.spirv, torch.accelerator):
        before = module.memory_allocated()
        module.reset_peak_memory_stats()
        x = torch.empty(3 << 20, dtype=torch.uint8, device="spirv")
        assert module.memory_allocated() - before == 3 << 20
        del x
        assert module.memory_allocated() == before
        assert module.max_memory_allocated() - before == 3 << 20
        assert module.max_memory_reserved() >= module.memory_reserved() >= 3 << 20
        assert module.memory_stats()["allocated_bytes.all.peak"] == before + (3 << 20)
        module.reset_peak_memory_stats()
        assert module.max_memory_allocated() == before
        module.empty_cache()
    if hasattr(torch.accelerator.memory, "empty_host_cache"):  # since torch 2.12
        assert torch.accelerator.memory.empty_host_cache() is None
    free, total = torch.spirv.mem_get_info()
    assert torch.accelerator.get_memory_info()[1] == total > 1 << 20 and 0 < free <= total
    known = torch.spirv.get_device_properties()
    assert known.name == torch.spirv.get_device_name(0) and known.total_memory == total and known.warp_size > 0
    units = current().device.compute_units
    assert known.multi_processor_count == units.count_or_estimate >= 1
    always = ("shared_memory_per_multiprocessor", "L2_cache_size")
    told = {"multi_processor_count": units.count, "max_threads_per_multi_processor": units.threads}
    told |= {"regs_per_multiprocessor": units.registers}
    assert known.estimated == (*(name for name, figure in told.items() if figure is None), *always)
    for name, figure in told.items():  # libraries compute with them
        assert isinstance(getattr(known, name), int) and figure in (None, getattr(known, name))
    assert (
        known.shared_memory_per_block_optin == known.shared_memory_per_block <= known.shared_memory_per_multiprocessor
    )
    assert known.L2_cache_size > 0
    assert (
        (known.major, known.minor)
        == torch.spirv.get_device_capability()
        == torch.spirv.get_device_capability("spirv:0")
    )


@pytest.mark.parametrize("asked", ["TRITON_SPIRV_BACKEND", "TRITON_DEFAULT_BACKEND", None])
def test_who_asks_by_name_gets_it_from_the_start(asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRITON_SPIRV_BACKEND", "TRITON_SPIRV_DEVICE", "TRITON_DEFAULT_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    if asked:
        monkeypatch.setenv(asked, "spirv" if asked == "TRITON_DEFAULT_BACKEND" else "1")
    assert accelerator_functions.is_wanted.__wrapped__() == (bool(asked) or current().device.kind != "cpu")


def test_a_cpu_driver_is_no_accelerator_unasked() -> None:
    """Programs that ask torch.accelerator for a device go on with the CPU until they name this one."""
    if current().device.kind != "cpu":
        pytest.skip("on a GPU torch.accelerator is the device from the start: test_autoload.py")
    script = """
import sys, torch
weight = torch.nn.Parameter(torch.ones(2))
weight.sum().backward()
torch.optim.SGD([weight]).step()
print(torch.accelerator.current_accelerator(), torch.accelerator.is_available(), torch.accelerator.device_count())
for use in (torch.accelerator.synchronize, torch.Event):
    try: use()
    except RuntimeError as error: print(str(error)[:45])
print(torch.spirv.is_available(), torch.accelerator.is_available())
x = torch.ones(2, device="spirv")
print(torch.accelerator.current_accelerator(), torch.accelerator.is_available())
torch.accelerator.synchronize()
"""
    unasked = dict.fromkeys(("TRITON_SPIRV_BACKEND", "TRITON_SPIRV_DEVICE", "TRITON_DEFAULT_BACKEND"), "")
    told = run([sys.executable, "-c", script], **unasked)
    lines = told.stdout.splitlines()
    assert lines[0] == "None False 0", told.stderr
    assert lines[1].startswith("torch.accelerator has no device")
    assert lines[-2:] == ["True False", "spirv True"]


@pytest.mark.parametrize("name", sorted(set(torch.cuda.__all__) & set(torch.xpu.__all__)))
def test_names_of_other_devices_modules_are_there_or_say_what_to_use(name: str) -> None:
    """What code for any device may ask of ``torch.cuda`` and ``torch.xpu`` alike."""
    if not hasattr(torch.spirv, name):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': [^ ]"):
            getattr(torch.spirv, name)


def test_default_generators() -> None:
    (generator, *_) = torch.spirv.default_generators
    assert len(torch.spirv.default_generators) == torch.spirv.device_count() and generator.device.type == "spirv"
    drawn = []
    for chosen in (None, generator):
        torch.spirv.manual_seed(5)
        drawn.append(torch.rand(4, device="spirv", generator=chosen).tolist())
    assert drawn[0] == drawn[1] and generator.initial_seed() == torch.spirv.initial_seed() == 5
    assert torch.spirv.is_current_stream_capturing() is False
    assert torch.spirv.can_device_access_peer(0, 0) is False
