"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A text with what stands between backticks as code.
const words = (text) => text.split("`").map((part, index) => index % 2 ? make("code", {}, part) : part);

function draw(name, attributes, title) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (title !== undefined) {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "title");
    text.textContent = title;
    element.append(text);
  }
  return element;
}

// ---- the head --------------------------------------------------------------------------------------------------
document.getElementById("title").textContent = data.title;
document.getElementById("verdict").append(...words(data.verdict));
for (const [name, value] of data.facts) {
  document.getElementById("facts").append(make("div", {}, make("dt", {}, name), make("dd", {}, String(value))));
}
if (data.note) document.getElementById("facts").after(make("p", { class: "note", role: "note" }, ...words(data.note)));

// ---- stages, and the lines that belong together ------------------------------------------------------------------
const byPlace = new Map(); // "file:line" → the lines of every stage with that innermost frame
const stages = document.getElementById("stages");
let pinned = null;

function show(place, scrollFrom) {
  for (const line of document.querySelectorAll(".on, .near, .pinned")) line.classList.remove("on", "near", "pinned");
  if (place === null) return;
  for (const line of byPlace.get(place) || []) {
    line.classList.add(line.dataset.place === place ? "on" : "near");
    if (pinned === place && line.dataset.place === place) line.classList.add("pinned");
  }
  if (scrollFrom === undefined) return;
  for (const list of stages.querySelectorAll("ol")) {
    const first = list.querySelector(".on") || list.querySelector(".near");
    if (first && !list.contains(scrollFrom)) list.scrollTop = first.offsetTop - list.offsetTop - list.clientHeight / 3;
  }
}

function pin(place, from) {
  pinned = pinned === place ? null : place;
  show(pinned, from);
}

function stageOf(stage, visible) {
  const list = make("ol", { "aria-label": stage.title, role: "listbox" });
  for (const [text, numbers] of stage.lines) {
    const places = numbers.map((number) => data.places[number]);
    const line = make("li", { role: "option", tabindex: "-1" }, text || " ");
    if (places.length) line.dataset.place = places[0];
    for (const place of places) {
      if (!byPlace.has(place)) byPlace.set(place, []);
      byPlace.get(place).push(line);
    }
    list.append(line);
  }
  if (list.firstChild) list.firstChild.tabIndex = 0;
  const box = make("div", { class: "stage", id: "stage-" + stage.id }, make("h3", {}, stage.title), list);
  box.hidden = !visible;
  stages.append(box);
  const check = make("input", { type: "checkbox" });
  check.checked = visible;
  check.addEventListener("change", () => { box.hidden = !check.checked; });
  document.getElementById("shown").append(make("label", {}, check, " " + stage.title));
}

for (const stage of data.stages) stageOf(stage, ["source", "ttgir", "spv", "machine"].includes(stage.id));

// Focuses a line without scrolling its list sideways.
function focusLine(line) {
  const list = line.parentElement, left = list.scrollLeft;
  line.focus({ preventScroll: true });
  line.scrollIntoView({ block: "nearest" });
  list.scrollLeft = left;
}

