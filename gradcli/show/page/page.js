// Everything that the page shows comes from this document, as text: nothing of it is run.
const page = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const picture = find("picture");
// Each node of the forward pass and each step of the backward one; `steps` has them by what is
// drawn: what a closed module does in a row is one step.
const parts = [
  ...page.forward.map((node) => ({ pass: "forward", node })),
  ...page.backward.map((rows) => ({ pass: "backward", node: page.rows[rows[0]].node, rows })),
];
const forwardParts = page.forward.length;
const edgeRows = new Map(page.rows.filter((row) => row.kind === "edge").map((row) => [`${row.node},${row.edge}`, row]));
const incoming = new Map(page.rows.filter((row) => row.kind === "node").map((row) => [row.node, row]));
let steps = [], at = 0, playing = null, zoom = 0;  // 0: as much as fits

// --- numbers as text ---------------------------------------------------------------------------

function shown(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return `[${value.map(shown).join(Array.isArray(value[0]) ? ",\n " : ", ")}]`;
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) < 1e6 ? `${value}.` : String(Number(value.toPrecision(6)));
  if (typeof value === "object") return "norm" in value ? `(${value.shape.join(", ")}) norm ${value.norm}` : JSON.stringify(value);
  return String(value);
}

const lasting = (seconds) => {
  const [unit, many] = seconds >= 1 ? ["s", 1] : seconds >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
  return `${Number((seconds * many).toPrecision(3))} ${unit}`;
};

const called = (id) => {
  const node = page.nodes[id];
  return node.variable || node.source || `${node.name} #${id}`;
};

// --- what a step does --------------------------------------------------------------------------

// Each line is a list of pieces, text with the class it is dressed in.
function edgeLines(row) {
  const lines = [[["head", `→ ${row.operand}`]]];
  const grad = incoming.get(row.node).gradients_in;
  if (row.derivative) lines.push([["", `${row.derivative} = ${row.named} = ${shown(row.local)}`]]);
  else if (row.named) lines.push([["", row.named]]);
  const product = row.derivative && grad.length === 1 && typeof row.local !== "object" ? `${shown(grad[0])} × ${shown(row.local)} = ` : "passes on ";
  lines.push([["flow", ""], ["flow", product], ["flow result", shown(row.product)]]);
  return lines;
}

function linesOfRow(row) {
  if (row.kind === "node") {
    return [[["head", called(row.node)]], [["kind", page.nodes[row.node].name]], [["flow", `gradient in ${row.gradients_in.map(shown).join(", ")}`]]];
  }
  if (row.kind === "edge") return edgeLines(row);
  if (row.kind === "sum_to") return [[["", `summed to the shape (${row.shape.join(", ")}): `], ["result", shown(row.value)]]];
  if (row.kind === "cast") return [[["", `cast to ${row.dtype}: `], ["result", shown(row.value)]]];
  const name = row.kind === "leaf" ? `${called(row.node)}.grad` : `gradients meet at ${called(row.node)}`;
  const sum = row.old === null ? "" : `${shown(row.old)} + ${shown(row.incoming)} = `;
  return [[["head", name]], [["flow", sum ? sum : "= "], ["flow result", shown(row.new)]]];
}

// What happens in a step, as lists of lines: of a closed module what it takes and gives.
function itemsOf(step) {
  const item = items[boxOf.get(step.node)];
  return item?.kind === "module" && page.modules[item.key] ? [moduleLines(item, step)] : step.parts.flatMap(linesOfPart);
}

function moduleLines(item, step) {
  const facts = factsOf(item), { title, path } = page.modules[item.key], head = [[["head", title]], [["kind", path]]];
  const list = (ids) => ids.map((id) => `${called(id)} (${page.nodes[id].shape.join(", ")})`).join(", ") || "none";
  const reads = facts.inputs.length ? list(facts.inputs) : "nothing that has a gradient";
  if (step.pass === "forward") return [...head, [["", `reads ${reads}`]], [["", "gives "], ["result", list(facts.outputs)]]];
  return [...head, [["flow", `‖g‖ in ${brief(facts.gradientIn)}`]], [["flow", "‖g‖ out "], ["flow result", brief(facts.gradientOut)]]];
}

