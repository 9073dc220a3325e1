"""``triton-spirv inspect``: the page, and what a user does with it in a browser."""

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from triton import knobs
from triton.backends.spirv import cli
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.objects import made_here
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.vulkan.manifests import installed

from benchmarks.example_kernels import KERNELS
from benchmarks.example_pages import written
from docs import generate_gallery
from tests.device.helpers import device_capabilities

EXAMPLES = Path(__file__).parents[2] / "examples"
MATMUL = next(signature for example, _, signature in KERNELS if example == "matmul")


@triton.jit
def transposed(x, out, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + i * n + j, mask=j < n)
    tl.store(out + i * BLOCK + j, tl.trans(value))


def embedded(path: Path) -> dict[str, object]:
    """The data in a page."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', path.read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def matmul_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the matmul example for a GPU that is not there."""
    path = tmp_path_factory.mktemp("page") / "matmul.html"
    request = [f"{EXAMPLES}/matmul.py:matmul_kernel", "-s", MATMUL, "-t", "nvidia-hopper", "-o", str(path)]
    assert cli.main(["inspect", *request]) == 0
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Headless Chromium without a network."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking"):
        options.add_argument(f"--{argument}")
    for argument in ("disable-quic", "disable-component-update", "disable-sync", f"user-data-dir={profile}"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def test_the_data_of_a_page(matmul_page: Path) -> None:
    data = embedded(matmul_page)
    assert data["title"] == "Kernel matmul_kernel"
    assert [stage["id"] for stage in data["stages"]] == ["source", "ttir", "ttgir", "plan", "spv"]
    for stage in data["stages"]:
        linked = sum(bool(places) for _, places in stage["lines"])
        assert linked > len(stage["lines"]) / 3, stage["id"]
    assert [entry["bits"] for entry in data["accesses"]] == [128] * 5, "the next iteration's loads are moved ahead"
    plan = [text for text, _ in data["stages"][3]["lines"]]
    assert (
        plan[0].startswith("layout: ")
        and plan[1].startswith("shared memory: ")
        and any("tt.dot" in line for line in plan)
    )
    assert all(entry["fewest"] <= entry["steps"] for entry in data["banks"])
    assert {entry["operation"] for entry in data["banks"]} == {"ttg.local_alloc", "ttg.convert_layout"}
    for conversion in data["conversions"]:
        assert sum(map(sum, conversion["lanes"])) == sum(map(sum, conversion["warps"])) == conversion["elements"]
    first = data["layouts"][0]
    owners = {tuple(cell[:3]) for row in first["cells"] for cell in row}
    assert len(owners) == first["shown"][0] * first["shown"][1], "every element has its own place"
    shared = data["shared"]
    assert 0 < shared["total"] <= shared["limit"] == 49152 and shared["barriers"]
    for buffer in shared["buffers"]:
        assert 0 <= buffer["offset"] and buffer["offset"] + buffer["size"] <= shared["total"]
        assert buffer["start"] <= buffer["end"] < shared["steps"]
    assert dict(data["mix"])["floating-point arithmetic"] > 100
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg", "", matmul_page.read_text().split('id="data"')[0])


def test_a_line_shows_what_became_of_it(matmul_page: Path, browser: webdriver.Chrome) -> None:
    browser.set_window_size(1400, 1000)
    browser.get(matmul_page.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    browser.find_element(By.XPATH, '//*[@id="shown"]/label[contains(., "Plan")]/input').click()
    (dot,) = browser.find_elements(By.XPATH, '//*[@id="stage-source"]//li[contains(., "tl.dot")]')
    dot.click()
    for stage, wanted in (("source", "tl.dot"), ("ttgir", "tt.dot"), ("plan", "tt.dot"), ("spv", "Fma")):
        lines = browser.find_elements(By.CSS_SELECTOR, f"#stage-{stage} li.pinned")
        assert lines and any(wanted in line.text for line in lines), stage
    top, height = browser.execute_script(
        "const list = document.querySelector('#stage-spv ol'), line = list.querySelector('.pinned');"
        "return [line.offsetTop - list.offsetTop - list.scrollTop, list.clientHeight]"
    )
    assert 0 <= top < height, "the other stages scroll to it"
    dot.click()
    assert not browser.find_elements(By.CSS_SELECTOR, "li.pinned"), "a second click releases it"


def test_the_keyboard_is_enough(matmul_page: Path, browser: webdriver.Chrome) -> None:
    browser.get(matmul_page.as_uri())
    moved = """const list = document.querySelector("#stage-source ol"), line = list.children[3];
        line.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
        return [document.activeElement === list.children[4], list.scrollLeft]"""
    assert browser.execute_script(moved) == [True, 0], "the next line has the focus, and its beginning is still seen"
    first = browser.find_element(By.CSS_SELECTOR, '#stage-ttgir li[tabindex="0"]')
    first.send_keys(Keys.ARROW_DOWN * 12)
    while not (here := browser.switch_to.active_element).get_attribute("data-place"):
        here.send_keys(Keys.ARROW_DOWN)
    assert here.tag_name == "li" and here != first
    here.send_keys(Keys.ENTER)
    assert "pinned" in here.get_attribute("class")
    here.send_keys(Keys.ARROW_RIGHT)
    assert browser.switch_to.active_element.find_elements(By.XPATH, "ancestor::div[@id='stage-spv']")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not browser.find_elements(By.CSS_SELECTOR, "li.pinned, li.on")


@pytest.fixture
def window(browser: webdriver.Chrome, request: pytest.FixtureRequest) -> Iterator[int]:
    """The width of the browser's window, in pixels; a telephone's if it is narrow."""
    width: int = request.param
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("window", [360, 1400], indirect=True)
def test_the_page_fits(matmul_page: Path, browser: webdriver.Chrome, window: int) -> None:
    browser.get(matmul_page.as_uri())
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    tops = browser.execute_script("return [...document.querySelectorAll('.stage:not([hidden])')].map(s => s.offsetTop)")
    assert wide <= window
    assert (len(set(tops)) == 1) == (window > 800), "stages lie side by side only where there is room"


@pytest.mark.parametrize("window", [360, 1400], indirect=True)
def test_the_shape_of_a_launch_is_whole(matmul_page: Path, browser: webdriver.Chrome, window: int) -> None:
    browser.get(matmul_page.as_uri())
    places = browser.execute_script(
        "return [...document.querySelectorAll('#shape svg, #shape svg text, #shape svg rect')].map("
        "one => [one.getBoundingClientRect().right, one.getBoundingClientRect().height, one.textContent])"
    )
    rows = browser.execute_script(
        "return new Set([...document.querySelectorAll('#shape svg')].map(one => one.getBoundingClientRect().top)).size"
    )
    assert all(right <= window for right, _, _ in places), [place for place in places if place[0] > window]
    assert rows == (1 if window > 800 else 3)
    texts = [text for _, height, text in places if height < 30]
    assert any(text.startswith("one program: ") for text in texts), texts


def test_commands_are_code(tmp_path: Path, browser: webdriver.Chrome) -> None:
    file, page = tmp_path / "verdicts.py", tmp_path / "page.html"
    file.write_text(VERDICTS)
    assert (
        cli.main(["inspect", f"{file}:wide", "-s", "*fp32:16, *fp32:16, 1024", "-t", "amd-rdna3", "-o", str(page)]) == 0
    )
    browser.get(page.as_uri())
    assert browser.find_element(By.CSS_SELECTOR, "#verdict code").text.startswith("triton-spirv profile")
    assert "`" not in browser.find_element(By.ID, "verdict").text


def test_drawings_say_what_their_axes_are(matmul_page: Path, browser: webdriver.Chrome) -> None:
    browser.get(matmul_page.as_uri())
    axes = [text.text for text in browser.find_elements(By.CSS_SELECTOR, "#shared svg text:not(.name)")]
    assert any("bytes" in axis for axis in axes) and any("order of the program" in axis for axis in axes), axes
    for section in ("conversions", "layouts"):
        captions = browser.find_elements(By.CSS_SELECTOR, f"#{section} details[open] figcaption")
        assert captions and all("(down)" in one.text and "(across)" in one.text for one in captions), section


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_kernel_of_the_examples_has_a_page(profile: str, tmp_path: Path) -> None:
    """Without a GPU: as ``python -m benchmarks.example_pages`` makes them. Each profile has a sixth of the kernels, and
    each kernel at least two profiles; test_every_example.py compiles all of them for all."""
    rows = KERNELS[sorted(PROFILES).index(profile) % 6 :: 6]
    limit, driver = PROFILES[profile].shared_bytes, PROFILES[profile].driver
    radv = driver == "mesa_radv" and any(one.path.name.startswith("radeon") for one in installed())
    for path, status, _ in written(tmp_path, [profile], rows):
        assert status == 0, path.name
        data = embedded(path)
        machine = ["machine"] * bool(PROFILES[profile].processor and data["driver"]["executables"])
        stages = [stage["id"] for stage in data["stages"]]
        assert stages == ["source", "ttir", "ttgir", "plan", "spv", *machine], path.name
        if PROFILES[profile].processor and made_here(PROFILES[profile].processor):
            assert machine, path.name
        assert all(stage["lines"] for stage in data["stages"]) and data["accesses"] and data["layouts"], path.name
        assert data["shared"]["total"] <= data["shared"]["limit"] == limit
        assert data["driver"]["why"] or data["driver"]["executables"], path.name
        # RADV needs no GPU; before Mesa 23 it has no matrix units.
        if radv and "matrix units" not in dict(data["mix"]):
            assert data["driver"]["registers"] > 0 and data["driver"]["spills"] is not None, path.name


def test_the_pages_of_examples_in_a_browser(tmp_path: Path, browser: webdriver.Chrome) -> None:
    """No error, everything drawn, and nothing wider than a telephone but what scrolls by itself."""
    kernels = list({row[0]: row for row in KERNELS}.values())[::2]
    profiles = itertools.cycle(sorted(PROFILES))
    pages = {row[0]: next(written(tmp_path, [next(profiles)], [row])) for row in kernels}
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for example, (path, status, _) in pages.items():
        assert status == 0, example
        browser.get(path.as_uri())
        assert browser.execute_script("return document.documentElement.dataset.ready") == "yes", example
        browser.execute_script("for (const box of document.querySelectorAll('details')) box.open = true")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400, example
        for section in ("accesses", "layouts", "conversions", "shared", "banks", "mix", "driver", "speed"):
            assert browser.find_elements(By.CSS_SELECTOR, f"#{section} > :not(h2)"), (example, section)
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == [], example
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_gallery_is_current(tmp_path: Path) -> None:
    """Its text, with the verdict on a kernel; the pictures are not compared."""
    assert generate_gallery.PAGE.read_text() == generate_gallery.page(tmp_path), "run python -m docs.generate_gallery"
    for picture in generate_gallery.PICTURES:
        assert (generate_gallery.IMAGES / f"inspect-{picture.name}.png").is_file()


@pytest.mark.parametrize("width", [390, 1200])
def test_a_link_to_a_section_shows_its_heading(matmul_page: Path, browser: webdriver.Chrome, width: int) -> None:
    """The links stay at the top of the window, above the heading. Labels of pictures stay large enough to read."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(matmul_page.as_uri())
    for link in browser.find_elements(By.CSS_SELECTOR, "nav a"):
        link.click()
        hidden = browser.execute_script(
            "return document.querySelector('nav').getBoundingClientRect().bottom"
            " - document.querySelector(arguments[0] + ' h2').getBoundingClientRect().top",
            "#" + str(link.get_attribute("href")).partition("#")[2],
        )
        assert hidden <= 0, link.text
    text = browser.find_element(By.CSS_SELECTOR, "#shared svg text")
    assert text.rect["height"] > 8


def test_tab_reaches_every_section(matmul_page: Path, browser: webdriver.Chrome) -> None:
    """Links, switches, lines, buttons, and what folds and scrolls."""
    browser.set_window_size(1400, 1000)
    browser.get(matmul_page.as_uri())
    reached = set()
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        where = browser.switch_to.active_element
        reached.add(
            browser.execute_script(
                "return (arguments[0].closest('section, nav') || {}).id || arguments[0].tagName", where
            )
        )
    assert {"A", "code", "accesses", "layouts", "conversions"} <= reached, reached


def test_a_kernel_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))
    transposed.device_caches.clear()
    transposed.relaunch = None
    transposed[(1,)](torch.ones(32, 30), torch.ones(32, 32), 30, BLOCK=32)
    path = tmp_path / "page.html"
    assert cli.main(["inspect", "transposed", "-o", str(path)]) == 0
    data = embedded(path)
    load = next(entry for entry in data["accesses"] if entry["what"] == "load")
    if device_capabilities().processor:
        assert load["bits"] >= 128 and "instructions on vectors" in load["why"]
    else:
        assert load["bits"] == 32 and "the mask may change every 1 element" in load["why"]
    assert any(entry["lane"] for entry in data["conversions"]), "a transposition moves elements between lanes"
    assert any(entry["warp"] for entry in data["conversions"]) == (current().capabilities.most_subgroups > 1)
    assert any("tl.trans" in text for text, _ in data["stages"][0]["lines"])
    for ttgir in (tmp_path / "cache").glob("*/transposed.ttgir"):
        ttgir.write_text(ttgir.read_text()[:400])
    capfd.readouterr()
    assert cli.main(["inspect", "transposed", "-o", str(tmp_path / "none.html")]) == 1
    assert re.search("error: kernel transposed, .*, cannot be planned again: ", capfd.readouterr().err.splitlines()[-1])


@triton.jit
def sliced(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_a_kernel_of_the_cache_that_was_laid_out_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes more shared memory in its first layout than the device has: the page is about the one that was taken."""
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))
    arguments = [torch.ones(128, 128) for _ in range(3)]
    compiled = sliced.warmup(*arguments, 128, grid=(1,))
    path = tmp_path / "page.html"
    assert cli.main(["inspect", "sliced", "-o", str(path)]) == 0
    data = embedded(path)
    said = 16 if device_capabilities().processor else 0  # at least
    assert max(data["shared"]["total"], said) == compiled.metadata.shared <= data["shared"]["limit"]
    assert dict(data["facts"])["shared memory"] == compiled.metadata.shared
    assert any("tl.dot" in text for text, _ in data["stages"][0]["lines"])
    (module,) = (tmp_path / "cache").glob("*/sliced.spv")
    assert data["note"] == ""
    module.write_bytes(module.read_bytes()[:-4])
    assert cli.main(["inspect", "sliced", "-o", str(path)]) == 0
    assert "another version" in embedded(path)["note"]