const lineOf = (event) => event.target.closest ? event.target.closest(".stage li") : null;
stages.addEventListener("mouseover", (event) => {
  const line = lineOf(event);
  if (line && pinned === null) show(line.dataset.place || null);
});
stages.addEventListener("mouseleave", () => { if (pinned === null) show(null); });
stages.addEventListener("click", (event) => {
  const line = lineOf(event);
  if (line) { focusLine(line); if (line.dataset.place) pin(line.dataset.place, line); }
});
stages.addEventListener("focusin", (event) => {
  const line = lineOf(event);
  if (!line) return;
  for (const other of line.parentElement.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  line.tabIndex = 0;
  if (pinned === null) show(line.dataset.place || null, line);
});
stages.addEventListener("keydown", (event) => {
  const line = lineOf(event);
  if (!line) return;
  const boxes = [...stages.querySelectorAll(".stage:not([hidden])")];
  const here = boxes.findIndex((box) => box.contains(line));
  const beside = { ArrowLeft: boxes[here - 1], ArrowRight: boxes[here + 1] }[event.key];
  const target = { ArrowUp: line.previousElementSibling, ArrowDown: line.nextElementSibling }[event.key]
    || (beside && (beside.querySelector("li.on") || beside.querySelector('li[tabindex="0"]')));
  if (target) { event.preventDefault(); focusLine(target); }
  if (event.key === "Enter" && line.dataset.place) pin(line.dataset.place, line);
  if (event.key === "Escape") { pinned = null; show(null); }
});

function placeButton(places) {
  if (!places.length) return "";
  const [file, number] = [places[0].replace(/:\d+$/, ""), places[0].match(/\d+$/)[0]];
  const button = make("button", { class: "place", type: "button" }, file.split("/").pop() + ":" + number);
  button.addEventListener("click", () => {
    pinned = null;
    pin(places[0], button);
    document.getElementById("code").scrollIntoView();
  });
  return button;
}

function table(section, titles, rows) {
  const box = document.getElementById(section);
  if (!rows.length) { box.append(make("p", {}, "There are none.")); return; }
  const head = make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell) =>
    make("td", typeof cell === "number" ? { class: "number" } : {}, typeof cell === "number" ? String(cell) : cell))));
  box.append(make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))));
}

// ---- facts -------------------------------------------------------------------------------------------------------
table("accesses", ["Place", "What", "Bits", ...(data.machine ? ["In the machine code"] : ["Elements", "Why not wider"])],
  data.accesses.map((entry) => [placeButton(entry.places), entry.what, entry.bits, ...(data.machine ? [] : [entry.elements]), entry.why]));

const color = (index, count, light) => `hsl(${Math.round(360 * index / Math.max(1, count))} 65% ${light}%)`;

// How many elements each warp or lane (a row) sends to each other one (a column). Darker cells mean more elements.
function movesDrawing(what, counts) {
  const size = Math.max(4, Math.min(16, Math.floor(260 / counts.length))), side = counts.length * size + 2;
  const svg = draw("svg", { viewBox: `0 0 ${side} ${side}`, width: side, role: "img",
    "aria-label": `how many elements go from which ${what} to which` });
  const most = Math.max(1, ...counts.flat());
  counts.forEach((row, y) => row.forEach((count, x) => svg.append(draw("rect", { class: "cell", x: x * size + 1,
    y: y * size + 1, width: size - 0.5, height: size - 0.5, fill: "var(--accent)", "fill-opacity": 0.06 + 0.94 * count / most },
  `${count} elements from ${what} ${y} to ${what} ${x}`))));
  return make("figure", {}, svg, make("figcaption", {}, `From each ${what} (down) to each ${what} (across); the darkest cell is ${most} ${most === 1 ? "element" : "elements"}`));
}

if (!data.conversions.length) document.getElementById("conversions").append(make("p", {}, "There are none."));
data.conversions.forEach((entry, index) => {
  const box = make("details", {}, make("summary", {}, `${entry.how} `, placeButton(entry.places)));
  box.append(make("p", {}, `${entry.elements} elements, of which ${entry.lane} change their lane or warp, ${entry.warp} their warp` +
    (entry.why ? `; because ${entry.why}` : "") + "."));
  box.append(make("p", { class: "hint" }, "From ", make("code", {}, entry.from), " to ", make("code", {}, entry.to)));
  box.append(make("div", { class: "scroll moves" }, movesDrawing("warp", entry.warps), movesDrawing("lane", entry.lanes)));
  box.open = index === 0;
  document.getElementById("conversions").append(box);
});

document.getElementById("banks").append(make("p", { class: "hint" }, `An estimate from the layouts, for the first warp: ${data.bank_count} banks ` +
  `serve a word of 4 bytes each a step; lanes that want the same word share it, and lanes of 8 or 16 bytes are served ${data.bank_count / 2} or ${data.bank_count / 4} at a time ` +
  "(CUDA C++ Programming Guide, Shared Memory). Operands that a dot reads where they lie, slices of operands, reductions, scans and gathers are not among them. A CPU has no banks."));
