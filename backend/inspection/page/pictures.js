// ---- pictures: the kernel's shape, the flow of data through dots, where the code is long ----------------------------
function label(svg, x, y, text, attributes = {}) {
  const element = draw("text", { x, y, ...attributes });
  element.textContent = text;
  svg.append(element);
}

(function shape() {
  const box = document.getElementById("shape"), known = data.shape;
  if (!known) { box.append(make("p", {}, "The kernel works on scalars alone.")); return; }
  const grid = data.speed ? data.speed.grid.join(" × ") + " programs" : "a grid of programs";
  const panels = make("div", { class: "panels" });
  // One after the other in a wide window, below each other in a narrow one.
  function panel(width, what, ...lines) {
    const svg = draw("svg", { viewBox: `0 0 ${width} 184`, width, role: "img", "aria-label": what });
    lines.forEach((line, index) => label(svg, 2, 160 + 16 * index, line));
    panels.append(svg);
    return svg;
  }
  const programs = panel(210, "the programs of the grid", grid);
  for (let y = 0; y < 5; y += 1) for (let x = 0; x < 6; x += 1) programs.append(draw("rect", { x: 2 + 26 * x, y: 10 + 26 * y,
    width: 22, height: 22, fill: x === 2 && y === 2 ? "var(--accent)" : "var(--line)" }));
  programs.append(draw("line", { x1: 76, y1: 73, x2: 210, y2: 73, stroke: "currentColor", "stroke-dasharray": "3 3" }));
  const warps = Math.min(known.warps, 8), high = 126 / warps;
  const program = panel(300, "the warps of one program", `one program: ${known.warps} warps × ${known.lanes} lanes`);
  for (let warp = 0; warp < warps; warp += 1) program.append(draw("rect", { x: 2, y: 10 + warp * high, width: 190, height: high - 2,
    fill: color(warp, warps, 60) }, `warp ${warp}: ${known.lanes} lanes`));
  program.append(draw("line", { x1: 194, y1: 73, x2: 300, y2: 73, stroke: "currentColor", "stroke-dasharray": "3 3" }));
  const [rows, columns] = [known.tile.length > 1 ? known.tile[known.tile.length - 2] : 1, known.tile[known.tile.length - 1]];
  const scale = Math.min(210 / columns, 126 / rows), wide = Math.max(8, columns * scale), tall = Math.max(8, rows * scale);
  panel(240, "the tile of the program", `its tile: ${known.tile.join(" × ")}, ${known.what}`,
    `a lane holds ${known.registers} elements`).append(draw("rect", { x: 2, y: 10, width: wide, height: tall,
    fill: "var(--soft)", stroke: "currentColor" }, `${known.elements} elements`));
  box.append(panels, make("p", { class: "hint" }, "The largest tensor that the program " +
    (known.what === "stored" ? "stores" : "loads") + " is its tile here: ", placeButton(known.places)));
})();

// Each operand of a dot gets a column of steps from its loads to the dot. One more column leads to the store.
function flowDrawing(dot) {
  const columns = [...dot.operands, dot.result], heights = columns.map((steps) => steps.length);
  const above = Math.max(...heights.slice(0, -1), 1), line = 46, width = 300;
  const total = (above + 1 + dot.result.length) * line + 10;
  const svg = draw("svg", { class: "flow", viewBox: `0 0 ${2 * width + 20} ${total}`, width: 2 * width + 20, role: "img",
    "aria-label": "how data flows through the dot" });
  const at = (step) => step.places.length ? step.places[0].split("/").pop() : "";
  function block(x, y, wide, name, note, title) {
    svg.append(draw("rect", { x, y, width: wide, height: line - 12, rx: 3 }, title));
    label(svg, x + 6, y + 14, name);
    label(svg, x + 6, y + 28, note.length > wide / 6.6 ? note.slice(0, wide / 6.6 - 1) + "…" : note);
    svg.append(draw("line", { x1: x + wide / 2, y1: y + line - 12, x2: x + wide / 2, y2: y + line, stroke: "currentColor" }));
  }
  dot.operands.forEach((steps, side) => steps.forEach((step, index) => block(side * (width + 20), (above - steps.length + index) * line + 4,
    width, `${step.name} ${at(step)}`, step.note, step.type)));
  block(0, above * line + 4, 2 * width + 20, `dot ${at(dot)}`, dot.how, dot.type);
  dot.result.forEach((step, index) => block(width / 2, (above + 1 + index) * line + 4, width + 20, `${step.name} ${at(step)}`, step.note, step.type));
  return svg;
}

(function dots() {
  const box = document.getElementById("dots");
  if (!data.dots.length) box.append(make("p", {}, "There are none."));
  data.dots.forEach((dot, index) => {
    const details = make("details", {}, make("summary", {}, `${dot.matrix ? "on matrix units" : "by multiply-adds"}: ${dot.how} `,
      placeButton(dot.places)), make("div", { class: "scroll" }, flowDrawing(dot)));
    details.open = index === 0;
    box.append(details);
  });
})();

// The share of the module's instructions that comes from each line of Python, including the functions it calls.
(function heat() {
  const counts = new Map(), code = data.stages.find((stage) => stage.id === "spv").lines;
  let most = 0;
  for (const [, numbers] of code) {
    for (const number of new Set(numbers)) {
      counts.set(data.places[number], (counts.get(data.places[number]) || 0) + 1);
      most = Math.max(most, counts.get(data.places[number]));
    }
  }
  for (const line of document.querySelectorAll("#stage-source li")) {
    const count = counts.get(line.dataset.place);
    if (!count) continue;
    line.classList.add("heat");
    line.style.setProperty("--heat", (count / most).toFixed(3));
    line.title = `${count} of ${code.length} instructions`;
  }
})();

// SPIR-V is shown from its body on. The declarations before it can be scrolled to.
(function body() {
  const list = document.querySelector("#stage-spv ol"), first = list.children[data.body];
  if (first) list.scrollTop = first.offsetTop - list.offsetTop;
})();
document.documentElement.dataset.ready = "yes";