KERNELS_FILE = """
import triton
import triton.language as tl

@triton.jit
def kernel(n):
    pass

@triton.jit
def range(n: tl.constexpr):
    tl.arange(0, n)

@triton.jit
def outer(n: tl.constexpr):
    range(n)
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["{file}:kernel"],
            "{file}:kernel needs --signature: a type or constant for each parameter. A draft to correct: --s",
        ),
        (["{file}:nobody", "-s", "i32"], "nobody"),
        (["no_such_kernel"], "has the name or key 'no_such_kernel'"),
        (["{file}:kernel", "-s", "i32, i32"], "2 entries"),
        (["{file}:kernel", "-s", "i32", "-o", "/nowhere/page.html"], "there is no folder /nowhere"),
        (["{file}:range", "-s", "63"], "and leave out the rest with a mask (i < n), in 'tl.arange(0, n)'"),
        (["{file}:outer", "-s", "63"], "(i < n), in 'tl.arange(0, n)'"),
        (["{file}:kernel", "-s", "i32", "--launches", "/nowhere/trace.json"], "/nowhere/trace.json cannot be read"),
        (["{file}.spv"], "kernels.py.spv is a module: `triton-spirv disassemble` shows one"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS_FILE)
    assert cli.main(["inspect", *(text.format(file=file) for text in arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("triton-spirv inspect: error: ") and error.count("\n") == 1, error
    assert message.format(file=file) in error
    assert not list(tmp_path.glob("*.html"))


VERDICTS = """
import triton
import triton.language as tl

