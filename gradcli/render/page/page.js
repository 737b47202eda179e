"use strict";
// Everything that the page shows comes from this document, as text: nothing of it is run.
const page = JSON.parse(document.getElementById("data").textContent);
const steps = [
  ...page.forward.map((node) => ({ pass: "forward", node })),
  ...page.backward.map((rows) => ({ pass: "backward", node: page.rows[rows[0]].node, rows })),
];
const boxOf = {};
page.boxes.forEach((nodes, box) => nodes.forEach((node) => { boxOf[node] = box; }));
const find = (id) => document.getElementById(id);
let at = 0, playing = null;

// --- numbers as text ---------------------------------------------------------------------------

function shown(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  if (typeof value === "object") return "norm" in value ? `(${value.shape.join(", ")}) norm ${value.norm}` : JSON.stringify(value);
  return String(value);
}

const called = (id) => {
  const node = page.nodes[id];
  return node.variable || node.source || `${node.name} #${id}`;
};

function words(row) {
  if (row.kind === "node") return `${called(row.node)}  ${page.nodes[row.node].name}: gradient in ${row.gradients_in.map(shown).join(", ")}`;
  if (row.kind === "edge") {
    const rule = row.derivative ? `${row.derivative} = ${row.named} = ${shown(row.local)}` : row.named || "";
    return `  [${row.edge}] → ${row.operand}: ${rule}${rule ? "; " : ""}passes on ${shown(row.product)}`;
  }
  if (row.kind === "sum_to") return `      summed to its shape: ${shown(row.value)}`;
  if (row.kind === "cast") return `      cast to ${row.dtype}: ${shown(row.value)}`;
  const name = row.kind === "leaf" ? `${called(row.node)}.grad` : `at ${called(row.node)}`;
  const sum = row.old === null ? shown(row.new) : `${shown(row.old)} + ${shown(row.incoming)} = ${shown(row.new)}`;
  return `${name} = ${sum}`;
}

function linesOf(step) {
  if (step.pass === "backward") return step.rows.map((place) => words(page.rows[place]));
  const node = page.nodes[step.node];
  return [`${called(step.node)} = ${shown(node.value)}`, `  ${node.name}, ${node.dtype}, shape (${node.shape.join(", ")})`];
}

// --- the current step --------------------------------------------------------------------------