function linesOfPart(step) {
  if (step.pass === "backward") return step.rows.map((place) => linesOfRow(page.rows[place]));
  const node = page.nodes[step.node];
  return [[[["head", called(step.node)]], [["kind", `${node.name}, ${node.dtype}, shape (${node.shape.join(", ")})`]], [["", "= "], ["result", shown(node.value)]]]];
}

function element(name, className, ...children) {
  const part = document.createElement(name);
  if (className) part.className = className;
  part.append(...children);
  return part;
}

const lineElement = (pieces) => element("div", "", ...pieces.map(([className, text]) => element("span", className, text)));
const itemElement = (lines) => element("li", "", ...lines.map(lineElement));

// --- the current step --------------------------------------------------------------------------

// When a node is computed, its gradient arrives, and a gradient flows along an edge: the numbers of
// the parts in which they do.
const metIn = new Map(), gradedIn = new Map(), flowsIn = new Map();
parts.forEach(({ pass, node, rows }, number) => {
  if (pass === "forward") metIn.set(node, number);
  for (const row of (rows || []).map((place) => page.rows[place])) {
    if (row.kind === "edge") flowsIn.set(`${row.node},${row.edge}`, number);
    if (row.kind !== "meet" && !gradedIn.has(row.node)) gradedIn.set(row.node, number);
  }
});

// Gather the parts into steps, one for each row of parts at one item.
function gather() {
  const part = steps.length ? steps[at].first : 0;
  steps = [];
  parts.forEach((each, number) => {
    const item = boxOf.get(each.node), before = steps.at(-1);
    const several = items[item].kind === "module" || (items[item].kind === "node" && items[item].nodes.length > 1);
    if (several && before?.item === item && before.pass === each.pass) { before.parts.push(each); before.last = number; }
    else steps.push({ pass: each.pass, node: each.node, item, parts: [each], first: number, last: number });
  });
  const first = (values) => Math.min(Infinity, ...values.filter((value) => value !== undefined));
  items.forEach((item, box) => {
    item.group = find(`box${box}`);
    item.met = item.nodes.length ? first(item.nodes.map((node) => metIn.get(node))) : -1;
    item.graded = first(item.nodes.map((node) => gradedIn.get(node)));
    item.gradients = [...item.group.querySelectorAll(".gradient")];
  });
  links.forEach((link, arrow) => {
    link.group = find(`arrow${arrow}`);
    link.met = link.edges.length ? first(link.edges.map(([node]) => metIn.get(node))) : -1;
    link.flows = link.edges.map((edge) => flowsIn.get(edge.join(","))).filter((each) => each !== undefined);
    link.passed = first(link.flows);
    link.nodes = link.edges.map(([node]) => node);
    link.back = [...link.group.querySelectorAll(".backward, .back"), find(`label${arrow}`)].filter(Boolean);
  });
  const forward = steps.filter(({ pass }) => pass === "forward").length;
  find("step").max = steps.length - 1;
  find("step").style.setProperty("--split", `${(100 * (forward - 0.5)) / Math.max(steps.length - 1, 1)}%`);
  at = Math.max(0, steps.findLastIndex(({ first: begin }) => begin <= part));
}

function show(step) {
  at = Math.max(0, Math.min(steps.length - 1, step));
  const now = steps[at];
  document.body.dataset.pass = now.pass;
  find("count").replaceChildren("step ", element("b", "", `${at + 1}`), ` of ${steps.length}, `, element("b", "", `${now.pass} pass`));
  find("step").value = at;
  find("step").setAttribute("aria-valuetext", `${at + 1} of ${steps.length}, ${now.pass} pass`);
  find("rows").replaceChildren(...itemsOf(now).map(itemElement));
  light(page.nodes[now.node].line);
  const within = (number) => number >= now.first && number <= now.last, nodes = new Set(now.parts.map(({ node }) => node));
  items.forEach((item, box) => {
    item.group.classList.toggle("unseen", item.met > now.last);
    item.group.classList.toggle("lit", now.item === box);
    for (const text of item.gradients) text.classList.toggle("unborn", item.graded > now.last);
  });
  for (const link of links) {
    link.group.classList.toggle("flowing", link.flows.some(within));
    link.group.classList.toggle("arriving", now.pass === "forward" && link.nodes.some((node) => nodes.has(node)));
    link.group.classList.toggle("unseen", link.met > now.last);
    for (const part of link.back) part.classList.toggle("unborn", link.passed > now.last);
  }
  reveal(items[now.item].group);
}

