"use strict";
// Everything that the page shows comes from this document, as text: nothing of it is run.
const page = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const steps = [
  ...page.forward.map((node) => ({ pass: "forward", node })),
  ...page.backward.map((rows) => ({ pass: "backward", node: page.rows[rows[0]].node, rows })),
];
const boxOf = new Map(page.boxes.flatMap((nodes, box) => nodes.map((node) => [node, box])));
const edgeRows = new Map(page.rows.filter((row) => row.kind === "edge").map((row) => [`${row.node},${row.edge}`, row]));
const incoming = new Map(page.rows.filter((row) => row.kind === "node").map((row) => [row.node, row]));
let at = 0, playing = null, zoom = 0;  // 0: as much as fits

// --- numbers as text ---------------------------------------------------------------------------

function shown(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return `[${value.map(shown).join(Array.isArray(value[0]) ? ",\n " : ", ")}]`;
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) < 1e6 ? `${value}.` : String(Number(value.toPrecision(6)));
  if (typeof value === "object") return "norm" in value ? `(${value.shape.join(", ")}) norm ${value.norm}` : JSON.stringify(value);
  return String(value);
}

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

function itemsOf(step) {
  if (step.pass === "backward") return step.rows.map((place) => linesOfRow(page.rows[place]));
  const node = page.nodes[step.node];
  return [[[["head", called(step.node)]], [["kind", `${node.name}, ${node.dtype}, shape (${node.shape.join(", ")})`]], [["", "= "], ["result", shown(node.value)]]]];
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const lineElement = (pieces) => element("div", "", ...pieces.map(([className, text]) => element("span", className, text)));
const itemElement = (lines) => element("li", "", ...lines.map(lineElement));

// --- the current step --------------------------------------------------------------------------

function show(step) {
  at = Math.max(0, Math.min(steps.length - 1, step));
  const now = steps[at], done = steps.slice(0, at + 1);
  document.body.dataset.pass = now.pass;
  find("count").replaceChildren("step ", element("b", "", `${at + 1}`), ` of ${steps.length}, `, element("b", "", `${now.pass} pass`));
  find("step").value = at;
  find("step").setAttribute("aria-valuetext", `${at + 1} of ${steps.length}, ${now.pass} pass`);
  find("rows").replaceChildren(...itemsOf(now).map(itemElement));
  light(page.nodes[now.node].line);
  const met = new Set(), graded = new Set(), back = new Set(), flowing = new Set();
  for (const each of done) {
    met.add(each.node);
    for (const row of (each.rows || []).map((place) => page.rows[place])) {
      if (row.kind === "edge") (each === now ? flowing : back).add(`${row.node},${row.edge}`);
      if (row.kind !== "meet") graded.add(row.node);
    }
  }
  page.boxes.forEach((nodes, box) => {
    const group = find(`box${box}`);
    if (nodes.length) group.classList.toggle("unseen", !nodes.some((node) => met.has(node)));
    group.classList.toggle("lit", boxOf.get(now.node) === box);
    const arrived = nodes.some((node) => graded.has(node));
    for (const text of group.querySelectorAll(".gradient")) text.classList.toggle("unborn", !arrived);
  });
  page.arrows.forEach((edges, arrow) => {
    const group = find(`arrow${arrow}`), names = edges.map((edge) => edge.join(","));
    const used = names.some((name) => flowing.has(name)), passed = used || names.some((name) => back.has(name));
    group.classList.toggle("flowing", used);
    group.classList.toggle("arriving", now.pass === "forward" && edges.some(([node]) => node === now.node));
    group.classList.toggle("unseen", edges.length > 0 && !edges.some(([node]) => met.has(node)));
    for (const part of group.querySelectorAll(".backward, .back")) part.classList.toggle("unborn", !passed);
    const label = find(`label${arrow}`);
    if (label) label.classList.toggle("unborn", !passed);
  });
  reveal(find(`box${boxOf.get(now.node)}`));
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
  for (const each of find("program").children) each.classList.toggle("lit", Number(each.dataset.line) === line);
  const lit = find("program").querySelector(".lit");
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

function describeEdge(node, edge, count) {
  const row = edgeRows.get(`${node},${edge}`);
  if (!row) { fields(`into ${called(node)}`, [["gradient", "none", "gradient"]]); return; }
  fields(`${row.operand} → ${called(node)}`, [
    ["edges", count > 1 ? `${count}; the first:` : ""], ["rule", row.formula || ""],
    ["derivative", row.derivative ? `${row.derivative} = ${row.named} = ${shown(row.local)}` : row.named || ""],
    ["passes on", shown(row.product), "gradient"],
  ]);
}

// --- scalar inputs that can be moved -----------------------------------------------------------

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
// What rules call, by position.
const functions = {
  add: (x, y, alpha = 1) => x + alpha * y, sub: (x, y, alpha = 1) => x - alpha * y, mul: (x, y) => x * y, div: (x, y) => x / y,
  pow: (x, y) => x ** y, neg: (x) => -x, reciprocal: (x) => 1 / x, square: (x) => x * x,
  exp: Math.exp, exp2: (x) => 2 ** x, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, log2: Math.log2, log10: Math.log10,
  sqrt: Math.sqrt, rsqrt: (x) => 1 / Math.sqrt(x), sin: Math.sin, cos: Math.cos, tan: Math.tan,
  asin: Math.asin, acos: Math.acos, atan: Math.atan, atan2: Math.atan2, sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh,
  asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh, sigmoid, relu: (x) => Math.max(x, 0), abs: Math.abs,
  sign: Math.sign, sgn: Math.sign, floor: Math.floor, ceil: Math.ceil, trunc: Math.trunc, frac: (x) => x - Math.trunc(x),
  hypot: Math.hypot, maximum: Math.max, minimum: Math.min, where: (c, x, y) => (c ? x : y), masked_fill: (x, c, y) => (c ? y : x),
  silu: (x) => x * sigmoid(x), log_sigmoid: (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))),
  logaddexp: (x, y) => Math.max(x, y) + Math.log1p(Math.exp(-Math.abs(x - y))),
  "math.log": Math.log, "math.sqrt": Math.sqrt,
};
// The operations that take more than their operands, by the names of all that they take.
const clamped = (x, low = -Infinity, high = Infinity) => Math.min(Math.max(x, low), high);
const forwards = {
  add: ({ self, other, alpha = 1 }) => self + alpha * other, sub: ({ self, other, alpha = 1 }) => self - alpha * other,
  rsub: ({ self, other, alpha = 1 }) => other - alpha * self,
  pow: ({ self, base = self, exponent }) => base ** exponent, remainder: ({ self, other }) => self - Math.floor(self / other) * other,
  clamp: ({ self, min, max }) => clamped(self, min, max), hardtanh: ({ self, min_val, max_val }) => clamped(self, min_val, max_val),
  lerp: ({ self, end, weight }) => self + weight * (end - self),
  addcmul: ({ self, tensor1, tensor2, value = 1 }) => self + value * tensor1 * tensor2,
  addcdiv: ({ self, tensor1, tensor2, value = 1 }) => self + (value * tensor1) / tensor2,
  leaky_relu: ({ self, negative_slope }) => (self > 0 ? self : self * negative_slope),
  elu: ({ self, alpha, scale, input_scale }) => scale * (self > 0 ? self : alpha * Math.expm1(self * input_scale)),
  softplus: ({ self, beta, threshold }) => (self * beta > threshold ? self : Math.log1p(Math.exp(self * beta)) / beta),
};
const operators = {
  "+": (x, y) => x + y, "-": (x, y) => (y === undefined ? -x : x - y), "*": (x, y) => x * y, "/": (x, y) => x / y, "**": (x, y) => x ** y,
  "<": (x, y) => x < y, ">": (x, y) => x > y, "<=": (x, y) => x <= y, ">=": (x, y) => x >= y, "==": (x, y) => x === y, "!=": (x, y) => x !== y,
  "&": (x, y) => x && y, "|": (x, y) => x || y, "~": (x) => !x, if: (c, x, y) => (c ? x : y),
};