function fill(list, lines) {
  list.replaceChildren(...lines.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
}

function show(step) {
  at = Math.max(0, Math.min(steps.length - 1, step));
  const now = steps[at];
  find("count").textContent = `step ${at + 1} of ${steps.length}, ${now.pass} pass`;
  find("step").value = at;
  fill(find("rows"), linesOf(now));
  const line = page.nodes[now.node].line;
  for (const each of document.querySelectorAll("#program span")) each.classList.toggle("lit", Number(each.dataset.line) === line);
  const lit = document.querySelector("#program .lit");
  if (lit) lit.scrollIntoView({ block: "nearest" });
  const met = new Set(steps.slice(0, at + 1).map((each) => boxOf[each.node]));
  const back = new Set(), flowing = new Set();
  steps.slice(0, at + 1).forEach((each, place) => (each.rows || []).forEach((row) => {
    const { kind, node, edge } = page.rows[row];
    if (kind === "edge") (place === at ? flowing : back).add(`${node},${edge}`);
  }));
  page.boxes.forEach((nodes, box) => {
    const element = find(`box${box}`);
    if (nodes.length) element.classList.toggle("unseen", !met.has(box));
    element.classList.toggle("lit", box === boxOf[now.node]);
  });
  page.arrows.forEach((edges, arrow) => {
    const element = find(`arrow${arrow}`), names = edges.map((edge) => edge.join(","));
    const used = names.some((name) => flowing.has(name));
    element.classList.toggle("flowing", used);
    const passed = used || names.some((name) => back.has(name));
    for (const part of element.querySelectorAll(".backward, .back")) part.classList.toggle("unseen", !passed);
    const label = find(`label${arrow}`);
    if (label) label.classList.toggle("unseen", !passed);
  });
}

function describe(id) {
  const node = page.nodes[id];
  find("node").textContent = [
    `${called(id)}  ${node.name}`, `value     ${shown(node.value)}`, `gradient  ${shown(node.gradient)}`,
    `shape     (${node.shape.join(", ")}), ${node.dtype}`, node.line ? `place     line ${node.line}: ${node.source}` : "",
  ].join("\n");
}

// --- scalar inputs that can be moved -----------------------------------------------------------

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const functions = {
  add: (x, y, alpha = 1) => x + alpha * y, sub: (x, y, alpha = 1) => x - alpha * y, mul: (x, y) => x * y,
  div: (x, y) => x / y, pow: (x, y) => x ** y, neg: (x) => -x, reciprocal: (x) => 1 / x, square: (x) => x * x,
  exp: Math.exp, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, log2: Math.log2, sqrt: Math.sqrt, rsqrt: (x) => 1 / Math.sqrt(x),
  sin: Math.sin, cos: Math.cos, tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan,
  sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh, sigmoid, relu: (x) => Math.max(x, 0), abs: Math.abs,
  sign: Math.sign, sgn: Math.sign, where: (c, x, y) => (c ? x : y), maximum: Math.max, minimum: Math.min,
  "math.log": Math.log, "math.sqrt": Math.sqrt,
};
const operators = {
  "+": (x, y) => x + y, "-": (x, y) => (y === undefined ? -x : x - y), "*": (x, y) => x * y, "/": (x, y) => x / y, "**": (x, y) => x ** y,
  "<": (x, y) => x < y, ">": (x, y) => x > y, "<=": (x, y) => x <= y, ">=": (x, y) => x >= y, "==": (x, y) => x === y, "!=": (x, y) => x !== y,
  "&": (x, y) => x && y, "|": (x, y) => x || y, "~": (x) => !x, if: (c, x, y) => (c ? x : y),
};

function evaluated(rule, names) {
  if (typeof rule === "string") return names[rule];
  if (!Array.isArray(rule)) return Number(rule);
  const compute = operators[rule[0]] || functions[rule[0]];
  return compute(...rule.slice(1).map((part) => evaluated(part, names)));
}

const known = (rule) => rule !== null && rule !== undefined
  && (!Array.isArray(rule) || ((rule[0] in operators || rule[0] in functions) && rule.slice(1).every(known)));

function computable(id) {
  const node = page.nodes[id];
  if (node.leaf) return typeof node.value === "number";
  return node.op in functions && Object.values(node.rules || {}).every(known)
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
    const names = namesOf(id), extra = "alpha" in names ? [names.alpha] : [];
    node.value = functions[node.op](...node.inputs.map((name) => names[name]), ...extra);
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
    const { value, gradient } = page.nodes[id], element = find(`box${box}`);
    for (const [role, text] of [["value", `value ${shown(value)}`], ["gradient", `grad ${shown(gradient)}`]]) {
      const row = element.querySelector(`.${role}`);
      if (row) row.textContent = text;
    }
  });
  page.arrows.forEach(([edge, ...others], arrow) => {
    const label = find(`label${arrow}`);
    if (!label || edge === undefined || others.length) return;
    const row = page.rows.find((each) => each.kind === "edge" && each.node === edge[0] && each.edge === edge[1]);
    label.querySelector("text").textContent = shown(row.product);
  });
  show(at);
}

function addSliders() {
  const leaves = page.forward.filter((id) => page.nodes[id].leaf);
  const fresh = page.rows.every((row) => row.kind !== "leaf" || row.old === null);
  if (!fresh || !page.rows.length || !page.forward.every(computable)) return;
  const values = Object.fromEntries(leaves.map((id) => [id, page.nodes[id].value]));
  find("inputs").hidden = false;
  for (const id of leaves) {
    const start = values[id], label = document.createElement("label"), range = document.createElement("input"), output = document.createElement("output");
    label.className = "slider";
    Object.assign(range, { type: "range", min: start - 3, max: start + 3, step: 0.01, value: start });
    range.setAttribute("aria-label", `value of ${called(id)}`);
    output.textContent = shown(start);
    range.addEventListener("input", () => {
      values[id] = Number(range.value);
      output.textContent = shown(values[id]);
      moved(values);
    });
    label.append(called(id), range, output);
    find("inputs").append(label);
  }
}

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
  playing = setInterval(() => { if (at === steps.length - 1) stop(); else show(at + 1); }, 1000);
}

const go = (step) => { stop(); show(step); };
find("first").addEventListener("click", () => go(0));
find("back").addEventListener("click", () => go(at - 1));
find("forward").addEventListener("click", () => go(at + 1));
find("last").addEventListener("click", () => go(steps.length - 1));
find("play").addEventListener("click", play);
find("step").max = steps.length - 1;
find("step").addEventListener("input", (event) => go(Number(event.target.value)));
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1 }[event.key];
  if (to !== undefined) { event.preventDefault(); go(to); }
});
page.program.lines.forEach((text, place) => {
  const line = document.createElement("span");
  line.textContent = text;
  line.dataset.line = place + 1;
  find("program").append(line);
});
page.boxes.forEach((nodes, box) => {
  if (!nodes.length) return;
  const element = find(`box${box}`);
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", `${called(nodes[0])}, ${page.nodes[nodes[0]].name}`);
  for (const event of ["focus", "mouseenter", "click"]) element.addEventListener(event, () => describe(nodes[0]));
});
fill(find("sheet"), steps.map((step, place) => `${place + 1}. ${linesOf(step).join("\n")}`));
addSliders();
show(0);