table("banks", ["Place", "Operation", "What", "Bits", "Accesses", "Steps", "Fewest possible", "Conflicts"],
  data.banks.map((entry) => [placeButton(entry.places), entry.operation, entry.what, entry.bits, entry.accesses, entry.steps,
    entry.fewest, entry.steps > entry.fewest ? `${(entry.steps / entry.fewest).toFixed(1)} times the steps` : "none"]));

function layoutDrawing(layout) {
  const [rows, columns] = layout.shown, size = Math.max(8, Math.min(20, Math.floor(900 / columns)));
  const svg = draw("svg", { viewBox: `0 0 ${columns * size + 2} ${rows * size + 2}`, width: columns * size + 2, role: "img",
    "aria-label": "which warp and lane holds which element" });
  layout.cells.forEach((row, y) => row.forEach(([warp, lane, register, copies], x) => {
    const light = 35 + 45 * (lane / Math.max(1, layout.lanes - 1) || 0);
    svg.append(draw("rect", { class: "cell", x: x * size + 1, y: y * size + 1, width: size - 1, height: size - 1,
      fill: color(warp, layout.warps, light) },
    `element [${y}, ${x}]: warp ${warp}, lane ${lane}, register ${register}` +
      (copies > 1 ? `; ${copies} invocations hold a copy` : "")));
  }));
  return make("figure", {}, svg, make("figcaption", {}, layout.shape.length > 1 ? "Rows (down) and columns (across) of the tensor" :
    "Elements of the tensor, from left to right"));
}

const layouts = document.getElementById("layouts");
if (!data.layouts.length) layouts.append(make("p", {}, "The kernel has no tensors with a layout."));
function layoutBox(layout) {
  const part = layout.shown.join("×") !== layout.shape.slice(-2).join("×") ? `, the first ${layout.shown.join("×")} shown` : "";
  const box = make("details", {}, make("summary", {}, make("code", {}, layout.type)));
  box.append(make("p", { class: "hint" }, `${layout.warps} warps × ${layout.lanes} lanes × ${layout.registers} registers${part}. ` +
    "A colour is a warp, its lightness the lane; hover over an element to read its place."));
  const drawing = make("div", { class: "scroll" });
  box.append(drawing);
  box.addEventListener("toggle", () => { if (box.open && !drawing.firstChild) drawing.append(layoutDrawing(layout)); });
  return box;
}
const main = data.layouts.filter((layout) => layout.data), others = data.layouts.filter((layout) => !layout.data);
layouts.append(...main.map(layoutBox));
if (others.length) {
  layouts.append(make("details", { class: "others" },
    make("summary", {}, `${others.length} layouts of masks, pointers and indices`), ...others.map(layoutBox)));
}
if (layouts.querySelector("details:not(.others)")) layouts.querySelector("details:not(.others)").open = true;

(function sharedMemory() {
  const box = document.getElementById("shared"), shared = data.shared;
  box.append(make("p", {}, `${shared.total} of ${shared.limit} bytes. Time runs to the right, one step for each operation of ` +
    "the plan. Dashed lines are barriers: strong lines of the workgroup, faint lines of a subgroup."));
  if (!shared.buffers.length) return;
  const width = 900, height = 260, left = 60;
  const x = (step) => left + (width - left - 10) * step / Math.max(1, shared.steps);
  const y = (offset) => 10 + (height - 30) * offset / Math.max(1, shared.extent);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "buffers in shared memory over time" });
  for (const offset of [0, shared.extent]) {
    const text = draw("text", { x: 0, y: y(offset) + 4 });
    text.textContent = String(offset);
    svg.append(text);
  }
  const down = draw("text", { x: 0, y: y(shared.extent / 2) + 4 }), across = draw("text", { x: width - 10, y: height - 2, "text-anchor": "end" });
  down.textContent = "bytes ↓";
  across.textContent = "operations, in the order of the program →";
  svg.append(down, across);
  shared.buffers.forEach((buffer, index) => {
    const rect = draw("rect", { class: "buffer", x: x(buffer.start), y: y(buffer.offset),
      width: Math.max(3, x(buffer.end + 1) - x(buffer.start)), height: Math.max(2, y(buffer.size) - y(0)),
      fill: color(index, shared.buffers.length, 60), "fill-opacity": 0.8 },
    `${buffer.name}: bytes ${buffer.offset} to ${buffer.offset + buffer.size - 1}` + (buffer.places[0] ? `, ${buffer.places[0]}` : ""));
    rect.addEventListener("click", () => { if (buffer.places.length) { pinned = null; pin(buffer.places[0], rect); } });
    svg.append(rect);
    const right = x(buffer.start) > width - 160;
    const name = draw("text", { class: "name", x: x(buffer.start) + (right ? -4 : 4), y: y(buffer.offset) + 14,
      "text-anchor": right ? "end" : "start" });
    name.textContent = `${buffer.label} ${buffer.size} B`;
    svg.append(name);
  });
  for (const barrier of shared.barriers) {
    svg.append(draw("line", { x1: x(barrier.step), x2: x(barrier.step), y1: 5, y2: height - 15, stroke: "currentColor",
      "stroke-opacity": barrier.whose.endsWith("workgroup") ? 1 : 0.35, "stroke-dasharray": "3 3" }, "barrier: " + barrier.whose));
  }
  box.append(make("div", { class: "scroll" }, svg));
})();