function evaluated(rule, names) {
  if (typeof rule === "string") return names[rule];
  if (!Array.isArray(rule)) return Number(rule);
  const compute = Object.hasOwn(operators, rule[0]) ? operators[rule[0]] : functions[rule[0]];
  return compute(...rule.slice(1).map((part) => evaluated(part, names)));
}

const known = (rule) => rule !== null && rule !== undefined
  && (!Array.isArray(rule) || ((Object.hasOwn(operators, rule[0]) || Object.hasOwn(functions, rule[0])) && rule.slice(1).every(known)));

function forward(node) {
  if (Object.hasOwn(forwards, node.op || "")) return forwards[node.op];
  const plain = Object.hasOwn(functions, node.op || "") && !Object.keys(node.arguments).length;
  return plain ? (names) => functions[node.op](...node.inputs.map((name) => names[name])) : null;
}

function computable(id) {
  const node = page.nodes[id];
  if (node.leaf) return typeof node.value === "number";
  return forward(node) && Object.values(node.rules || {}).every(known)
    && node.operands.every((operand) => "node" in operand || typeof operand.value === "number");
}

// What a node's rules call its operands, its result and its arguments.
function namesOf(id) {
  const node = page.nodes[id], names = { ...node.arguments, result: node.value };
  node.inputs.forEach((name, place) => {
    const operand = node.operands[place];
    names[name] = "node" in operand ? page.nodes[operand.node].value : operand.value;
  });
  return names;
}