@triton.jit
def wide(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)

@triton.jit
def strided(x, out, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * stride))

@triton.jit
def scalar(x, out, n):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    tl.store(out, total)

@triton.jit
def product(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))
"""


@pytest.mark.parametrize(
    ("kernel", "signature", "verdict"),
    [
        ("wide", "*fp32:16, *fp32:16, 1024", r"Nothing in the code stands out: .* 128 bits .*triton-spirv profile"),
        (
            "strided",
            "*fp32:16, *fp32:16, i32, 1024",
            r"accesses to memory limit it.*load of verdicts\.py:13 .* 32 of 128 bits",
        ),
        (
            "wide",
            "*fp32, *fp32:16, 1024",
            r'load of verdicts\.py:8 .*Compile it with `-s "\*fp32:16, \*fp32:16, 1024"` for up to 128 bits\.$',
        ),
        ("scalar", "*fp32:16, *fp32:16, i32", r"accesses to memory limit it.*load of verdicts\.py:19 .* one value"),
        (
            "product",
            "*fp32:16, *fp32:16, *fp32:16, 64",
            r"multiply-adds limit it.*dot of verdicts\.py:26 .*matrix units",
        ),
    ],
)
def test_the_verdict_says_what_limits_the_kernel_and_by_what(
    kernel: str, signature: str, verdict: str, tmp_path: Path
) -> None:
    file, page = tmp_path / "verdicts.py", tmp_path / "page.html"
    file.write_text(VERDICTS)
    assert cli.main(["inspect", f"{file}:{kernel}", "-s", signature, "-t", "nvidia-hopper", "-o", str(page)]) == 0
    data = embedded(page)
    assert re.search(verdict, data["verdict"]), data["verdict"]
    assert data["verdict"].count("\n") == 0 and len(data["verdict"]) < 400


def test_the_page_begins_with_the_verdict_and_folds_what_is_rarely_asked_for(
    matmul_page: Path, browser: webdriver.Chrome
) -> None:
    browser.set_window_size(1400, 1000)
    browser.get(matmul_page.as_uri())
    verdict = browser.find_element(By.ID, "verdict")
    assert verdict.text and verdict.location["y"] < 300
    shown = browser.find_elements(By.CSS_SELECTOR, "#layouts > details")
    folded = browser.find_elements(By.CSS_SELECTOR, "#layouts > details.others > details")
    data = embedded(matmul_page)
    assert len(shown) + len(folded) - 1 == len(data["layouts"]) and len(shown) <= 8 < len(folded)
    assert all(re.search(r"xf(16|32),", one.text) for one in shown[:-1]), [one.text for one in shown]
    top = browser.execute_script(
        "const list = document.querySelector('#stage-spv ol');"
        "return [...list.children].find(line => line.offsetTop - list.offsetTop >= list.scrollTop).textContent"
    )
    assert "OpFunction " in top, "SPIR-V begins at the body"
    heat = browser.execute_script(
        "return [...document.querySelectorAll('#stage-source li')].map("
        "line => [line.textContent, +line.style.getPropertyValue('--heat')])"
    )
    assert max(heat, key=lambda one: one[1])[0].strip().startswith("total = tl.dot"), "its code is the longest"
    for section in ("shape", "dots", "glossary"):
        assert browser.find_elements(By.CSS_SELECTOR, f"#{section} > :not(h2)"), section
    names = [text.text for text in browser.find_elements(By.CSS_SELECTOR, "#shared svg text.name")]
    assert {"a", "b"} <= {name.split()[0] for name in names}, names
    flow = browser.find_element(By.CSS_SELECTOR, "#dots svg").text
    assert "load" in flow and "matmul.py:57" in flow and "store" in flow


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Of two colours, WCAG 2.2, "contrast ratio"."""

    def luminance(colour: tuple[int, ...]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_links_can_be_read(scheme: str, matmul_page: Path, browser: webdriver.Chrome) -> None:
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    browser.get(matmul_page.as_uri())
    link, ground = browser.execute_script(
        "return [getComputedStyle(document.querySelector('nav a')).color,"
        " getComputedStyle(document.querySelector('nav')).backgroundColor]"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    colours = [tuple(map(int, re.findall(r"\d+", text)[:3])) for text in (link, ground)]
    assert contrast(*colours) >= 4.5, colours


def test_two_pages_side_by_side(tmp_path: Path, browser: webdriver.Chrome, capsys: pytest.CaptureFixture[str]) -> None:
    file, one, other, both = (tmp_path / name for name in ("verdicts.py", "one.html", "other.html", "both.html"))
    file.write_text(VERDICTS)
    for page, kernel, signature in (
        (one, "strided", "*fp32:16, *fp32:16, i32, 1024"),
        (other, "wide", "*fp32:16, *fp32:16, 1024"),
    ):
        assert cli.main(["inspect", f"{file}:{kernel}", "-s", signature, "-t", "nvidia-hopper", "-o", str(page)]) == 0
    assert cli.main(["inspect", "--compare", str(one), str(other), "-o", str(both)]) == 0
    browser.set_window_size(1400, 1000)
    browser.get(both.as_uri())
    rows = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#differences tr")]
    assert any(row.startswith("narrowest load") and "32" in row and "128" in row for row in rows), rows
    frames = browser.find_elements(By.TAG_NAME, "iframe")
    for frame, title in zip(frames, ("Kernel strided", "Kernel wide"), strict=True):
        browser.switch_to.frame(frame)
        assert browser.find_element(By.ID, "title").text == title
        browser.switch_to.default_content()
    assert cli.main(["inspect", "--compare", str(one), str(file), "-o", str(both)]) == 1
    assert f"error: {file} is not a page of `triton-spirv inspect`" in capsys.readouterr().err
    assert cli.main(["inspect"]) == 1
    assert "name a kernel, or two pages with --compare" in capsys.readouterr().err


def test_kernels_of_the_same_name_from_different_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another checkout's kernel is not taken for the one that was meant."""
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))
    for folder in ("mine", "theirs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kernels.py").write_text(VERDICTS.replace("* 2", "* 3") if folder == "mine" else VERDICTS)
        path = str(tmp_path / folder / "kernels.py")
        for block in ("512", "1024"):
            signature = f"*fp32:16, *fp32:16, {block}"
            assert cli.main(["inspect", f"{path}:wide", "-s", signature, "-o", str(tmp_path / "page.html")]) == 0
    capsys.readouterr()
    for command in (["inspect", "wide", "-o", str(tmp_path / "page.html")], ["disassemble", "wide"]):
        assert cli.main(command) == 1
        error = capsys.readouterr().err
        for folder in ("mine", "theirs"):
            assert re.search(rf"[A-Z0-9]{{12}} {tmp_path}/{folder}/kernels\.py:\d+", error), error
        assert error.count("\n") == 1 and "choose one by its key" in error
    key = re.search(rf"([A-Z0-9]{{12}}) {tmp_path}/mine", error)
    assert key is not None and cli.main(["inspect", key[1], "-o", str(tmp_path / "page.html")]) == 0
    assert f"{tmp_path}/mine/kernels.py" in (tmp_path / "page.html").read_text()