(function mix() {
  const most = Math.max(1, ...data.mix.map(([, count]) => count));
  table("mix", ["Family", "Count", ""], data.mix.map(([name, count]) =>
    [name, count, make("span", { class: "bar", style: `width: ${Math.round(220 * count / most)}px` })]));
})();

(function driver() {
  const box = document.getElementById("driver"), { device, why, executables, registers, spills } = data.driver;
  if (!executables.length) { box.append(make("p", {}, `Nothing is known: ${why}.`)); return; }
  if (why) box.append(make("p", {}, `But ${why}.`));
  const known = [[registers, "registers an invocation"], [spills, "spilled"]].filter(([count]) => count !== null);
  box.append(make("p", {}, `${device}: ${known.map(([count, what]) => `${count} ${what}`).join(", ") || "compiled"}. ` +
    "The names and explanations below are the driver's."));
  for (const executable of executables) {
    const size = executable.subgroup_size ? `, subgroups of ${executable.subgroup_size}` : "";
    box.append(make("h3", {}, executable.name + size));
    table("driver", ["Statistic", "Value", "Explanation"],
      executable.statistics.map((row) => [row.name, row.value, row.description]));
    for (const text of executable.representations) {
      box.append(make("details", {}, make("summary", {}, `${text.name}: ${text.description}`),
        make("pre", { class: "scroll", tabindex: "0" }, text.text)));
    }
  }
})();

const amount = (value, unit) => {
  const powers = ["", "k", "M", "G", "T", "P"];
  let power = 0;
  while (value >= 1000 && power < 5) { value /= 1000; power += 1; }
  return `${value.toPrecision(3)} ${powers[power]}${unit}`;
};

// A roofline: attainable operations per second over operations per byte, on logarithmic axes, and the kernel's place.
function rooflineDrawing(peaks, intensity, rate) {
  const ridge = peaks.operations_a_second / peaks.bytes_a_second, width = 620, height = 260, left = 70, bottom = 30;
  const lows = [Math.min(intensity, ridge) / 8, Math.min(rate, peaks.operations_a_second) / 30];
  const highs = [Math.max(intensity, ridge) * 8, Math.max(rate, peaks.operations_a_second) * 3];
  const scale = (value, axis) => Math.log(value / lows[axis]) / Math.log(highs[axis] / lows[axis]);
  const x = (value) => left + (width - left - 10) * scale(value, 0);
  const y = (value) => height - bottom - (height - bottom - 10) * Math.max(0, scale(value, 1));
  const roof = (value) => Math.min(peaks.operations_a_second, peaks.bytes_a_second * value);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": "roofline of the device and the kernel's place in it" });
  const line = [lows[0], ridge, highs[0]].map((value) => `${x(value)},${y(roof(value))}`).join(" ");
  svg.append(draw("polyline", { points: line, fill: "none", stroke: "currentColor", "stroke-width": 2 }, "what the device reaches at best"));
  svg.append(draw("line", { x1: x(intensity), x2: x(intensity), y1: y(rate), y2: y(roof(intensity)), stroke: "var(--accent)", "stroke-dasharray": "3 3" }));
  svg.append(draw("circle", { cx: x(intensity), cy: y(rate), r: 5, fill: "var(--accent)" }, "this kernel"));
  for (const [value, at] of [[peaks.operations_a_second, peaks.operations_a_second], [rate, rate]]) {
    const text = draw("text", { x: 0, y: y(at) + 4 });
    text.textContent = amount(value, "op/s");
    svg.append(text);
  }
  for (const value of [intensity, ridge]) {
    const text = draw("text", { x: x(value), y: height - 8, "text-anchor": "middle" });
    text.textContent = value.toPrecision(2) + " op/B";
    svg.append(text);
  }
  const across = draw("text", { x: width - 10, y: height - bottom - 6, "text-anchor": "end" });
  across.textContent = "operations per byte →";
  const upwards = draw("text", { x: left + 4, y: 12 });
  upwards.textContent = "↑ operations per second";
  svg.append(across, upwards);
  return svg;
}