// Both passes once more, for other values of the leaves: as the engine does it, row by row.
function recompute(values) {
  for (const id of page.forward) {
    const node = page.nodes[id];
    if (node.leaf) { node.value = values[id]; continue; }
    node.value = forward(node)(namesOf(id));
  }
  const sums = { [page.rows[0].node]: page.seed ?? 1 }, waiting = {};
  for (const row of page.rows) {
    if (row.kind === "node") row.gradients_in = [sums[row.node]];
    if (row.kind === "edge") {
      const rule = page.nodes[row.node].rules[row.edge], names = namesOf(row.node);
      row.product = evaluated(rule, { ...names, grad: sums[row.node] });
      row.local = evaluated(rule, { ...names, grad: 1 });
      if (row.to in sums) (waiting[row.to] ||= []).push(row.product);
      else sums[row.to] = row.product;
    }
    if (row.kind === "meet") {
      [row.old, row.incoming] = [sums[row.node], waiting[row.node].shift()];
      row.new = sums[row.node] = row.old + row.incoming;
    }
    if (row.kind === "leaf") row.new = row.incoming = sums[row.node];
  }
  for (const id of page.forward) page.nodes[id].gradient = sums[id] ?? null;
}

function moved(values) {
  recompute(values);
  page.boxes.forEach(([id, ...others], box) => {
    if (id === undefined || others.length) return;
    const { value, gradient } = page.nodes[id], group = find(`box${box}`);
    for (const [role, text] of [["value", `value ${shown(value)}`], ["gradient", `grad ${shown(gradient)}`]]) {
      const row = group.querySelector(`.${role}`);
      if (row) row.textContent = text;
    }
  });
  page.arrows.forEach(([edge, ...others], arrow) => {
    const label = find(`label${arrow}`);
    if (!label || edge === undefined || others.length) return;
    label.querySelector("text").textContent = shown(edgeRows.get(edge.join(",")).product);
  });
  show(at);
}

function addSliders() {
  const leaves = page.forward.filter((id) => page.nodes[id].leaf);
  const fresh = page.rows.every((row) => row.kind !== "leaf" || row.old === null);
  if (!page.moves || !fresh || !page.rows.length || !page.forward.every(computable)) return;
  const values = Object.fromEntries(leaves.map((id) => [id, page.nodes[id].value]));
  find("inputs").hidden = false;
  for (const id of leaves) {
    const start = values[id], range = element("input"), output = element("output", "mono", shown(start));
    Object.assign(range, { type: "range", min: start - 3, max: start + 3, step: 0.01, value: start });
    range.setAttribute("aria-label", `value of ${called(id)}`);
    range.addEventListener("input", () => {
      values[id] = Number(range.value);
      output.textContent = shown(values[id]);
      moved(values);
    });
    find("inputs").lastElementChild.before(element("label", "slider", element("span", "mono", called(id)), range, output));
  }
}

// --- size of the graph -------------------------------------------------------------------------

const picture = canvas.querySelector("svg");
const { width, height } = picture.viewBox.baseVal;
const LARGEST = 1.6, LEGIBLE = 0.65, SCROLLED = 0.85, SMALLEST = 0.15;

function resize() {
  const room = [(canvas.clientWidth - 16) / width, (canvas.clientHeight - 16) / height];
  const scale = zoom || Math.max(SMALLEST, Math.min(LARGEST, ...room));
  picture.style.width = `${width * scale}px`;
  picture.style.height = `${height * scale}px`;
  return scale;
}