// Scroll a part into view inside its pane alone: the page stays where the reader put it.
const ACROSS = ["left", "right", "scrollLeft"], DOWN = ["top", "bottom", "scrollTop"];

function scrollIn(pane, part, ...ways) {
  const outer = pane.getBoundingClientRect(), inner = part.getBoundingClientRect();
  for (const [start, end, along] of ways) {
    if (inner[start] < outer[start] || inner[end] > outer[end]) pane[along] += (inner[start] + inner[end] - outer[start] - outer[end]) / 2;
  }
}

function light(line) {
  const lit = find("program").children[line - 1], before = find("program").querySelector(".lit");
  if (before === lit) return;
  before?.classList.remove("lit");
  lit?.classList.add("lit");
  if (lit) scrollIn(find("program"), lit, DOWN);
}

const canvas = document.querySelector(".canvas");
function reveal(group) {
  if (group && zoom) scrollIn(canvas, group, ACROSS, DOWN);
}

// --- details -----------------------------------------------------------------------------------

function fields(title, pairs) {
  const list = element("dl", "mono");
  for (const [name, text, className] of pairs) {
    if (text !== undefined && text !== "") list.append(element("dt", "", name), element("dd", className || "", text));
  }
  find("what").textContent = title;
  find("what").className = "named";
  find("node").replaceChildren(list);
}

function describe(id) {
  const node = page.nodes[id];
  const saved = Object.entries(node.saved || {}).map(([name, value]) => `${name} = ${shown(value)}`);
  fields(called(id), [
    ["node", node.name], ["value", shown(node.value)], ["gradient", shown(node.gradient), "gradient"],
    ["shape", `(${node.shape.join(", ")}), ${node.dtype}`], ["module", node.module || ""],
    ["place", node.line ? `line ${node.line}: ${node.source}` : ""], ["saves", saved.join("\n")],
  ]);
}

function describeModule(item) {
  const { title, path, forward, backward, calls } = page.modules[item.key], facts = factsOf(item);
  const times = [["forward", forward], ["backward", backward]].filter(([, seconds]) => seconds !== undefined);
  const list = (ids) => ids.map((id) => `${called(id)} (${page.nodes[id].shape.join(", ")})`).join("\n");
  const parameters = facts.parameters.map((id) => `${called(id)} (${page.nodes[id].shape.join(", ")})  ‖g‖ ${brief(normOf(page.nodes[id].gradient))}`);
  fields(title, [
    ["module", path], ["nodes", `${item.nodes.length - facts.parameters.length}`], ["inputs", list(facts.inputs)], ["outputs", list(facts.outputs)],
    ["‖g‖ in", brief(facts.gradientIn), "gradient"], ["‖g‖ out", brief(facts.gradientOut), "gradient"],
    ["time", times.map(([pass, seconds]) => `${pass} ${lasting(seconds)}`).join(", ") + (calls > 1 ? ` (${calls} calls)` : "")],
    ["parameters", parameters.join("\n")],
  ]);
}

function describeEdge(node, edge, count) {
  const row = edgeRows.get(`${node},${edge}`);
  if (!row) { fields(`into ${called(node)}`, [["gradient", "none", "gradient"]]); return; }
  fields(`${row.operand} → ${called(node)}`, [
    ["edges", count > 1 ? `${count}; the first:` : ""], ["rule", row.formula || ""],
    ["derivative", row.derivative ? `${row.derivative} = ${row.named} = ${shown(row.local)}` : row.named || ""],
    ["passes on", shown(row.product), "gradient"],
  ]);
}

// --- inputs that can be moved ------------------------------------------------------------------