(function speed() {
  const box = document.getElementById("speed"), known = data.speed;
  if (!known) {
    box.append(make("p", {}, "No launch was timed. ", make("code", {}, "triton-spirv profile --roofline --trace trace.json script.py"),
      " times them, and ", make("code", {}, "triton-spirv inspect --launches trace.json"), " shows them here."));
    return;
  }
  const { launches, seconds, bytes, distinct, flops, estimated, peaks } = known, about = estimated ? "≈ " : "";
  const rows = [["launches", String(launches)], ["median", seconds < 1e-3 ? (seconds * 1e6).toPrecision(3) + " µs" : (seconds * 1e3).toPrecision(3) + " ms"], ["grid", known.grid.join(" × ")]];
  if (bytes) rows.push(["bytes", about + amount(bytes, "B")], ["bytes a second", about + amount(bytes / seconds, "B/s")]);
  if (distinct < bytes) rows.push(["of them, each byte once", about + amount(distinct, "B")], ["those a second", about + amount(distinct / seconds, "B/s")]);
  if (flops) rows.push(["operations", about + amount(flops, "")], ["operations a second", about + amount(flops / seconds, "op/s")]);
  if (bytes && flops) rows.push(["operations a byte", about + (flops / bytes).toPrecision(3)]);
  if (peaks) rows.push(["the device at best", `${amount(peaks.bytes_a_second, "B/s")}, ${amount(peaks.operations_a_second, "op/s")} (${peaks.device})`]);
  if (peaks && peaks.bytes_of_a_thread) rows.push(["one thread of it at best", `${amount(peaks.bytes_of_a_thread, "B/s")}, ${amount(peaks.operations_of_a_thread, "op/s")}`]);
  if (peaks && peaks.bytes_of_caches) rows.push(["its caches at best", amount(peaks.bytes_of_caches, "B/s")]);
  table("speed", ["", ""], rows);
  if (estimated) box.append(make("p", { class: "hint" }, "≈ is an estimate from the kernel's loads, stores and arithmetic, masked elements included."));
  if (!peaks || !bytes) return;
  const intensity = flops / distinct, ridge = peaks.operations_a_second / peaks.bytes_a_second;
  const [limit, best, reached] = intensity < ridge
    ? ["memory", "a copy", distinct / seconds / peaks.bytes_a_second]
    : ["arithmetic", "multiply-adds", flops / seconds / peaks.operations_a_second];
  box.append(make("p", {}, `With ${intensity.toPrecision(2)} operations a byte, ${limit} is the limit at best. The kernel reaches ` +
    `${(100 * reached).toFixed(0)} % of what ${best} reach${limit === "memory" ? "es" : ""}` +
    (reached < 0.25 ? ": something else holds it back, such as too few programs, waits, or work that is not counted here." : ".")));
  if (flops) box.append(make("div", { class: "scroll" }, rooflineDrawing(peaks, intensity, flops / seconds)));
})();