function zoomTo(scale) {
  zoom = Math.max(SMALLEST, Math.min(4, scale));
  resize();
  reveal(canvas.querySelector(".lit"));
}

find("in").addEventListener("click", () => zoomTo(resize() * 1.25));
find("out").addEventListener("click", () => zoomTo(resize() / 1.25));
find("fit").addEventListener("click", () => { zoom = 0; resize(); });
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
  playing = setInterval(() => { if (at === steps.length - 1) stop(); else show(at + 1); }, 1100);
}

const go = (step) => { stop(); show(step); };
find("first").addEventListener("click", () => go(0));
find("back").addEventListener("click", () => go(at - 1));
find("forward").addEventListener("click", () => go(at + 1));
find("last").addEventListener("click", () => go(steps.length - 1));
find("play").addEventListener("click", play);
find("step").max = steps.length - 1;
find("step").style.setProperty("--split", `${(100 * (page.forward.length - 0.5)) / Math.max(steps.length - 1, 1)}%`);
find("step").addEventListener("input", (event) => go(Number(event.target.value)));
document.addEventListener("keydown", (event) => {
  const tag = event.target.tagName;
  if (tag === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); find("find").focus(); return; }
  if (event.key === " " && tag !== "BUTTON") { event.preventDefault(); play(); return; }
  const to = new Map([["ArrowRight", at + 1], ["ArrowLeft", at - 1], ["Home", 0], ["End", steps.length - 1]]).get(event.key);
  if (to !== undefined) { event.preventDefault(); go(to); }
});

// On paper the picture shows what the last step leaves.
let before = 0;
addEventListener("beforeprint", () => { before = at; show(steps.length - 1); });
addEventListener("afterprint", () => show(before));

// What is told where one points at a part, moves to it or touches it.
function tells(part, label, tell) {
  part.setAttribute("tabindex", "0");
  part.setAttribute("role", "button");
  part.setAttribute("aria-label", label);
  for (const event of ["focus", "mouseenter", "click"]) part.addEventListener(event, tell);
}

const SVG = "http://www.w3.org/2000/svg";
page.boxes.forEach(([id], box) => {
  if (id !== undefined) tells(find(`box${box}`), `${called(id)}, ${page.nodes[id].name}`, () => describe(id));
});
page.arrows.forEach((edges, arrow) => {
  if (!edges.length) return;
  const group = find(`arrow${arrow}`), [node, edge] = edges[0], row = edgeRows.get(edges[0].join(","));
  for (const line of group.querySelectorAll(".forward")) {
    const wide = document.createElementNS(SVG, "path");
    wide.setAttribute("d", line.getAttribute("d"));
    wide.setAttribute("class", "hit");
    group.prepend(wide);
  }
  tells(group, `${row ? row.operand : "operand"} to ${called(node)}`, () => describeEdge(node, edge, edges.length));
});

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

const mark = (id) => markBoxes(id === null ? [] : [find(`box${boxOf.get(id)}`)].filter(Boolean));

// --- finding a name ----------------------------------------------------------------------------

let match = 0;
function search(next) {
  const wanted = find("find").value.trim().toLowerCase();
  const rows = wanted ? [...canvas.querySelectorAll("g[id^=box] text, g[id^=box] tspan")] : [];
  const found = rows.filter((row) => row.textContent.toLowerCase().includes(wanted));
  const groups = [...new Set(found.map((row) => row.closest("g")))];
  match = next ? (match + 1) % Math.max(groups.length, 1) : 0;
  find("find").classList.toggle("missing", Boolean(wanted) && !groups.length);
  markBoxes([...groups.slice(match), ...groups.slice(0, match)]);
  if (!groups.length) return;
  const row = found.findLast((each) => each.closest("g") === groups[match]);
  scrollIn(canvas, row, ACROSS, DOWN);
  document.querySelector("figure").scrollIntoView({ block: "nearest" });
}

find("find").addEventListener("input", () => search(false));
find("find").addEventListener("keydown", (event) => { if (event.key === "Enter") search(true); });

picture.setAttribute("role", "group");
picture.removeAttribute("aria-labelledby");
picture.setAttribute("aria-label", picture.querySelector("title").textContent);
picture.querySelector("title").remove();
addProgram();
find("sheet").append(...steps.map((step) => element("li", "", ...itemsOf(step).flat().map(lineElement))));
addSliders();
if (resize() < LEGIBLE) zoomTo(SCROLLED);
show(0);