// A value in the words of what stood there: as a norm, or its elements on one line.
function told(value, before) {
  if (before.includes("norm ")) return `norm ${brief(normOf(value))}`;
  const short = (each) => (Array.isArray(each) ? each.map(short) : typeof each === "number" ? Number(each.toPrecision(5)) : each);
  return shown(short(value)).replaceAll(/\s+/g, " ");
}

const retold = (text, value) => text.replace(/^(\s*(?:value|grad) ).*/s, (_, head) => `${head}${told(value, text)}`);

function moved(leaves) {
  recompute(leaves);
  for (const box of page.boxes) {
    if (box.kind !== "leaf" && box.kind !== "node") continue;
    const { value, gradient } = page.nodes[box.nodes.at(-1)];
    for (const cell of box.rows.flat()) {
      if (cell[0] === "value") cell[1] = retold(cell[1], value);
      if (cell[0] === "gradient") cell[1] = retold(cell[1], gradient);
    }
  }
  for (const arrow of page.arrows) {
    if (arrow.edges.length === 1 && arrow.gradient) arrow.gradient = told(edgeRows.get(arrow.edges[0].join(",")).fitted, arrow.gradient);
  }
  redraw();
}

const MOST_MOVED = 24, MOST_AT_ONCE = 12;

// Why no input can be moved, or nothing.
function unmovable() {
  if (page.unmoved) return page.unmoved;
  if (!page.rows.length || page.rows.some((row) => row.kind === "leaf" && row.old !== null)) return "gradients were there before this pass";
  const other = page.forward.find((id) => !computable(id));
  if (other === undefined) return "";
  const { name, leaf, line } = page.nodes[other];
  return leaf ? `${called(other)} has elements that are no numbers` : `the page has no formula for ${name}${line ? `, line ${line}` : ""}`;
}

// An element that is dragged or typed: its range is as wide as its value asks.
function elementInput(leaves, id, place, label, shortly) {
  const data = leaves[id].data, start = data[place], span = Math.max(3, 2 * Math.abs(start));
  const range = element("input"), typed = element("input");
  Object.assign(range, { type: "range", min: start - span, max: start + span, step: span === 3 ? 0.01 : span / 300, value: start });
  Object.assign(typed, { type: "number", step: "any", value: Number(start.toPrecision(6)) });
  range.setAttribute("aria-label", `value of ${label}`);
  typed.setAttribute("aria-label", `value of ${label}, typed`);
  const take = (value, other) => { data[place] = value; other.value = Number(value.toPrecision(6)); moved(leaves); };
  range.addEventListener("input", () => take(Number(range.value), typed));
  typed.addEventListener("input", () => { if (Number.isFinite(typed.valueAsNumber)) take(typed.valueAsNumber, range); });
  return element("div", "slider", element("span", "mono", shortly), range, typed);
}

// The elements of a leaf: at once where there are few of them in all, else behind its name.
function leafInputs(leaves, id, behind) {
  const { shape, data } = leaves[id];
  const index = (place) => (shape.length ? `[${shape.map((size, at) => Math.floor(place / sizeOf(shape.slice(at + 1))) % size).join(", ")}]` : "");
  const made = () => data.map((_, place) => elementInput(leaves, id, place, `${called(id)}${index(place)}`, behind ? index(place) : `${called(id)}${index(place)}`));
  if (!behind) return made();
  const group = element("details", "leaf", element("summary", "mono", `${called(id)} (${shape.join(", ")})`));
  group.addEventListener("toggle", () => { if (group.childElementCount === 1) group.append(...made()); });
  return [group];
}

function addSliders() {
  const ids = page.forward.filter((id) => page.nodes[id].leaf), hint = find("inputs").lastElementChild;
  const refuse = (why) => { hint.textContent = `They cannot be moved here: ${why}.`; };
  const why = unmovable();
  if (why) { refuse(why); return; }
  const leaves = Object.fromEntries(ids.map((id) => [id, tensor(elementsOf(page.nodes[id]), page.nodes[id].shape)]));
  const small = ids.filter((id) => leaves[id].data.length <= MOST_MOVED), large = ids.filter((id) => !small.includes(id));
  const moving = small.filter((id) => !page.staying[id]), staying = small.filter((id) => page.staying[id]);
  const reasons = [...new Set(staying.map((id) => page.staying[id]))];
  if (!small.length) { refuse(`each has more than ${MOST_MOVED} elements`); return; }
  if (!moving.length && reasons.length === 1) { refuse(reasons[0]); return; }
  if (!agrees(leaves)) { refuse("what the page computes is not what the run did"); return; }
  const count = moving.reduce((sum, id) => sum + leaves[id].data.length, 0);
  hint.before(...moving.flatMap((id) => leafInputs(leaves, id, count > MOST_AT_ONCE && leaves[id].data.length > 1)));
  if (!moving.length) hint.textContent = "They cannot be moved here.";
  for (const reason of reasons) hint.textContent += ` ${staying.filter((id) => page.staying[id] === reason).map(called).join(", ")} stays: ${reason}.`;
  if (large.length) hint.textContent += ` What has more than ${MOST_MOVED} elements stays: ${large.map(called).join(", ")}.`;
}

// --- size of the graph -------------------------------------------------------------------------

const LARGEST = 1.6, SCROLLED = 0.85, SMALLEST = 0.15, MOST_SHOWN = 60, MOST_SCROLLED = 40;

// The smallest scale at which modules are opened: a large window has room for larger text. What
// stands around all the others is opened at any, or there would be nothing to see: a picture below
// the smallest scale that can be read is larger than the window, and scrolls.
const legible = () => (canvas.clientHeight > 900 ? 0.85 : 0.7);
const STILL_LEGIBLE = 0.65;

const fitting = ({ width, height }) => Math.min(LARGEST, (canvas.clientWidth - 16) / width, (canvas.clientHeight - 16) / height);

function resize() {
  const scale = zoom || Math.max(0.02, fitting(extent));
  picture.style.width = `${extent.width * scale}px`;
  picture.style.height = `${extent.height * scale}px`;
  return scale;
}

function zoomTo(scale) {
  zoom = Math.max(SMALLEST, Math.min(4, scale));
  resize();
  reveal(canvas.querySelector(".lit"));
}

find("in").addEventListener("click", () => zoomTo(resize() * 1.25));
find("out").addEventListener("click", () => zoomTo(resize() / 1.25));
const fit = () => { zoom = 0; resize(); };
find("fit").addEventListener("click", fit);
addEventListener("resize", resize);

// --- controls ----------------------------------------------------------------------------------

function stop() {
  clearInterval(playing);
  playing = null;
  find("play").textContent = "Play";
}

function play() {
  if (playing) { stop(); return; }
  if (at === steps.length - 1) show(0);
  find("play").textContent = "Pause";
  playing = setInterval(() => { if (at === steps.length - 1) stop(); else show(at + 1); }, 1000 / Number(find("speed").value));
}

find("speed").addEventListener("change", () => { if (playing) { stop(); play(); } });

const go = (step) => { stop(); show(step); };
find("first").addEventListener("click", () => go(0));
find("back").addEventListener("click", () => go(at - 1));
find("forward").addEventListener("click", () => go(at + 1));
find("last").addEventListener("click", () => go(steps.length - 1));
find("play").addEventListener("click", play);
find("step").addEventListener("input", (event) => go(Number(event.target.value)));
document.addEventListener("keydown", (event) => {
  const tag = event.target.tagName;
  if (tag === "INPUT" || tag === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); find("find").focus(); return; }
  if (event.key === " " && tag !== "BUTTON" && event.target.getAttribute("role") !== "button") { event.preventDefault(); play(); return; }
  const zooms = new Map([["+", () => zoomTo(resize() * 1.25)], ["-", () => zoomTo(resize() / 1.25)], ["0", fit]]).get(event.key);
  if (zooms) { event.preventDefault(); zooms(); return; }
  const to = new Map([["ArrowRight", at + 1], ["ArrowLeft", at - 1], ["Home", 0], ["End", steps.length - 1]]).get(event.key);
  if (to !== undefined) { event.preventDefault(); go(to); }
});

// On paper the picture shows what the last step leaves.
let before = 0;
addEventListener("beforeprint", () => { fillSheet(); before = at; show(steps.length - 1); });
addEventListener("afterprint", () => show(before));

// What is told where one points at a part, moves to it or touches it.
function tells(part, label, tell) {
  part.setAttribute("tabindex", "0");
  part.setAttribute("role", "button");
  part.setAttribute("aria-label", label);
  for (const event of ["focus", "mouseenter", "click"]) part.addEventListener(event, tell);
}

// --- modules that open and close ---------------------------------------------------------------

// A part that opens or closes a module by a click, by Enter and by the space bar.
function turns(part, key, label, tell, open) {
  part.setAttribute("tabindex", "0");
  part.setAttribute("role", "button");
  part.setAttribute("aria-label", label);
  part.setAttribute("aria-expanded", `${!open}`);
  for (const event of ["focus", "mouseenter"]) part.addEventListener(event, tell);
  const turn = () => { if (open) opened.add(key); else opened.delete(key); redraw(key); };
  part.addEventListener("click", turn);
  part.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); turn(); }
  });
}

// Draw the graph as its modules are open now; the module that was turned keeps the focus.
function redraw(turned) {
  draw(arrange());
  gather();
  for (const frame of picture.querySelectorAll(".module-frame")) {
    const { title, path } = page.modules[frame.dataset.key];
    const inside = () => page.boxes.filter((box) => box.within.includes(frame.dataset.key)).flatMap((box) => box.nodes);
    turns(frame, frame.dataset.key, `close ${path}, ${title}`, () => describeModule({ key: frame.dataset.key, nodes: inside() }), false);
  }
  items.forEach((item) => {
    const id = item.nodes.at(-1);
    if (page.modules[item.key]) turns(item.group, item.key, `open ${page.modules[item.key].path}, ${page.modules[item.key].title}`, () => describeModule(item), true);
    else if (id !== undefined) tells(item.group, `${called(id)}, ${page.nodes[id].name}`, () => describe(id));
  });
  links.forEach(addLink);
  resize();
  show(at);
  if (turned === undefined) return;
  const item = items.find(({ key }) => key === turned), frame = [...picture.querySelectorAll(".module-frame")].find((each) => each.dataset.key === turned);
  // What was opened can be read; Fit shows the whole again.
  if (frame && resize() < legible()) {
    const { width, height } = frame.querySelector(".frame").getBBox();
    zoomTo(Math.max(resize(), Math.min(SCROLLED, fitting({ width, height }))));
    scrollIn(canvas, frame, ACROSS, DOWN);
  }
  (item?.group || frame)?.focus({ preventScroll: true });
  reveal(item?.group || frame?.querySelector(".title"));
}

const keysOf = () => [...new Set(page.boxes.flatMap((box) => box.within))];

function openAll() {
  for (const key of keysOf()) opened.add(key);
  redraw();
}

// At first modules are open, the outer ones before those within, as long as the whole can be read;
// one box says closed what it says open.
function openWhatFits() {
  const closed = new Set(page.closed);
  const keys = keysOf().sort((a, b) => a.split("/").length - b.split("/").length);
  let plan = arrange(), tries = 0;
  for (const key of keys) {
    const box = page.boxes.find(({ within }) => within.includes(key)), outer = box.within.slice(0, box.within.indexOf(key));
    const several = page.modules[key].title.includes(" × ");
    if (closed.has(page.modules[key].path) || !outer.every((each) => opened.has(each))) continue;
    const single = page.boxes.filter(({ within }) => within.includes(key)).length === 1;
    if (!page.expand && (several || single || ++tries > 24)) continue;
    opened.add(key);
    plan = arrange();
    if (page.expand) continue;
    const scale = fitting({ width: plan.width + 2 * BORDER, height: plan.height + 2 * BORDER });
    const scrolls = !key.includes("/") && items.length <= MOST_SCROLLED;
    if (items.length > MOST_SHOWN || (scale < legible() && !scrolls)) opened.delete(key);
    else zoom = scale < STILL_LEGIBLE ? legible() : 0;
  }
  redraw();
}

find("open").addEventListener("click", openAll);
for (const name of ["open", "close"]) find(name).hidden = !keysOf().length;
find("close").addEventListener("click", () => { opened.clear(); zoom = 0; redraw(); });
function addLink(link) {
  if (!link.edges.length) return;
  const [node, edge] = link.edges[0], row = edgeRows.get(link.edges[0].join(","));
  for (const line of link.group.querySelectorAll(".forward")) link.group.prepend(svgElement("path", { class: "hit", d: line.getAttribute("d") }));
  tells(link.group, `${row ? row.operand : "operand"} to ${called(node)}`, () => describeEdge(node, edge, link.edges.length));
}

// The names of the program: each leads to the last node of that name that its line, or one before,
// made.
function addProgram() {
  const known = new Map();
  for (const id of page.forward) {
    const name = page.nodes[id].variable;
    if (name) known.set(name, [...(known.get(name) || []), id]);
  }
  page.program.lines.forEach((text, place) => {
    const line = element("span");
    line.dataset.line = place + 1;
    let end = 0;
    for (const { 0: name, index } of text.matchAll(/[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}\p{N}_]+)*/gu)) {
      const ids = known.get(name);
      if (!ids) continue;
      const id = ids.filter((each) => (page.nodes[each].line || 0) <= place + 1).at(-1);
      if (id === undefined) continue;
      const word = element("span", "", name);
      line.append(text.slice(end, index), word);
      end = index + name.length;
      tells(word, `${name}, line ${place + 1}`, () => { describe(id); mark(id); });
      for (const event of ["blur", "mouseleave"]) word.addEventListener(event, () => mark(null));
    }
    line.append(text.slice(end));
    find("program").append(line);
  });
}

function markBoxes(groups) {
  for (const group of canvas.querySelectorAll(".named")) group.classList.remove("named");
  for (const group of groups) group.classList.add("named");
  reveal(groups[0]);
}

const mark = (id) => markBoxes(boxOf.has(id) ? [items[boxOf.get(id)].group] : []);

// --- finding a name ----------------------------------------------------------------------------

let match = 0;

// Open the modules that hold the boxes in which a text stands, where nothing drawn has it.
function openTo(wanted) {
  const holds = (box) => box.rows.some((row) => row.map(([, text]) => text).join("").toLowerCase().includes(wanted));
  const drawn = items.some((item) => holds(item) && item.nodes.length);
  const box = drawn ? undefined : page.boxes.find(holds);
  if (!box) return;
  for (const key of box.within) opened.add(key);
  redraw();
}

function search(next) {
  const wanted = find("find").value.trim().toLowerCase();
  if (wanted && !next) openTo(wanted);
  const rows = wanted ? [...canvas.querySelectorAll("g[id^=box] text, g[id^=box] tspan")] : [];
  const matching = rows.filter((row) => row.textContent.toLowerCase().includes(wanted));
  const groups = [...new Set(matching.map((row) => row.closest("g")))];
  match = next ? (match + 1) % Math.max(groups.length, 1) : 0;
  find("find").classList.toggle("missing", Boolean(wanted) && !groups.length);
  markBoxes([...groups.slice(match), ...groups.slice(0, match)]);
  if (!groups.length) return;
  if (resize() < SCROLLED) zoomTo(SCROLLED);
  const row = matching.findLast((each) => each.closest("g") === groups[match]);
  scrollIn(canvas, row, ACROSS, DOWN);
  document.querySelector("figure").scrollIntoView({ block: "nearest" });
}

find("find").addEventListener("input", () => search(false));
find("find").addEventListener("keydown", (event) => { if (event.key === "Enter") search(true); });

// The sheet of all steps, for paper: filled when nothing else is to be done.
function fillSheet() {
  if (find("sheet").childElementCount === steps.length) return;
  find("sheet").replaceChildren(...steps.map((step) => element("li", "", ...itemsOf(step).flat().map(lineElement))));
}

addProgram();
addSliders();
openWhatFits();
(window.requestIdleCallback || setTimeout)(fillSheet);
